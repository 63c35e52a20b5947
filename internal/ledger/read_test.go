package ledger_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

func TestUnreadableFilesAreProblems(t *testing.T) {
	good := contract("vision", "llm", 0, 0)
	base := files(t, nil, ledger.Changes{
		Contracts: []model.Change{{After: good}},
		States:    []model.StateChange{{After: state("vision", "llm")}},
	})
	path := ledger.ContractPath(good)
	other := contract("vision", "other", 0, 0)
	twin := *other
	twin.Metadata.Name = good.Metadata.Name
	text := func(c *v1alpha1.Contract) []byte {
		b, err := ledger.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cases := map[string]struct {
		path    string
		content []byte
		want    string
	}{
		"not YAML":                   {path, []byte("{"), "yaml"},
		"unknown field":              {path, append(text(good), "extra: 1\n"...), "extra"},
		"repeated key":               {path, append(text(good), "kind: Contract\n"...), "kind"},
		"empty":                      {path, nil, "want Contract"},
		"another kind":               {path, []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\n"), "want Contract"},
		"unknown phase":              {path, []byte(strings.Replace(string(text(good)), "\n  phase: Active", "\n  phase: Asleep", 1)), "Asleep"},
		"another contract's file":    {path, text(other), "holds the contract of contracts/vision/"},
		"state of another intent":    {ledger.StatePath("vision", "llm"), []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: IntentState\nmetadata: {name: x, namespace: vision}\n"), "vision/x"},
		"file beside the tenants":    {"contracts/stray.yaml", []byte("a: b\n"), "no place"},
		"file in a shard":            {"contracts/vision/00/stray.yaml", []byte("a: b\n"), "no place"},
		"intent in the wrong shard":  {"contracts/vision/00/llm/x.yaml", []byte("a: b\n"), "belongs in"},
		"directory below an intent":  {ledger.IntentDir("vision", "llm") + "/sub/x.yaml", []byte("a: b\n"), "no place"},
		"spend of another month":     {"contracts/vision/spend-2026-10.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Spend\nmetadata: {name: 2026-11, namespace: vision}\nentries: []\n"), "2026-11"},
		"month that does not exist":  {"contracts/vision/spend-2026-13.yaml", []byte("a: b\n"), "no place"},
		"two files claim one name":   {ledger.ContractPath(&twin), text(&twin), "same name"},
		"something else is harmless": {"contracts/vision/.gitkeep", nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := maps.Clone(base)
			f[tc.path] = tc.content
			broken := build(f)
			l, problems, err := ledger.Read(context.Background(), broken, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if len(problems) > 0 || l.Broken() != nil {
					t.Fatal(problems)
				}
				return
			}
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), tc.want) || !strings.HasPrefix(tc.path, problems[0].Path) {
				t.Fatalf("problems %v, want one of %s with %q", problems, tc.path, tc.want)
			}
			if l.Broken() == nil {
				t.Fatal("a ledger with a problem says it is whole")
			}
			// The problem stays known though nothing is read again, and goes with the file.
			again, problems, err := ledger.Read(context.Background(), broken, l)
			if err != nil || len(problems) != 1 || again.Broken() == nil {
				t.Fatal("read again:", problems, err)
			}
			healed, problems, err := ledger.Read(context.Background(), build(base), l)
			if err != nil || len(problems) != 0 || healed.Contract(good.Metadata.Name) == nil || healed.Len() != 1 {
				t.Fatal("healed:", problems, err)
			}
		})
	}
}

func TestSymbolicLinksAreRefused(t *testing.T) {
	m := tree.NewMemory()
	link := tree.Entry{Name: "vision", Kind: tree.Symlink, Hash: m.AddFile([]byte("/etc"))}
	root := m.AddDir([]tree.Entry{{Name: "contracts", Kind: tree.Dir, Hash: m.AddDir([]tree.Entry{link})}})
	_, problems, err := ledger.Read(context.Background(), tree.Tree{Store: m, Root: root}, nil)
	if err != nil || len(problems) != 1 || problems[0].Path != "contracts/vision" {
		t.Fatal(problems, err)
	}
}

