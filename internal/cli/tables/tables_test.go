package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)

func filled(v View) *Table {
	v.Now = func() time.Time { return noon }
	t := New(v, "NAME", ">EUR/H=hourly", ">AGE", "REASON", "+GPU MEMORY")
	t.Row("paris|1", t.Money(v1alpha1.MustDecimal("12.0944")), t.Age(v1alpha1.TimeOf(noon.Add(-2*time.Hour))), "it costs more than the budget", "80Gi")
	t.Row("x\x1b[31m", t.Money(v1alpha1.Zero), t.Age(v1alpha1.Time{}), "", "-")
	return t
}

func TestForms(t *testing.T) {
	cases := map[string]struct {
		v        View
		markdown bool
		want     string
	}{
		"terminal":      {View{Terminal: true}, false, "NAME          EUR/H   AGE   REASON\nparis|1       12.09    2h   it costs more than the budget\nx\\u001b[31m    0.00     -   -\n"},
		"narrow":        {View{Terminal: true, Width: 45}, false, "NAME          EUR/H   AGE   REASON\nparis|1       12.09    2h   it costs more th…\nx\\u001b[31m    0.00     -   -\n"},
		"very narrow":   {View{Terminal: true, Width: 10}, false, "NAME          EUR/H   AGE   REASON\nparis|1       12.09    2h   it costs mo…\nx\\u001b[31m    0.00     -   -\n"},
		"wide, narrow":  {View{Terminal: true, Width: 45, Wide: true}, false, "NAME          EUR/H   AGE   REASON                          GPU MEMORY\nparis|1       12.09    2h   it costs more than the budget   80Gi\nx\\u001b[31m    0.00     -   -                               -\n"},
		"pipe":          {View{Width: 45}, false, "NAME\tEUR/H\tAGE\tREASON\nparis|1\t12.0944\t2026-11-20T09:00:00Z\tit costs more than the budget\nx\\u001b[31m\t0\t-\t-\n"},
		"without heads": {View{NoHeaders: true}, false, "paris|1\t12.0944\t2026-11-20T09:00:00Z\tit costs more than the budget\nx\\u001b[31m\t0\t-\t-\n"},
		"markdown":      {View{Terminal: true}, true, "| name | eur/h | age | reason |\n|-|-:|-:|-|\n| paris\\|1 | 12.09 | 2h | it costs more than the budget |\n| x\\\\u001b\\[31m | 0.00 | - | - |\n"},
	}
	for name, c := range cases {
		var b bytes.Buffer
		tab := filled(c.v)
		print := tab.Print
		if c.markdown {
			print = tab.Markdown
		}
		if err := print(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// What the wide form shows is what an object in JSON has, under "columns", as values.
func TestListedHasEveryColumn(t *testing.T) {
	type object struct {
		Kind string `json:"kind"`
	}
	tab := filled(View{Terminal: true})
	b, err := json.Marshal(Listed(tab, []object{{"a"}, {"b"}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"kind":"a","columns":{"age":"2026-11-20T09:00:00Z","gpuMemory":"80Gi","hourly":"12.0944","name":"paris|1","reason":"it costs more than the budget"}},` +
		`{"kind":"b","columns":{"age":null,"gpuMemory":null,"hourly":"0","name":"x\u001b[31m","reason":null}}]`
	if string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
	if b, err := json.Marshal(Listed(tab, []struct{}{{}, {}})); err != nil || !bytes.HasPrefix(b, []byte(`[{"columns":{`)) {
		t.Errorf("of an empty object: %s, %v", b, err)
	}
	if _, err := json.Marshal(Listed(tab, []int{1, 2})); err == nil {
		t.Error("a number has columns")
	}
}

// Whatever is in the cells, lines fit a terminal that is wide enough for the columns that
// are not cut, and a row stays one line of as many cells as there are columns.
func TestLinesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(60, 200).Draw(t, "width")
		text := rapid.StringN(0, 300, -1)
		tab := New(View{Terminal: true, Width: width, Now: func() time.Time { return noon }}, "NAME", "REASON", ">N", "MESSAGE")
		pipe := New(View{}, "NAME", "REASON", ">N", "MESSAGE")
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			row := []any{"intent", text.Draw(t, "reason"), rapid.IntRange(0, 99).Draw(t, "n"), text.Draw(t, "message")}
			tab.Row(row...)
			pipe.Row(row...)
		}
		var shown, piped bytes.Buffer
		if tab.Print(&shown) != nil || pipe.Print(&piped) != nil {
			t.Fatal("not printed")
		}
		for line := range strings.Lines(shown.String()) {
			if n := cells(strings.TrimRight(line, "\n")); n > width {
				t.Fatalf("%d of %d columns: %q", n, width, line)
			}
		}
		for line := range strings.Lines(piped.String()) {
			if strings.Count(line, "\t") != 3 {
				t.Fatalf("%q", line)
			}
		}
		if n := strings.Count(piped.String(), "\n"); n != pipe.Len()+1 {
			t.Fatalf("%d lines of %d rows", n, pipe.Len())
		}
	})
}

func TestCellsAndCut(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "Zürich": 6, "東京": 4, "e\u0301": 1, "🚀x": 3} {
		if got := cells(text); got != want {
			t.Errorf("%q takes %d cells, want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"東京都", 4, "東…"}, {"a bc", 3, "a…"}} {
		if got := Cut(c.text, c.width); got != c.want {
			t.Errorf("Cut(%q, %d) is %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	for name, want := range map[string]string{"GPU MEMORY": "gpuMemory", "AGE": "age", "EUR/H": "eurH", ">=": "", "P90": "p90"} {
		if got := camel(name); got != want {
			t.Errorf("camel(%q) is %q, want %q", name, got, want)
		}
	}
}

func TestColors(t *testing.T) {
	tab := New(View{Terminal: true, Color: true}, "STATE", "NAME")
	tab.Row("Degraded, ProviderLost", "Active")
	var b bytes.Buffer
	if err := tab.Print(&b); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("STATE%s   NAME\n\x1b[31mDegraded, ProviderLost\x1b[0m   Active\n", strings.Repeat(" ", 17)); b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
