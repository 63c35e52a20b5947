package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestExitCodes(t *testing.T) {
	cases := map[string]struct {
		err  error
		want int
	}{
		"nothing":          {nil, 0},
		"changes":          {errChanges, 2},
		"wrapped changes":  {fmt.Errorf("plan: %w", errChanges), 2},
		"findings":         {errFindings, 1},
		"usage":            {usagef("no"), 1},
		"anything else":    {errors.New("no"), 1},
		"with a hint":      {hinted(errors.New("no"), "do"), 1},
		"no error, a hint": {hinted(nil, "do"), 0},
	}
	for name, c := range cases {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestComplain(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"changes are no error":   {errChanges, ""},
		"findings are printed":   {errFindings, ""},
		"an error":               {errors.New("no such thing"), "fleetbroker: no such thing\n"},
		"an error with a remedy": {hinted(errors.New("no such thing"), "make it"), "fleetbroker: no such thing\nhint: make it\n"},
		"a wrong command line":   {usagef("want %d", 1), "fleetbroker: want 1\nhint: fleetbroker plan --help\n"},
	}
	for name, c := range cases {
		var b bytes.Buffer
		complain(&b, "fleetbroker plan", c.err)
		if b.String() != c.want {
			t.Errorf("%s: got %q, want %q", name, b.String(), c.want)
		}
	}
}

func TestTable(t *testing.T) {
	now := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	fill := func(s Streams) *table {
		s.Now = func() time.Time { return now }
		t := newTable(s, "NAME", ">EUR/H", ">AGE")
		t.row("paris|1", t.money(v1alpha1.MustDecimal("12.0944")), t.age(v1alpha1.TimeOf(now.Add(-2*time.Hour))))
		t.row("x\x1b[31m", t.money(v1alpha1.Zero), t.age(v1alpha1.Time{}))
		return t
	}
	cases := map[string]struct {
		terminal, markdown bool
		want               string
	}{
		"terminal": {true, false, "NAME          EUR/H   AGE\nparis|1       12.09    2h\nx\\u001b[31m    0.00     -\n"},
		"pipe":     {false, false, "paris|1\t12.0944\t2026-11-20T09:00:00Z\nx\\u001b[31m\t0\t-\n"},
		"markdown": {true, true, "| name | eur/h | age |\n|-|-:|-:|\n| paris\\|1 | 12.09 | 2h |\n| x\\\\u001b\\[31m | 0.00 | - |\n"},
	}
	for name, c := range cases {
		var b bytes.Buffer
		tab := fill(Streams{Terminal: c.terminal})
		print := tab.print
		if c.markdown {
			print = tab.markdown
		}
		if err := print(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", name, b.String(), c.want)
		}
	}
}

func TestIsURL(t *testing.T) {
	cases := map[string]bool{
		"https://git.example.org/fleet.git": true,
		"file:///srv/fleet":                 true,
		"git@git.example.org:acme/fleet":    true,
		"fleet":                             false,
		"./fleet":                           false,
		"dir/a@b:c":                         false,
		"C:fleet":                           false,
		"":                                  false,
	}
	for s, want := range cases {
		if got := isURL(s); got != want {
			t.Errorf("%q: got %t", s, got)
		}
	}
}

func TestFindingsInEachForm(t *testing.T) {
	list := []finding{
		{File: "intents/a,b/x.yaml", Line: 9, Column: 7, Message: "100% wrong:\nreally", Severity: "error", Code: "UnknownField"},
		{File: "fleet.yaml", Line: 1, Column: 1, Message: "odd \x1b[31m", Severity: "warning"},
	}
	cases := map[string][]string{
		"text":   {"intents/a,b/x.yaml:9:7: 100% wrong: really\n", "fleet.yaml:1:1: warning: odd \\u001b[31m\n"},
		"github": {"::error file=intents/a%2Cb/x.yaml,line=9,col=7::100%25 wrong:%0Areally\n", "::warning file=fleet.yaml,line=1,col=1::"},
		"gitlab": {`"severity": "major"`, `"begin": 9`, `"check_name": "fleetbroker/UnknownField"`},
		"sarif":  {`"version": "2.1.0"`, `"ruleId": "UnknownField"`, `"level": "warning"`, `"startColumn": 7`},
		"json":   {`"column": 7`, `"code": "UnknownField"`},
	}
	for form, wants := range cases {
		var b bytes.Buffer
		if err := printFindings(&b, form, list); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not in\n%s", form, want, b.String())
			}
		}
	}
	for _, form := range findingForms {
		var b bytes.Buffer
		if err := printFindings(&b, form, nil); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "null") {
			t.Errorf("%s: no findings are %s", form, b.String())
		}
	}
}

func TestOnLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "[::1]:8080": true, "localhost:8080": true, "127.8.0.1:0": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "10.0.0.1:8080": false, "localhost.example.org:8080": false, "127.0.0.1": false, "": false,
	} {
		if got := onLoopback(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}
