package forms

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// fleetOf is a fleet with an intent a for rome, by its tenant, and b for bern.
func fleetOf(t *testing.T, rome string) *fleet.Fleet {
	t.Helper()
	const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: "
	files := map[string][]byte{
		"fleet.yaml":             []byte(head + "Fleet\nmetadata: {name: acme}\nspec: {}\n"),
		"clusters/rome.yaml":     []byte(head + "Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]" + rome + "}\n"),
		"clusters/bern.yaml":     []byte(head + "Cluster\nmetadata: {name: bern}\nspec: {roles: [consumer]}\n"),
		"tenants/vision.yaml":    []byte(head + "Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome, bern]}\n"),
		"intents/vision/a.yaml":  []byte(head + "ResourceIntent\nmetadata: {name: a, namespace: vision}\nspec: {resources: {cpu: \"1\"}}\n"),
		"intents/vision/b.yaml":  []byte(head + "ResourceIntent\nmetadata: {name: b, namespace: vision}\nspec: {consumer: bern, resources: {cpu: \"1\"}}\n"),
		"intents/vision/c.yaml":  []byte(head + "ResourceIntent\nmetadata: {name: c, namespace: vision}\nspec: {consumer: oslo, resources: {cpu: \"1\"}}\n"),
		"clusters/paris.yaml":    []byte(head + "Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n"),
		"intents/nobody/it.yaml": []byte(head + "ResourceIntent\nmetadata: {name: it, namespace: nobody}\nspec: {consumer: rome, resources: {cpu: \"1\"}}\n"),
	}
	f, err := fleet.NewReader().Read(t.Context(), tree.NewMemory().Build(files), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func refusedBy(f *fleet.Fleet) (out string) {
	for _, it := range f.Intents {
		if it.ProblemCode == Code {
			out += it.Metadata.Name + " "
		}
	}
	return out
}

// What has no contract waits for a form that the consumer serves; where nothing is known, or
// the webhook does it, nobody does.
func TestRefuser_RefusesWhatNobodyWouldAdmit(t *testing.T) {
	held := func(phase v1alpha1.Phase) *ledger.Ledger {
		return ledger.Empty().With(ledger.Changes{Contracts: []model.Change{{After: &v1alpha1.Contract{
			Metadata: v1alpha1.Metadata{Name: "vision-a-0-x", Namespace: "vision"},
			Spec:     v1alpha1.ContractSpec{Intent: v1alpha1.ContractIntent{Name: "a"}, Consumer: "rome", Provider: "paris"},
			Status:   v1alpha1.ContractStatus{Phase: phase},
		}}}})
	}
	for name, c := range map[string]struct {
		rome   string
		served map[string]string
		ledger *ledger.Ledger
		want   string
	}{
		"no form":                      {"", map[string]string{"rome": wire.AdmissionNone, "paris": wire.AdmissionNone, "gone": wire.AdmissionNone}, ledger.Empty(), "a "},
		"the file asks for the beta":   {", admission: v1beta1", map[string]string{"rome": wire.AdmissionNone}, ledger.Empty(), "a "},
		"both consumers":               {"", map[string]string{"rome": wire.AdmissionNone, "bern": wire.AdmissionNone}, ledger.Empty(), "a b "},
		"an ended contract":            {"", map[string]string{"rome": wire.AdmissionNone}, held(v1alpha1.PhaseReleased), "a "},
		"a contract":                   {"", map[string]string{"rome": wire.AdmissionNone}, held(v1alpha1.PhaseActive), ""},
		"the webhook":                  {", admission: webhook", map[string]string{"rome": wire.AdmissionNone}, ledger.Empty(), ""},
		"another version of the kind":  {"", map[string]string{"rome": v1alpha1.AdmissionV1Beta1}, ledger.Empty(), ""},
		"nothing is known":             {"", nil, ledger.Empty(), ""},
		"nothing is known of this one": {"", map[string]string{"bern": v1alpha1.AdmissionV1}, ledger.Empty(), ""},
	} {
		f := fleetOf(t, c.rome)
		var r Refuser
		got := r.Fleet(f, c.ledger, c.served)
		if refusedBy(got) != c.want || refusedBy(f) != "" {
			t.Errorf("%s: refused %q, and in the fleet as read %q; want %q", name, refusedBy(got), refusedBy(f), c.want)
		}
		if c.want == "" && got != f {
			t.Errorf("%s: nothing is refused, and the fleet is another", name)
		}
		for _, it := range got.Intents {
			if it.ProblemCode == Code && !strings.Contains(it.Problem, "admission: webhook") {
				t.Errorf("%s: no remedy in %q", name, it.Problem)
			}
		}
	}
}

// The same is the same by its address; a form that comes to be served ends the refusal.
func TestRefuser_KeepsAddresses(t *testing.T) {
	f, none, both := fleetOf(t, ""), map[string]string{"rome": wire.AdmissionNone}, map[string]string{"rome": wire.AdmissionNone, "bern": wire.AdmissionNone}
	var r Refuser
	first := r.Fleet(f, ledger.Empty(), none)
	if first == f || r.Fleet(f, ledger.Empty(), none) != first {
		t.Fatal("the same fleet and reports gave another fleet")
	}
	second := r.Fleet(f, ledger.Empty(), both)
	if second == first || refusedBy(second) != "a b " {
		t.Fatalf("refused %q", refusedBy(second))
	}
	for i := range f.Intents {
		if first.Intents[i].ProblemCode == Code && second.Intents[i] != first.Intents[i] {
			t.Errorf("%s is another, and nothing of it changed", f.Intents[i].Metadata.Name)
		}
	}
	if r.Fleet(f, ledger.Empty(), map[string]string{"rome": v1alpha1.AdmissionV1}) != f {
		t.Error("a form is served, and the refusal stays")
	}
}
