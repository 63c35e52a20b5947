package market_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

func TestTheMarketAsAGitTree(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	if root := m.Snapshot().Tree().Root.String(); root != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		t.Errorf("an empty market is %s, want git's empty tree", root)
	}
	f := gpus("paris", "h100", 8)
	f.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(2)}
	f.Spec.Held = map[string]v1alpha1.Resources{"vision-llm-0-k3f9q2ab": {"gpu": v1alpha1.AmountOf(4)}}
	report(t, m, "paris", gen(1, 1), gpus("paris", "a100", 4), f)
	report(t, m, "oslo", gen(1, 1), gpus("oslo", "l40s", 4))
	report(t, m, "empty", gen(1, 1))
	first := m.Snapshot()
	entries, err := first.Tree().Entries()
	if err != nil || len(entries) != 2 || entries[0].Name != "oslo.yaml" || entries[1].Name != "paris.yaml" {
		t.Fatal(entries, err)
	}
	content, err := first.Tree().ReadFile("paris.yaml", 0)
	if err != nil {
		t.Fatal(err)
	}
	back, err := market.ParseBlob(content)
	if err != nil || len(back) != 2 || back[0].Ref() != "paris/a100" || back[1].Ref() != "paris/h100" {
		t.Fatalf("%v %v\n%s", back, err, content)
	}
	if got := back[1].Spec; got.Used["gpu"].Int64() != 2 || got.Held["vision-llm-0-k3f9q2ab"]["gpu"].Int64() != 4 || got.GPU.Memory.Int64() != 80<<30 {
		t.Errorf("read back %+v", got)
	}
	if state, _, _ := market.StateOf(back[0]); state != model.Fresh {
		t.Errorf("a fresh provider reads as %v", state)
	}

	// An advert writes one provider's file again, and shares the others'.
	f.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(3)}
	report(t, m, "paris", gen(1, 2), gpus("paris", "a100", 4), f)
	second := m.Snapshot()
	if &first.Blobs()["oslo"].Content[0] != &second.Blobs()["oslo"].Content[0] {
		t.Error("another provider's file was written again")
	}
	if first.Blobs()["paris"].Hash == second.Blobs()["paris"].Hash || first.Tree().Root == second.Tree().Root {
		t.Error("a report left the tree as it was")
	}

	// What silence is known stands in the tree, so that the decision can be made again.
	c.pass(2 * time.Minute)
	back, err = market.ParseBlob(m.Snapshot().Blobs()["oslo"].Content)
	if err != nil {
		t.Fatal(err)
	}
	state, since, ends := market.StateOf(back[0])
	heard := v1alpha1.TimeOf(c.Now().Add(-2 * time.Minute))
	if state != model.Silent || since != heard || !ends.Equal(heard.Add(market.DefaultGrace)) {
		t.Errorf("%v since %v until %v", state, since, ends)
	}
	if _, shown, _ := m.Offers(market.Query{}); len(shown) != 3 || shown[0].Metadata.Annotations == nil {
		t.Errorf("what is shown says nothing of silence: %+v", shown)
	}
}

// TestBlobHashesAreGits asks git itself.
func TestBlobHashesAreGits(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	report(t, m, "paris", gen(1, 1), gpus("paris", "a100", 4))
	for _, b := range m.Snapshot().Blobs() {
		cmd := exec.Command("git", "hash-object", "--stdin")
		cmd.Stdin = bytes.NewReader(b.Content)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(out)); got != b.Hash.String() || b.Hash != tree.BlobHash(b.Content) {
			t.Errorf("hash %s, git says %s", b.Hash, got)
		}
	}
}

func TestParseBlob(t *testing.T) {
	const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\n"
	good := head + "metadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"4\", gpu: 1}\n  gpu: {model: NVIDIA-H100-80GB-HBM3}\n"
	list, err := market.ParseBlob([]byte("# a comment\n---\n" + good + "---\n---\n# only a comment\n---\n" + strings.Replace(good, "h100", "other", 1)))
	if err != nil || len(list) != 2 || list[1].Metadata.Name != "other" {
		t.Fatal(list, err)
	}
	if g := list[0].Spec.GPU; g.Model != "nvidia-h100" || g.Vendor != "nvidia" || g.Memory.Int64() != 80<<30 {
		t.Errorf("GPU %+v, want the names that agents report", g)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"another kind":   {"apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: a}\n", "document 1"},
		"unknown field":  {good + "  gpus: 3\n", "gpus"},
		"without a name": {head + "metadata: {namespace: paris}\nspec: {capacity: {}}\n", "metadata.name"},
		"twice":          {good + "---\n" + good, "twice"},
		"not YAML":       {"{", "document 1"},
	} {
		if _, err := market.ParseBlob([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
