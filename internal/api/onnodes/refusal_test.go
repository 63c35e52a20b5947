package onnodes

import "testing"

// What a provider refuses for one of its nodes is read from what it reports, and from nothing
// else.
func TestRefusedFor(t *testing.T) {
	for text, want := range map[string]string{
		Refusal(one, "it is gone"):             one,
		Refusal(one, "2 of 4: own pods came"):  one,
		"node n0: it is gone":                  "",
		"node " + one:                          "",
		one + ": it is gone":                   "",
		"an administrator refuses node " + one: "",
		"":                                     "",
	} {
		if got := RefusedFor(text); got != want {
			t.Errorf("%q: node %q, want %q", text, got, want)
		}
	}
}
