package audit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Read version after version, a spend file says what it says when it is read
// whole: grown, shortened, put in another order, with an entry twice, and
// spoiled by hand.
func TestSpendFilesAreReadAsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := spendFiles{}
		sp := &v1alpha1.Spend{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSpend},
			Metadata: v1alpha1.Metadata{Name: "2026-11", Namespace: "vision"},
		}
		for range rapid.IntRange(1, 12).Draw(t, "versions") {
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0, 1:
				n := rapid.IntRange(0, 9).Draw(t, "name")
				sp.Entries = append(sp.Entries, v1alpha1.SpendEntry{
					Contract: fmt.Sprint("c-", n), Intent: "i", Provider: "paris", Amount: v1alpha1.DecimalFromInt(int64(n)), List: v1alpha1.DecimalFromInt(9), Currency: "EUR",
				})
			case 2:
				if len(sp.Entries) > 0 {
					sp.Entries = slices.Delete(sp.Entries, 0, 1)
				}
			default:
				slices.Reverse(sp.Entries)
			}
			content, err := ledger.Encode(sp)
			if err != nil {
				t.Fatal(err)
			}
			text := string(content)
			switch rapid.IntRange(0, 9).Draw(t, "spoil") {
			case 0:
				text = strings.Replace(text, "  intent: i\n", "  intent: i\n  intent: j\n", 1)
			case 1:
				text = strings.Replace(text, "  intent: i\n", "", 1)
			case 2:
				text = strings.Replace(text, "  intent: i\n", "  intent: i\n  more: x\n", 1)
			case 3:
				text = strings.TrimSuffix(text, "\n")
			case 4:
				text = strings.Replace(text, "- amount:", "# a word\n- amount:", 1)
			}
			want := &v1alpha1.Spend{}
			wantErr := ledger.Decode([]byte(text), want)
			got, gotErr := files.decode("p", []byte(text))
			if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) || wantErr == nil && (len(want.Entries)+len(got.Entries) > 0 && !reflect.DeepEqual(want, got)) {
				t.Fatalf("of\n%s\ngot %+v (%v)\nwant %+v (%v)", text, got, gotErr, want, wantErr)
			}
		}
	})
}
