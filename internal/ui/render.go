package ui

import (
	"bytes"
	"fmt"
	"html/template"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"text/template/parse"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// document is what a page's template gets.
type document struct {
	Title  string
	Nav    string
	Head   view.Head
	Viewer view.Viewer
	All    bool
	// Plans: who looks may simulate.
	Plans bool
	// Outside: who looks is not let in.
	Outside bool
	Query   view.Query
	Path    string
	JSON    string
	Data    any
}

// renderer writes pages.
type renderer struct {
	pages map[string]*template.Template
}

// newRenderer parses the templates, which are part of the program: a mistake in one is
// the program's own.
func newRenderer(commitPage func(string) string, pullPage func(int) string) *renderer {
	r := &renderer{pages: map[string]*template.Template{}}
	assets := map[string]string{}
	entries, err := files.ReadDir("assets")
	must(err)
	for _, e := range entries {
		b, err := files.ReadFile("assets/" + e.Name())
		must(err)
		assets[e.Name()] = Root + "/assets/" + e.Name() + "?v=" + digestOf(b)
	}
	if commitPage == nil {
		commitPage = func(string) string { return "" }
	}
	if pullPage == nil {
		pullPage = func(int) string { return "" }
	}
	base := template.New("").Funcs(funcs).Funcs(template.FuncMap{"asset": func(name string) string { return assets[name] }, "commitpage": commitPage, "pullpage": pullPage})
	base = template.Must(base.ParseFS(files, "templates/layout.html", "templates/parts.html"))
	names := map[string]bool{"error": true, "message": true}
	for i := range pages {
		names[pages[i].template] = true
	}
	for name := range names {
		t := template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+name+".html"))
		for _, sub := range t.Templates() {
			if sub.Tree != nil {
				visible(sub.Tree, sub.Tree.Root)
			}
		}
		r.pages[name] = t
	}
	return r
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// write writes a page whole or not at all.
func (r *renderer) write(w http.ResponseWriter, status int, name string, d *document, log *slog.Logger) {
	var b bytes.Buffer
	if err := r.pages[name].ExecuteTemplate(&b, "layout", d); err != nil {
		log.Error("a page of the dashboard cannot be written", "page", name, "error", err)
		http.Error(w, "The page cannot be written; the daemon's log has the reason.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails where the client is gone
}

// visible puts every value that a template writes through line, so that no template can
// forget it: html/template then escapes what is left.
func visible(tree *parse.Tree, node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, c := range n.Nodes {
			visible(tree, c)
		}
	case *parse.ActionNode:
		if p := n.Pipe; len(p.Decl) == 0 {
			p.Cmds = append(p.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier("line").SetPos(n.Pos).SetTree(tree)}})
		}
	case *parse.IfNode:
		visible(tree, n.List)
		visible(tree, n.ElseList)
	case *parse.RangeNode:
		visible(tree, n.List)
		visible(tree, n.ElseList)
	case *parse.WithNode:
		visible(tree, n.List)
		visible(tree, n.ElseList)
	}
}

