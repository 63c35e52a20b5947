package simulate

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// elements counts the elements and attributes of a page.
func elements(t *testing.T, r *Result) map[string]int {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			out[n.Data]++
			for _, a := range n.Attr {
				out[n.Data+" "+a.Key]++
			}
		}
		if n.Type == html.CommentNode {
			out["comment"]++
		}
	}
	return out
}

// A report's page shows hostile texts: it has the elements that it has of plain
// ones, and no more.
func TestTexts_HTMLShowsThem(t *testing.T) {
	page := func(s string) map[string]int {
		return elements(t, &Result{Currency: s, Objective: s, Supply: Supply{CPU: s, Memory: s}, Policies: []Outcome{{Policy: s, Arrived: 1, Placed: 1}, {Policy: s}}})
	}
	want := page("plain")
	for _, s := range hostile.Texts() {
		if strings.TrimSpace(s) == "" {
			continue
		}
		got := page(s)
		for name, n := range got {
			if n != want[name] {
				t.Errorf("%q: %d of %s, want %d", s, n, name, want[name])
			}
		}
	}
}
