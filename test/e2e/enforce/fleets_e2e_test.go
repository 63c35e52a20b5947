//go:build e2e

package enforce

import (
	"fmt"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// beside is a second fleet in a first one's clusters: a repository, keys, an id, a
// daemon and agents of its own.
func (f *fleet) beside() *fleet {
	f.t.Helper()
	o := f.Options
	o.Dir, o.On = f.t.TempDir(), f.Clusters
	b := &fleet{t: f.t, ctx: f.ctx, agents: map[string]*env.Program{}, rome: f.rome, paris: f.paris, twin: f.twin}
	b.Fleet = rigtest.Start(f.ctx, f.t, o, func(r *rigtest.Fleet) {
		b.Fleet = r
		b.logs()
	})
	var err error
	if b.daemon, err = b.Daemon(f.ctx, "two", "--poll-interval", "1s"); err != nil {
		f.t.Fatal(err)
	}
	b.daemon.NotifyPushes(f.ctx)
	return b
}

// slice is one in rome, or its copy in paris; nil where it is not there.
func (f *fleet) slice(c client.Client, namespace, name string) *authv1beta1.ResourceSlice {
	f.t.Helper()
	s := &authv1beta1.ResourceSlice{}
	err := c.Get(f.ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
	if client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return s
}

// Two fleets, each signed and with an id of its own, in one consumer and one provider:
// both reserve and are granted what they have contracts for. An intent of the name of
// the other's is refused by name; when one releases, what the other has stands, granted
// all the time, and the name is free for it.
func TestTwoFleets(t *testing.T) {
	a := prepare(t, func(o *rig.Options) { o.Signed = true })
	b := a.beside()
	for _, f := range []*fleet{a, b} {
		f.agent("paris", f.daemon)
		f.ready()
	}
	a.Put("vision", "train", intent("train", 4))
	b.Put("vision", "serve", intent("serve", 4))
	train, serve := a.Contract("vision", "train", "Active"), b.Contract("vision", "serve", "Active")
	ids := map[string]string{}
	for name, f := range map[string]*fleet{train: a, serve: b} {
		for where, s := range map[string]*authv1beta1.ResourceSlice{"rome": f.slice(a.rome, "liqo-tenant-paris", name), "paris": f.slice(a.paris, "liqo-tenant-rome", name)} {
			if s == nil || s.Labels[v1alpha1.LabelFleet] == "" || s.Status.NodeLabels["granted.fleetbroker.io/fleet"] != s.Labels[v1alpha1.LabelFleet] {
				t.Fatalf("%s in %s does not say whose it is: %+v", name, where, s)
			}
			ids[name] = s.Labels[v1alpha1.LabelFleet]
		}
	}
	if ids[train] == ids[serve] {
		t.Fatalf("both are of fleet %s", ids[train])
	}
	stands := b.steady(serve, 4)

	// The same intent of the other fleet: pods would find either's nodes.
	b.Put("vision", "train", intent("train", 2))
	second := b.Contract("vision", "train", "Reserved", "Peering")
	b.Eventually("the other fleet's intent of the same name to be named", func() error {
		c := b.written("vision", second)
		if strings.Contains(c.Status.Message, "fleet "+ids[train]+" has VirtualNode liqo-tenant-paris/"+train+" for an intent of the same name (vision.train)") {
			return nil
		}
		return fmt.Errorf("%s %s: %s", c.Status.Phase, c.Status.Reason, c.Status.Message)
	})
	if s := b.slice(a.rome, "liqo-tenant-paris", second); s != nil {
		t.Errorf("what is refused was made: %+v", s)
	}
	if s := a.slice(a.rome, "liqo-tenant-paris", train); s.Labels[v1alpha1.LabelFleet] != ids[train] || asked(s) != 4 {
		t.Errorf("the slice of the other fleet is %+v", s)
	}
	// Both show what paris offers, each under a name of its own.
	shown := map[string]string{}
	var list crd.AdvertisementList
	if err := a.paris.List(a.ctx, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		shown[list.Items[i].Labels[v1alpha1.LabelFleet]] = list.Items[i].Name
	}
	if shown[ids[train]] == "" || shown[ids[serve]] == "" {
		t.Errorf("advertisements by fleet: %v", shown)
	}

	uid := b.slice(a.paris, "liqo-tenant-rome", serve).UID
	a.Remove("vision", "train")
	a.Contract("vision", "train", "Released")
	b.Contract("vision", "train", "Active") // its name is free now
	if s := b.slice(a.paris, "liqo-tenant-rome", second); s == nil || s.Labels[v1alpha1.LabelFleet] != ids[serve] || asked(s) != 2 {
		t.Errorf("the slice for the freed name is %+v", s)
	}
	if s := b.slice(a.paris, "liqo-tenant-rome", serve); s == nil || s.UID != uid || !s.DeletionTimestamp.IsZero() {
		t.Errorf("the other fleet's slice is %+v", s)
	}
	stands.held(t)
	a.Sound()
	b.Sound()
}

// asked is how many GPUs a slice asks for.
func asked(s *authv1beta1.ResourceSlice) int64 {
	q := s.Spec.Resources["nvidia.com/gpu"]
	return q.Value()
}
