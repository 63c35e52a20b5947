package reconciler

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// What consumers are told at the cost of what changed is what a daemon that has
// just started would tell them.
func TestDeliveriesFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := func(name, role, id string) *v1alpha1.Cluster {
			return &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.ClusterSpec{Roles: []string{role}, Liqo: v1alpha1.LiqoSpec{ClusterID: id}}}
		}
		f := &fleet.Fleet{Policy: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{}}
		for name, role := range map[string]string{"rome": "consumer", "turin": "consumer", "paris": "provider", "oslo": "provider"} {
			f.Clusters[name] = cluster(name, role, "")
		}
		led, follows := ledger.Empty(), deliveries{}
		for n := range rapid.IntRange(1, 10).Draw(t, "rounds") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				next := *f
				f = &next // somebody changed an intent
			case 1:
				next := *f
				next.Clusters = maps.Clone(f.Clusters)
				next.Clusters["paris"] = cluster("paris", rapid.SampledFrom([]string{"provider", "consumer"}).Draw(t, "role"), fmt.Sprint("id-", n))
				f = &next
			case 2:
				next, policy, auto := *f, *f.Policy, rapid.Bool().Draw(t, "auto")
				policy.Peering.Auto = &auto
				next.Policy = &policy
				f = &next
			default:
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "contract")
				ch := model.Change{Before: led.Contract(name)}
				if ch.Before == nil || rapid.Bool().Draw(t, "stays") {
					ch.After = &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"}}
					ch.After.Spec.Intent.Name = name
					ch.After.Spec.Consumer = rapid.SampledFrom([]string{"rome", "turin"}).Draw(t, "consumer")
					ch.After.Spec.Provider = rapid.SampledFrom([]string{"paris", "oslo"}).Draw(t, "provider")
					ch.After.Status.Phase = rapid.SampledFrom([]v1alpha1.Phase{v1alpha1.PhaseActive, v1alpha1.PhaseReleased}).Draw(t, "phase")
				}
				led = led.With(ledger.Changes{Contracts: []model.Change{ch}})
			}
			in := &inputs{fleet: f, ledger: led, key: tree.Hash{byte(n), 1}}
			files := tree.NewMemory().Build(map[string][]byte{"overlays/rome/x.yaml": fmt.Append(nil, n), "manifests/rome/x.yaml": fmt.Append(nil, n)})
			in.heads = gitrepo.Heads{Inputs: gitrepo.Head{Tree: files}, Ledger: gitrepo.Head{Tree: files}}
			told, anew := &clusters{}, &clusters{}
			if err := follows.to(told, in, false, nil); err != nil {
				t.Fatal(err)
			}
			if err := (&deliveries{}).to(anew, in, false, nil); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(told.desired, anew.desired) {
				t.Fatalf("told %v\nwant %v", told.desired, anew.desired)
			}
		}
	})
}

// A file, link or submodule where a consumer's overlay should be holds up nobody.
func TestDeliveries_OverlayThatIsNoDirectory(t *testing.T) {
	f := &fleet.Fleet{Policy: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{}}
	for _, name := range []string{"rome", "turin"} {
		f.Clusters[name] = &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.ClusterSpec{Roles: []string{"consumer"}}}
	}
	m := tree.NewMemory()
	for _, kind := range []tree.Kind{tree.File, tree.Symlink, tree.Submodule} {
		overlays := m.AddDir([]tree.Entry{{Name: "rome", Kind: kind, Hash: m.AddFile([]byte("../intents"))}})
		of := tree.Tree{Store: m, Root: m.AddDir([]tree.Entry{{Name: "overlays", Kind: tree.Dir, Hash: overlays}})}
		in := &inputs{fleet: f, ledger: ledger.Empty(), key: tree.Hash{1}, heads: gitrepo.Heads{Inputs: gitrepo.Head{Tree: of}}}
		told := &clusters{}
		if err := (&deliveries{}).to(told, in, false, nil); err != nil || len(told.desired) != 2 {
			t.Errorf("kind %d: told %d clusters, %v", kind, len(told.desired), err)
		}
	}
}
