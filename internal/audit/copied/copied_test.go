package copied

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const commit = "0123456789012345678901234567890123456789"

// ledger is one with the copy of a source, after change.
func ledger(t *testing.T, change func(*v1alpha1.SourceCopy, map[string][]byte)) tree.Tree {
	t.Helper()
	files := map[string][]byte{"sources/own/intents/vision/a.yaml": []byte("a: 1\n"), "contracts/x": []byte("x")}
	record := &v1alpha1.SourceCopy{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSourceCopy}, Metadata: v1alpha1.Metadata{Name: "own"},
		URL: "https://git.example.org/own.git", Branch: "main", Commit: commit,
		Files: []v1alpha1.SourceCopyFile{{Path: "intents/vision/a.yaml", Hash: tree.BlobHash([]byte("a: 1\n")).String(), Commit: commit, Author: "Ada <ada@example.org>"}},
	}
	change(record, files)
	if record.URL != "" {
		text, err := genyaml.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		files["sources/own/source.yaml"] = text
	}
	return tree.NewMemory().Build(files)
}

func TestJudge(t *testing.T) {
	entry := v1alpha1.IntentSource{Name: "own", URL: "https://git.example.org/own.git", Tenants: []string{"vision"}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.SourceCopy, map[string][]byte)
		entry  func(*v1alpha1.IntentSource)
		said   []string
		want   string
	}{
		"in order": {},
		"another content": {change: func(_ *v1alpha1.SourceCopy, f map[string][]byte) {
			f["sources/own/intents/vision/a.yaml"] = []byte("a: 2\n")
		}, want: "its content is not the one that source.yaml states"},
		"a file more": {change: func(_ *v1alpha1.SourceCopy, f map[string][]byte) {
			f["sources/own/intents/vision/b.yaml"] = []byte("b")
		}, want: "source.yaml does not state it"},
		"a file less": {change: func(_ *v1alpha1.SourceCopy, f map[string][]byte) {
			delete(f, "sources/own/intents/vision/a.yaml")
			f["sources/own/x"] = []byte("x")
		}, want: "source.yaml does not state it"},
		"no record":      {change: func(r *v1alpha1.SourceCopy, _ map[string][]byte) { r.URL = "" }, said: []string{"own -"}, want: "it is missing, or is no SourceCopy"},
		"another's name": {change: func(r *v1alpha1.SourceCopy, _ map[string][]byte) { r.Metadata.Name = "other" }, said: []string{"own -"}, want: "is no SourceCopy of this source"},
		"no commit":      {change: func(r *v1alpha1.SourceCopy, _ map[string][]byte) { r.Commit = "main" }, said: []string{"own main"}, want: `commit "main" is none`},
		"another URL":    {change: func(r *v1alpha1.SourceCopy, _ map[string][]byte) { r.URL = "https://evil.example.org/own.git" }, want: "fleet.yaml does not name"},
		"another tenant": {entry: func(e *v1alpha1.IntentSource) { e.Tenants = []string{"nlp"} }, want: "its entry in fleet.yaml does not allow it"},
		"unsigned":       {entry: func(e *v1alpha1.IntentSource) { e.Signers = []v1alpha1.Signer{{Principal: "ada"}} }, want: "names signers, and it states none"},
		"unsaid":         {said: []string{}, want: "Source says []"},
		"said otherwise": {said: []string{"own " + strings.Repeat("a", 40)}, want: "Source says"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change == nil {
				c.change = func(*v1alpha1.SourceCopy, map[string][]byte) {}
			}
			if c.said == nil {
				c.said = []string{"own " + commit}
			}
			e := entry
			if c.entry != nil {
				c.entry(&e)
			}
			after := ledger(t, c.change)
			faults, err := Judge(Commit{After: after, Changed: []string{"sources/own/source.yaml", "contracts/x"}, Said: c.said, Policy: &v1alpha1.FleetSpec{Sources: []v1alpha1.IntentSource{e}}})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, f := range faults {
				got[f.Why] = true
			}
			text := strings.Join(slices.Sorted(maps.Keys(got)), "\n")
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// A copy that goes is right only where the fleet names the source no more.
func TestJudge_OfACopyThatGoes(t *testing.T) {
	after := tree.NewMemory().Build(map[string][]byte{"contracts/x": []byte("x")})
	c := Commit{After: after, Changed: []string{"sources/own/source.yaml"}, Said: []string{"own -"}, Policy: &v1alpha1.FleetSpec{}}
	if faults, err := Judge(c); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
	c.Policy = &v1alpha1.FleetSpec{Sources: []v1alpha1.IntentSource{{Name: "own"}}}
	if faults, err := Judge(c); err != nil || len(faults) != 1 || !strings.Contains(faults[0].Why, "deleted, and fleet.yaml names the source") {
		t.Errorf("%v, %v", faults, err)
	}
}
