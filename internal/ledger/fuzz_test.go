package ledger_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// FuzzKinds: whatever a generated file holds, it is a problem of its own path, or
// says the same when it is written again. The two readers of the list of what is
// set aside agree.
func FuzzKinds(f *testing.F) {
	all := files(f, nil, ledger.Changes{
		Contracts: []model.Change{{After: contract("vision", "a", 0, 0)}}, States: []model.StateChange{{After: state("vision", "a")}},
	})
	for _, path := range sortedPaths(all) {
		if strings.HasPrefix(path, "contracts/") {
			f.Add(all[path])
		}
	}
	for _, text := range []string{
		"apiVersion: fleetbroker.io/v1alpha1\nkind: SetAside\npieces:\n- {path: intents/vision/a.yaml, hash: sha256:00, why: \"killed\", at: 2026-11-20T12:00:00Z}\n",
		"apiVersion: fleetbroker.io/v1alpha1\nkind: SetAside\npieces: [{path: b, hash: x}, {path: a, hash: x}]\n",
		"apiVersion: fleetbroker.io/v1alpha1\nkind: Spend\nmetadata: {name: 2026-11, namespace: vision}\n",
		"apiVersion: fleetbroker.io/v1alpha1\nkind: IntentState\nmetadata: {name: a, namespace: vision}\n",
		"kind: Contract\nkind: Contract\n", "a: &a [*a, *a]", "", "\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		placed := map[string][]byte{"contracts/_set-aside.yaml": content}
		for _, path := range sortedPaths(all) {
			if strings.HasPrefix(path, "contracts/vision/") {
				placed[path] = content
			}
		}
		root := build(placed)
		l, problems, err := ledger.Read(t.Context(), root, nil)
		if err != nil {
			t.Fatal(err)
		}
		bad := map[string]bool{}
		for _, p := range problems {
			if bad[p.Path] = true; !strings.HasPrefix(p.Path, "contracts/") {
				t.Fatalf("a problem of %q", p.Path)
			}
		}
		if !bad["contracts/_set-aside.yaml"] {
			list, err := fleet.Recorded(root)
			if err != nil || len(list) != len(l.SetAside()) {
				t.Fatalf("the inputs' reader sees %d pieces, the ledger's %d, %v", len(list), len(l.SetAside()), err)
			}
			for i, p := range list {
				if p.SetAsidePiece != l.SetAside()[i] || p.Again {
					t.Fatalf("the inputs' reader sees %+v, the ledger's %+v", p, l.SetAside()[i])
				}
			}
		}
		for _, into := range []func() any{
			func() any { return &v1alpha1.Contract{} }, func() any { return &v1alpha1.IntentState{} },
			func() any { return &v1alpha1.Spend{} }, func() any { return &v1alpha1.SetAside{} },
		} {
			first := into()
			if ledger.Decode(content, first) != nil {
				continue
			}
			once, err := ledger.Encode(reflect.ValueOf(first).Elem().Interface())
			if err != nil {
				continue // what cannot be written is not what we wrote
			}
			second := into()
			if err := ledger.Decode(once, second); err != nil {
				t.Fatalf("%v\n%s", err, once)
			}
			twice, err := ledger.Encode(reflect.ValueOf(second).Elem().Interface())
			if err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%v\n%s\nwritten again\n%s", err, once, twice)
			}
		}
	})
}

func sortedPaths(all map[string][]byte) []string {
	var out []string
	_ = build(all).Walk(func(p string, e tree.Entry) error { // into memory
		if e.Kind != tree.Dir {
			out = append(out, p)
		}
		return nil
	})
	return out
}
