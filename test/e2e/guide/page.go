package guide

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// page is the commands of a page, and which of them were run. It is not safe for
// concurrent use.
type page struct {
	blocks []*block          // fences without a language
	named  []string          // commands in the text: spans of code that begin with a program and say more
	not    map[string]string // how commands begin that are not run, and why
	met    map[string]bool   // those of not that there are
	ran    map[string]bool   // blocks' texts, and spans
}

// block is a fence.
type block struct {
	text    string   // what is run: without what is marked
	printed []string // after each command of a sample (lines that begin with $), the first line that it prints
}

var (
	mark     = regexp.MustCompile(`<!-- not run: (.+?) because (.+?) -->`)
	programs = regexp.MustCompile(`^(kubectl|fleetbroker|fleet-agent|git|helm|make|go|cosign|liqoctl|openssl|sha256sum|docker|crane|aws|gcloud|az|pre-commit) [^<]`)
)

// parse reads a page.
func parse(source []byte) *page {
	p := &page{not: map[string]string{}, met: map[string]bool{}, ran: map[string]bool{}}
	for _, m := range mark.FindAllSubmatch(source, -1) {
		p.not[string(m[1])] = string(m[2])
	}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.FencedCodeBlock:
			if node.Language(source) == nil {
				p.fence(string(node.Lines().Value(source)))
			}
		case *ast.CodeSpan:
			var b strings.Builder
			for c := node.FirstChild(); c != nil; c = c.NextSibling() {
				if leaf, ok := c.(*ast.Text); ok {
					b.Write(leaf.Segment.Value(source))
					b.WriteByte(' ')
				}
			}
			span := strings.Join(strings.Fields(b.String()), " ")
			if programs.MatchString(span) && !slices.Contains(p.named, span) && !p.marked(span) {
				p.named = append(p.named, span)
			}
		}
		return ast.WalkContinue, nil
	})
	return p
}

// fence adds a block, without what is marked.
func (p *page) fence(code string) {
	b := &block{}
	sample := strings.HasPrefix(code, "$ ")
	command := false // the line before was one
	for line := range strings.Lines(code) {
		said, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case sample && !isCommand:
			if command {
				b.printed = append(b.printed, strings.TrimSpace(line))
			}
		case !p.marked(said):
			b.text += said
		}
		command = isCommand
	}
	if b.text != "" {
		p.blocks = append(p.blocks, b)
	}
}

// marked tells whether a command is one that is not run.
func (p *page) marked(command string) bool {
	for begin := range p.not {
		if strings.HasPrefix(command, begin) {
			p.met[begin] = true
			return true
		}
	}
	return false
}

// block is the one block that has a text.
func (p *page) block(has string) (*block, error) {
	var found []*block
	for _, b := range p.blocks {
		if strings.Contains(b.text, has) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d blocks of the page have %q, want one", len(found), has)
	}
	p.ran[found[0].text] = true
	return found[0], nil
}

// left says what is wrong once all was run: commands that were not, comments that name none.
func (p *page) left() (out []string) {
	var run strings.Builder
	for _, b := range p.blocks {
		if !p.ran[b.text] {
			out = append(out, "this block is not run, and has no comment that says why:\n"+b.text)
		}
		run.WriteString("\n" + b.text)
	}
	for _, span := range p.named {
		if !p.ran[span] && !strings.Contains(run.String(), "\n"+span) { // a block's command by its name
			out = append(out, "this command in the text is not run, and has no comment that says why: "+span)
		}
	}
	for begin := range p.not {
		if !p.met[begin] {
			out = append(out, "no command of the page begins with this one, which is marked as not run: "+begin)
		}
	}
	slices.Sort(out)
	return out
}

// guide is the page, seen from here.
const guide = "../../../fleet-repo-template/docs/install.md"