// line is a value as a page can show it: text with every character that is not printable
// as its escape. Markup that this package made, and numbers, stay.
func line(v any) any {
	switch v := v.(type) {
	case template.HTML, bool, int, int32, int64, float64:
		return v
	case block:
		return escape.Lines(string(v))
	case string:
		return escape.Line(v)
	case fmt.Stringer:
		return escape.Line(v.String())
	case nil:
		return ""
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer { // an address in memory is never shown
		if r.IsNil() {
			return ""
		}
		return line(r.Elem().Interface())
	}
	if r.Kind() == reflect.String {
		return escape.Line(r.String())
	}
	return escape.Line(fmt.Sprint(v))
}

// block is text whose line breaks stay.
type block string

// marked is text on a page in which what is between two backticks is code. All of it is
// escaped, as line and html/template do; a backtick without a second one stays.
func marked(text string) template.HTML {
	parts := strings.Split(escape.Line(text), "`")
	var b strings.Builder
	for i, part := range parts {
		part = template.HTMLEscapeString(part)
		switch {
		case i%2 == 0:
			b.WriteString(part)
		case i == len(parts)-1:
			b.WriteString("`" + part)
		default:
			b.WriteString("<code>" + part + "</code>")
		}
	}
	return template.HTML(b.String()) //nolint:gosec // escaped above
}

// funcs are what templates may call.
var funcs = template.FuncMap{
	"line": line, "lines": func(s string) block { return block(s) }, "marked": marked,
	"money": money, "price": price, "amount": amount, "age": age, "ago": ago, "until": until, "instant": instant, "day": day,
	"state": stateOf, "states": view.States, "bar": shareBar, "meter": meter, "scorebar": scoreBar, "usebar": useBar, "pods": pods, "calendar": calendarChart, "windows": windowsChart, "axis": axis, "link": link, "short": short, "percent": percent,
	"page": pageOf, "with": withQuery, "list": func(s ...string) []string { return s }, "join": strings.Join,
	"memory":  func(n int64) string { return v1alpha1.AmountOf(n).Canonical(v1alpha1.Memory) },
	"cpu":     func(n int64) string { return v1alpha1.AmountOf(n).Canonical(v1alpha1.CPU) },
	"named":   func(name string, n int64) string { return v1alpha1.AmountOf(n).Canonical(name) },
	"seconds": seconds, "partof": partOf, "hours": func(f float64) string { return number(int64(f + 0.5)) }, "differs": differs,
	"num": number, "plural": plural, "dict": dict, "lower": strings.ToLower, "add": func(a, b int) int { return a + b },
	"f2": func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) },
}

// dict is a map for a template that needs several values.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d values, which are no pairs", len(pairs))
	}
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out, nil
}

// link is a path below Root of which each part is escaped.
func link(parts ...string) string {
	out := Root
	for _, p := range parts {
		out += "/" + url.PathEscape(p)
	}
	return out
}

// pageOf is a list's query for another page.
func pageOf(q view.Query, n int) string {
	v := q.Values()
	v.Set("page", strconv.Itoa(n))
	return "?" + v.Encode()
}

// withQuery is a query with one parameter changed, on its first page.
func withQuery(q view.Query, name, value string) string {
	v := q.Values()
	if v.Del(name); value != "" {
		v.Set(name, value)
	}
	return "?" + v.Encode()
}

// money is an amount with two decimals and the thousands apart, or "" for none.
func money(d any) string {
	switch d := d.(type) {
	case v1alpha1.Decimal:
		return grouped(d.Round(2), 2)
	case *v1alpha1.Decimal:
		if d != nil {
			return grouped(d.Round(2), 2)
		}
	}
	return ""
}

// price is a unit price, with as many decimals as it has and at least two.
func price(d any) string {
	switch d := d.(type) {
	case v1alpha1.Decimal:
		return grouped(d.Round(4), 2)
	case *v1alpha1.Decimal:
		if d != nil {
			return grouped(d.Round(4), 2)
		}
	}
	return ""
}

// grouped writes a decimal with at least so many decimals and narrow spaces between
// thousands.
func grouped(d v1alpha1.Decimal, least int) string {
	whole, part, _ := strings.Cut(d.String(), ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "−", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	for len(part) < least {
		part += "0"
	}
	return sign + whole + "." + part
}

// number with the thousands apart.
func number(n any) string {
	text := fmt.Sprint(reflect.Indirect(reflect.ValueOf(n)))
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "−", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + one + "s"
}

// amount is a resource's quantity as Kubernetes writes it.
func amount(r v1alpha1.Resources, name string) string { return r[name].Canonical(name) }

func short(hash string) string { return hash[:min(len(hash), 8)] }

// age is how long ago something was, in its largest unit.
func age(t, now v1alpha1.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(now.Sub(t.Time))
}

func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d/time.Hour))
	}
	return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
}

// seconds is a length of time in its two largest units: two waits are compared.
func seconds(n int64) string {
	d := (time.Duration(n) * time.Second).Abs()
	for _, u := range []struct {
		whole, part time.Duration
		names       [2]string
	}{{24 * time.Hour, time.Hour, [2]string{"d", "h"}}, {time.Hour, time.Minute, [2]string{"h", "m"}}, {time.Minute, time.Second, [2]string{"m", "s"}}} {
		if d >= u.whole {
			text := fmt.Sprintf("%d%s", d/u.whole, u.names[0])
			if rest := d % u.whole / u.part; rest > 0 {
				text += fmt.Sprintf(" %d%s", rest, u.names[1])
			}
			return text
		}
	}
	return span(d)
}

