package report

import (
	"sort"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// DefaultWidth is how many columns a line has at most.
const DefaultWidth = 100

// Problem is one thing wrong with an input that could not be read.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// String is "file:line:col: message", without the parts that are not known.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Place())
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Place is "file:line:col", without the parts that are not known.
func (p Problem) Place() string {
	switch {
	case p.Line <= 0:
		return p.File
	case p.Column <= 0:
		return p.File + ":" + strconv.Itoa(p.Line)
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Meta is what a plan does not know of itself: where its inputs came from.
type Meta struct {
	// Fleet is the fleet's name.
	Fleet string
	// Branch that was read; "" when the inputs are no commit.
	Branch string
	// Changed is whether the files read differ from the commit.
	Changed bool
	// Trust is what is known of signatures, for the head line; "" when nothing is.
	Trust string
	// Signatures is what the signatures of the inputs were held to; "" leaves it out.
	Signatures string
	// Errors are the inputs that could not be read.
	Errors []Problem
}

// Options shape the text.
type Options struct {
	// Color draws with terminal colours.
	Color bool
	// Width of a line; 0 is DefaultWidth, below 0 is unlimited.
	Width int
	// Wide also shows what is kept, suspended or done, and contracts by name.
	Wide bool
}

func (o Options) width() int {
	if o.Width == 0 {
		return DefaultWidth
	}
	return o.Width
}

// group is the place of an action in the text: problems last, next to the sum.
type group int

const (
	groupHidden group = iota
	groupFind
	groupPlace
	groupResize
	groupMove
	groupRelease
	groupPreempt
	groupQueue
	groupFrozen
	groupRefuse
)

// actionLook is where an action is listed, and what column 0 shows.
var actionLook = map[planner.Action]look{
	planner.Find:    {groupFind, " "},
	planner.Place:   {groupPlace, "+"},
	planner.Resize:  {groupResize, "!"},
	planner.Move:    {groupMove, "!"},
	planner.Release: {groupRelease, "-"},
	planner.Preempt: {groupPreempt, "-"},
	planner.Queued:  {groupQueue, "?"},
	planner.Refuse:  {groupRefuse, "x"},
	planner.Frozen:  {groupFrozen, "x"},
	planner.Keep:    {groupHidden, " "},
	planner.Suspend: {groupHidden, " "},
	planner.Done:    {groupHidden, " "},
}

// sumOrder is the order of actions in the sum.
var sumOrder = []planner.Action{
	planner.Place, planner.Keep, planner.Resize, planner.Move, planner.Release, planner.Preempt,
	planner.Queued, planner.Refuse, planner.Suspend, planner.Done, planner.Frozen, planner.Find,
}

// item is one entry of a report: a decision, or an unreadable file.
type item struct {
	decision *planner.Decision
	// problems of the decision's file, or of the file that froze nothing.
	problems []Problem
}

func (it item) group() group {
	if it.decision == nil {
		return groupRefuse
	}
	return lookOf(it.decision).group
}

// look is where a decision is listed, and what column 0 shows.
type look struct {
	group  group
	symbol string
}

// lookOf is the action's, but for an intent that is suspended or done and gives
// back what it held: that is a release by another name.
func lookOf(d *planner.Decision) look {
	l := actionLook[d.Action]
	if l.group == groupHidden && releases(d) {
		return look{groupRelease, "-"}
	}
	return l
}

func releases(d *planner.Decision) bool {
	for i := range d.Contracts {
		if d.Contracts[i].Action == planner.Release {
			return true
		}
	}
	return false
}

// name by which an item is ordered inside its group.
func (it item) name() string {
	if it.decision == nil {
		return it.problems[0].Place()
	}
	return it.decision.Tenant + "/" + it.decision.Name
}

// items orders everything that is shown. An error of a file whose intent is
// frozen or refused is listed under that intent; every other one alone.
func items(p *planner.Plan, m Meta, wide bool) []item {
	byFile := map[string][]Problem{}
	for _, e := range m.Errors {
		byFile[e.File] = append(byFile[e.File], e)
	}
	var out []item
	for i := range p.Intents {
		d := p.Intents[i]
		look := lookOf(d)
		if look.group == groupHidden && !wide {
			continue
		}
		it := item{decision: d}
		if look.group >= groupFrozen && d.Path != "" {
			it.problems = byFile[d.Path]
			delete(byFile, d.Path)
		}
		out = append(out, it)
	}
	for _, e := range m.Errors {
		if _, left := byFile[e.File]; left {
			out = append(out, item{problems: []Problem{e}})
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if ga, gb := a.group(), b.group(); ga != gb {
			return ga < gb
		}
		if (a.decision == nil) != (b.decision == nil) {
			return a.decision != nil
		}
		return a.decision != nil && a.name() < b.name()
	})
	return out
}

// counts are the decisions by action, and with them each unreadable file that
// no intent shows as a refusal.
func counts(p *planner.Plan, m Meta) map[planner.Action]int {
	out := p.Summary()
	files := map[string]bool{}
	for _, e := range m.Errors {
		files[e.File] = true
	}
	for i := range p.Intents {
		if d := p.Intents[i]; actionLook[d.Action].group >= groupFrozen {
			delete(files, d.Path)
		}
	}
	out[planner.Refuse] += len(files)
	return out
}

// sum is "1 place, 41 keep, 1 queue", or "nothing to do".
func sum(p *planner.Plan, m Meta) string {
	n := counts(p, m)
	var parts []string
	for _, a := range sumOrder {
		if n[a] > 0 {
			parts = append(parts, strconv.Itoa(n[a])+" "+string(a))
		}
	}
	if len(parts) == 0 {
		return "no intents"
	}
	return strings.Join(parts, ", ")
}
