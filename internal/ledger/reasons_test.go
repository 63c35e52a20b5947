package ledger_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Files of older versions, "<reason>: <message>" in one text, are read like those of
// today, and compare with what was written then.
func TestDecode_TakesOlderReasonsApart(t *testing.T) {
	read := func(name string) (string, *v1alpha1.Contract) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		c := new(v1alpha1.Contract)
		if err := ledger.Decode(text, c); err != nil {
			t.Fatal(err)
		}
		return string(text), c
	}
	older, was := read("contract-older.yaml")
	_, is := read("contract.yaml")
	if !reflect.DeepEqual(was, is) {
		t.Errorf("got %+v, want %+v", was.Status, is.Status)
	}
	if got, err := ledger.Encode(ledger.Together(is)); err != nil || string(got) != older {
		t.Errorf("in the older form got %s (%v), want %s", got, err, older)
	}
	if is.Status.Message == "" || is.Status.History[2].Message == "" {
		t.Errorf("Together changed what it was given: %+v", is.Status)
	}
	for text, want := range map[string]ledger.Reason{
		"":                                {},
		"ProviderLost":                    {Code: "ProviderLost"},
		"GrantedLess: 1 of 2 x: as asked": {Code: "GrantedLess", Message: "1 of 2 x: as asked"},
	} {
		c := *is
		c.Status.Reason, c.Status.Message = text, ""
		encoded, err := ledger.Encode(&c)
		if err != nil {
			t.Fatal(err)
		}
		got := new(v1alpha1.Contract)
		if err := ledger.Decode(encoded, got); err != nil || ledger.ReasonOf(got) != want {
			t.Errorf("%q: got %+v (%v), want %+v", text, ledger.ReasonOf(got), err, want)
		}
		if why := got.Status.Why(); why != text {
			t.Errorf("in one line got %q, want %q", why, text)
		}
	}
}