// partOf 1, in per cent.
func partOf(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + " %" }

// differs is by how much a figure is another, with its sign; "" where it is the same.
func differs(before, after any) (string, error) {
	switch a := after.(type) {
	case int:
		if b, ok := before.(int); ok {
			return signed(a-b, number(max(a-b, b-a))), nil
		}
	case int64: // a length of time
		if b, ok := before.(int64); ok {
			return signed(int(a-b), seconds(a-b)), nil
		}
	case float64: // a part of 1
		if b, ok := before.(float64); ok {
			points := math.Round((a - b) * 1000)
			return signed(int(points), strconv.FormatFloat(math.Abs(points)/10, 'f', 1, 64)+" points"), nil
		}
	case v1alpha1.Decimal:
		if b, ok := before.(v1alpha1.Decimal); ok {
			d := a.Sub(b).Round(2)
			return signed(d.Sign(), strings.TrimPrefix(money(d), "−")), nil
		}
	}
	return "", fmt.Errorf("differs: %T and %T", before, after)
}

func signed(sign int, text string) string {
	switch {
	case sign > 0:
		return "+" + text
	case sign < 0:
		return "−" + text
	}
	return ""
}

// ago is an instant in the past as a time element.
func ago(t, now v1alpha1.Time) template.HTML { return timeElement(t, span(now.Sub(t.Time))+" ago") }

// until is an instant in the future as a time element; one that has passed is "… ago".
func until(t, now v1alpha1.Time) template.HTML {
	if t.Before(now.Time) {
		return ago(t, now)
	}
	return timeElement(t, "in "+span(t.Sub(now.Time)))
}

// instant is a time in full, day its date.
func instant(t v1alpha1.Time) template.HTML {
	return timeElement(t, t.UTC().Format("2006-01-02 15:04 UTC"))
}

func day(t v1alpha1.Time) template.HTML { return timeElement(t, t.UTC().Format(time.DateOnly)) }

func timeElement(t v1alpha1.Time, text string) template.HTML {
	if t.IsZero() {
		return ""
	}
	stamp := t.UTC().Format(time.RFC3339)
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, stamp, stamp, template.HTMLEscapeString(text))) //nolint:gosec // made of times alone
}

// condition is a state as a page shows it: a word with a shape and a colour, so that
// neither is needed to read it.
type condition struct {
	// Class is good, wait, warn, bad or quiet.
	Class string
	Shape string
	Word  string
}

// classes of the states of intents, contracts, offers and clusters.
var classes = map[string]string{
	"Active": "good", "Placed": "good", "Fresh": "good", "Ready": "good", "Current": "good", "fits": "good", "chosen": "good", "yes": "good", "present": "good", "Verified": "good",
	"Reserved": "wait", "Peering": "wait", "Queued": "wait", "New": "wait", "Releasing": "wait", "Draining": "wait", "unknown": "wait", "NotJudged": "wait", "Running": "wait",
	"Degraded": "bad", "Refused": "bad", "Lost": "bad", "Failed": "bad", "Preempted": "bad", "error": "bad", "no": "bad", "Violates": "bad", "Unreachable": "bad",
	"Silent": "warn", "Frozen": "warn", "Suspended": "warn", "Unreported": "warn", "Elsewhere": "warn", "Expiring": "warn", "warning": "warn", "Withdrawn": "warn",
	"Cordoned": "quiet", "Static": "quiet", "Done": "quiet", "Cancelled": "quiet", "Released": "quiet", "NotCopied": "wait", "Expired": "quiet", "absent": "quiet", "TakenAsItIs": "quiet", "Verified, unsigned": "quiet",
}

var shapes = map[string]string{"good": "●", "wait": "◐", "warn": "▲", "bad": "■", "quiet": "○"}

func stateOf(word any) condition {
	text := fmt.Sprint(word)
	class, known := classes[text]
	if !known {
		class = "quiet"
	}
	return condition{class, shapes[class], text}
}
