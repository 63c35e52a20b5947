package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
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
