package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// offloads maps a namespace; remote is its name at providers, "" for Liqo's own.
func offloads(name, strategy, remote string) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Offload = &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: name, NamespaceMappingStrategy: strategy, RemoteNamespaceName: remote}}}
	})
}

// A remote namespace that one mapping has at a provider is nobody else's there,
// whichever form of name it came by and from whichever consumer; at another
// provider it may be.
func TestRemoteNamespaceIsOneMappings(t *testing.T) {
	for name, attack := range map[string]func(*model.Intent){
		"SelectedName":            offloads("vision", "SelectedName", "nlp-milan"),
		"EnforceSameName":         offloads("nlp-milan", "EnforceSameName", ""),
		"DefaultName by accident": offloads("nlp", "SelectedName", "nlp-milan"),
	} {
		t.Run(name, func(t *testing.T) {
			b := paris().Consumer("milan").Tenant("nlp", "milan").Intent("nlp/serve", Wants(2, "H100"), offloads("nlp", "", ""))
			b.Round()
			b.Tick(10 * time.Second).Deliver().Round()
			b.Tick(10*time.Second).Intent("vision/train", Wants(2, "H100"), attack)
			p := b.Round()
			d := Of(p, "vision/train")
			if d.Action != planner.Queued || d.Rejected[match.ReqRemoteNamespace] != 1 || d.Code != lifecycle.CodeRemoteNamespace || !strings.Contains(d.Reason, "nlp-milan at paris is what namespace nlp of tenant nlp in milan is mapped to") {
				t.Fatalf("%s %s %v: %s", d.Action, d.Code, d.Rejected, d.Reason)
			}
			b.Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("4"))
			b.Tick(10 * time.Second).Round()
			if got := on(b); got != "lyon/h100 Reserved" {
				t.Fatal(got)
			}
		})
	}
}

// Two that ask for one name in one round: the first has it. A change of a
// standing intent's names to taken ones is not made, and what exists stays.
func TestRemoteNamespaceWithinARoundAndAfter(t *testing.T) {
	b := paris().Tenant("nlp", "rome").
		Intent("nlp/serve", Wants(2, "H100"), offloads("nlp", "SelectedName", "shared")).
		Intent("vision/train", Wants(2, "H100"), offloads("vision", "SelectedName", "shared"))
	b.Round()
	if n, v := len(b.Contracts("nlp/serve")), len(b.Contracts("vision/train")); n+v != 1 {
		t.Fatalf("%d and %d contracts have the name", n, v)
	}
	b.Intent("vision/train", Wants(2, "H100"), offloads("vision", "", ""))
	b.Tick(10 * time.Second).Round()
	b.Tick(10 * time.Second).Deliver().Round()
	b.Tick(10*time.Second).Intent("vision/train", Wants(2, "H100"), offloads("vision", "SelectedName", "nlp-rome"))
	b.Intent("nlp/serve", Wants(2, "H100"), offloads("nlp", "", ""))
	b.Round()
	b.Tick(10 * time.Second).Deliver().Round()
	b.Tick(10*time.Second).Intent("vision/train", Wants(2, "H100"), offloads("vision", "SelectedName", "nlp-rome"))
	d := Of(b.Round(), "vision/train")
	names := map[string]string{}
	for _, name := range []string{"nlp/serve", "vision/train"} {
		for _, c := range b.Contracts(name) {
			if c.Status.Phase.Charged() {
				ns := &c.Spec.Offload.Namespaces[0]
				if who := names[ns.RemoteName("rome")]; who != "" && who != name {
					t.Fatalf("%s and %s are both mapped to %s; %s: %s", who, name, ns.RemoteName("rome"), d.Action, d.Reason)
				}
				names[ns.RemoteName("rome")] = name
			}
		}
	}
	if len(names) != 2 {
		t.Fatalf("%v", names)
	}
}

// A Secret is used only where the tenant's file declares it: at the provider whose
// namespace of Liqo it names.
func TestSecretOfTheTenantsFile(t *testing.T) {
	own := With(func(s *v1alpha1.IntentSpec) {
		s.VirtualNode = &v1alpha1.VirtualNodeSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyRef{Name: "ours"}}
	})
	b := paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).Intent("vision/train", Wants(2, "H100"), own)
	d := Of(b.Round(), "vision/train")
	if d.Action != planner.Queued || d.Rejected[match.ReqSecret] != 2 || d.Code != lifecycle.CodeSecret {
		t.Fatalf("%s %s %v: %s", d.Action, d.Code, d.Rejected, d.Reason)
	}
	b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
		s.Secrets = []v1alpha1.TenantSecret{{Consumer: "milan", Namespace: "liqo-tenant-paris", Name: "ours"}, {Consumer: "rome", Namespace: "liqo-tenant-lyon", Name: "ours"}}
	})
	b.Tick(10 * time.Second).Round()
	if got := on(b); got != "lyon/h100 Reserved" {
		t.Fatal(got)
	}
}
