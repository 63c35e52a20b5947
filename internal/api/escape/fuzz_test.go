package escape

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// FuzzEscape: what comes out of each encoder is one line of printable characters,
// and what is shown once is not shown in another way the second time.
func FuzzEscape(f *testing.F) {
	for _, s := range hostile.Texts() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, out := range map[string]string{"Line": Line(s), "Reason": Reason(s), "Markdown": Markdown(s), "Chat": Chat(s), "Code": Code(s), "Cell": Cell(s)} {
			bare := strings.ReplaceAll(out, joiner, "")
			if !utf8.ValidString(out) || strings.ContainsFunc(bare, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("%s of %q is %q", name, s, out)
			}
		}
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back, was string
		if err := cmp.Or(json.Unmarshal(doc, &was), json.Unmarshal(JSON(doc), &back)); err != nil || back != was {
			t.Fatalf("JSON of %q is %q: %v", doc, JSON(doc), err)
		}
		if strings.ContainsFunc(string(JSON(doc)), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("JSON of %q is %q", doc, JSON(doc))
		}
		if l := Line(s); Line(l) != l {
			t.Fatalf("Line of %q is %q, and then %q", s, l, Line(l))
		}
		if r := Reason(s); Reason(r) != r || len(r) > maxReason {
			t.Fatalf("Reason of %q is %q, and then %q", s, r, Reason(r))
		}
	})
}