// counting counts what a read asks of its store.
type counting struct {
	tree.Store
	dirs, files int
}

func (c *counting) Dir(h tree.Hash) ([]tree.Entry, error) { c.dirs++; return c.Store.Dir(h) }
func (c *counting) File(h tree.Hash, limit int64) ([]byte, error) {
	c.files++
	return c.Store.File(h, limit)
}

// TestReadingAgainReadsOnlyWhatChanged: one directory of each level and the
// files of one intent.
func TestReadingAgainReadsOnlyWhatChanged(t *testing.T) {
	base := big(t, 5, 40, 4)
	prev, _, err := ledger.Read(context.Background(), build(base), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := *contract("team-003", "job-00008", 0, 0)
	c.Status.Phase = v1alpha1.PhaseDegraded
	next := build(files(t, base, ledger.Changes{Contracts: []model.Change{{After: &c}}}))
	store := &counting{Store: next.Store}
	l, _, err := ledger.Read(context.Background(), tree.Tree{Store: store, Root: next.Root}, prev)
	if err != nil || l.Contract(c.Metadata.Name).Status.Phase != v1alpha1.PhaseDegraded {
		t.Fatal(err)
	}
	// root, contracts, tenant, shard, intent; contract and state.
	if store.dirs > 5 || store.files > 2 {
		t.Fatalf("read %d directories and %d files", store.dirs, store.files)
	}
	store.dirs, store.files = 0, 0
	if same, _, err := ledger.Read(context.Background(), tree.Tree{Store: store, Root: next.Root}, l); err != nil || same != l || store.files > 0 || store.dirs > 1 {
		t.Fatalf("an unchanged tree made another ledger or was read: %d directories, %d files, %v", store.dirs, store.files, err)
	}
}

func TestAReadThatFailsChangesNothing(t *testing.T) {
	full := build(big(t, 2, 10, 1))
	empty := tree.Tree{Store: tree.NewMemory(), Root: full.Root}
	if _, _, err := ledger.Read(context.Background(), empty, nil); err == nil {
		t.Fatal("a missing object is no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := ledger.Read(ctx, full, nil); err == nil {
		t.Fatal("a cancelled read is no error")
	}
}

// failing is a store of which one file cannot be read for now.
type failing struct {
	tree.Store
	hash tree.Hash
}

func (f failing) File(h tree.Hash, limit int64) ([]byte, error) {
	if h == f.hash {
		return nil, errors.New("disk is gone")
	}
	return f.Store.File(h, limit)
}

// TestAFailureOfTheStoreIsNotTheFilesMistake: it fails the read, and is
// forgotten when the store is well again.
func TestAFailureOfTheStoreIsNotTheFilesMistake(t *testing.T) {
	c := contract("vision", "llm", 0, 0)
	spend := &v1alpha1.Spend{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSpend}, Metadata: v1alpha1.Metadata{Name: "2026-10", Namespace: "vision"},
		Entries: []v1alpha1.SpendEntry{{Contract: "x"}},
	}
	f := files(t, nil, ledger.Changes{
		Contracts: []model.Change{{After: c}}, States: []model.StateChange{{After: state("vision", "llm")}}, Spends: []*v1alpha1.Spend{spend},
	})
	whole := build(f)
	for name, content := range f {
		broken := tree.Tree{Store: failing{whole.Store, tree.BlobHash(content)}, Root: whole.Root}
		if l, problems, err := ledger.Read(context.Background(), broken, nil); err == nil || l != nil {
			t.Errorf("%s: %v %v, want the read to fail", name, problems, err)
		}
	}
	if _, problems, err := ledger.Read(context.Background(), whole, nil); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
