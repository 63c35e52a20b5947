package enforce

import (
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// res reads "cpu=4 memory=8Gi".
func res(text string) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for _, pair := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(pair, "=")
		a, err := v1alpha1.ParseAmount(name, quantity)
		if err != nil {
			panic(err)
		}
		out[name] = a
	}
	return out
}

// text writes what res reads.
func text(r v1alpha1.Resources) string {
	var parts []string
	for _, name := range r.Names() {
		parts = append(parts, name+"="+r[name].Canonical(name))
	}
	return strings.Join(parts, " ")
}

// slice asks for so much, and was given so much with the condition's status.
func slice(asks, has string, status authv1beta1.ResourceSliceConditionStatus) *authv1beta1.ResourceSlice {
	consumer := liqov1beta1.ClusterID("cl-rome")
	s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "liqo-tenant-rome", Labels: map[string]string{labelReplicated: "true"}}}
	s.Spec.Class, s.Spec.ConsumerClusterID, s.Spec.Resources = Class, &consumer, list(res(asks))
	s.Status.Conditions = []authv1beta1.ResourceSliceCondition{{Type: authv1beta1.ResourceSliceConditionTypeAuthentication, Status: authv1beta1.ResourceSliceConditionAccepted}}
	if status != "" {
		s.Status.Resources = list(res(has))
		s.Status.Conditions = append(s.Status.Conditions, authv1beta1.ResourceSliceCondition{Type: authv1beta1.ResourceSliceConditionTypeResources, Status: status})
	}
	return s
}

func tenant(condition authv1beta1.TenantCondition) *authv1beta1.Tenant {
	return &authv1beta1.Tenant{Spec: authv1beta1.TenantSpec{ClusterID: "cl-rome", TenantCondition: condition}}
}

const (
	accepted = authv1beta1.ResourceSliceConditionAccepted
	denied   = authv1beta1.ResourceSliceConditionDenied
	wanted   = "cpu=16 memory=128Gi nvidia.com/gpu=4 pods=50"
	plenty   = "cpu=64 memory=512Gi nvidia.com/gpu=8 pods=110"
)

// base is a new slice of a standing contract that fits.
func base() Case {
	return Case{
		Slice: slice(wanted, "", ""), Tenant: tenant(authv1beta1.TenantConditionActive), Heard: true,
		Promise: &Promise{Contract: "vision-train-0-k3f9q2ab", Slice: "train", ConsumerID: "cl-rome", Flavor: "h100", Resources: res(wanted), Standing: true},
		Offer: Offer{
			Known: true, Free: res(plenty), NodeSelector: map[string]string{"fleetbroker.io/pool": "h100"},
			Labels: map[string]string{v1alpha1.LabelCardModel: "nvidia-h100", v1alpha1.LabelCardMemory: "80Gi", v1alpha1.LabelCardTier: "premium", "fleetbroker.io/contract": "evil", "bad": "not a label's value!"},
		},
		Now: start.Add(time.Hour), Since: start, Patience: DefaultPatience, Confirmed: true,
	}
}

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		why    string
		change func(*Case)
		want   Verdict
		reason string
		gives  string
		waits  bool
	}{
		"a contract":      {"exactly what it says", func(*Case) {}, Grant, ReasonAccepted, wanted, false},
		"a smaller slice": {"what is paid for is given, also while the slice is yet to grow", func(c *Case) { c.Slice = slice("cpu=8", "", "") }, Grant, ReasonAccepted, wanted, false},
		"no broker heard": {"nothing new is granted", func(c *Case) { c.Heard = false }, Leave, "", "", false},
		"no broker heard, granted": {"what stands is kept, with or without a contract", func(c *Case) {
			c.Heard, c.Promise, c.Slice = false, nil, slice(wanted, wanted, accepted)
		}, Leave, "", "", false},
		"no contract":           {"denied", func(c *Case) { c.Promise = nil }, Deny, ReasonNoContract, "", false},
		"no contract yet":       {"the instruction may be on its way", func(c *Case) { c.Promise, c.Since = nil, time.Time{} }, Leave, ReasonNoContract, "", true},
		"no contract heard of":  {"the brokers are asked before it is denied", func(c *Case) { c.Promise, c.Confirmed = nil, false }, Leave, ReasonNoContract, "", true},
		"larger":                {"denied", func(c *Case) { c.Slice = slice("cpu=17 memory=128Gi", "", "") }, Deny, ReasonTooLarge, "", false},
		"larger by another key": {"what the contract does not name is none", func(c *Case) { c.Slice = slice(wanted+" rdma/hca=1", "", "") }, Deny, ReasonTooLarge, "", false},
		"half a device":         {"cannot be counted, and so not granted", func(c *Case) { c.Slice.Spec.Resources["nvidia.com/gpu"] = resource.MustParse("500m") }, Deny, ReasonTooLarge, "", false},
		"larger for a moment":   {"a resize's slice may come before its instruction", func(c *Case) { c.Slice, c.Since = slice("cpu=17", wanted, accepted), c.Now }, Leave, ReasonTooLarge, "", true},
		"grown":                 {"the contract grew and there is room", func(c *Case) { c.Slice = slice(wanted, "cpu=8 memory=64Gi nvidia.com/gpu=2 pods=50", accepted) }, Grant, ReasonAccepted, wanted, false},
		"grown without room": {"what is granted stays granted", func(c *Case) {
			c.Slice, c.Offer.Free = slice(wanted, "cpu=8 memory=64Gi nvidia.com/gpu=2 pods=50", accepted), res("cpu=64 memory=512Gi nvidia.com/gpu=3 pods=110")
		}, Leave, ReasonNoCapacity, "", false},
		"grown without room for a moment": {"another slice may be giving back at the same time", func(c *Case) {
			c.Slice, c.Offer.Free, c.Since = slice(wanted, "cpu=8 memory=64Gi nvidia.com/gpu=2 pods=50", accepted), res("cpu=64 memory=512Gi nvidia.com/gpu=3 pods=110"), c.Now
		}, Leave, ReasonNoCapacity, "", true},
		"grown, the flavor gone": {"as without room", func(c *Case) {
			c.Slice, c.Offer = slice(wanted, "cpu=8 memory=64Gi nvidia.com/gpu=2 pods=50", accepted), Offer{}
		}, Leave, ReasonNoFlavor, "", false},
		"grown, nodes are yet to come": {"an autoscaler makes them: that is no refusal", func(c *Case) {
			c.Slice, c.Offer.Free, c.Offer.Growing = slice(wanted, "cpu=8 memory=64Gi nvidia.com/gpu=2 pods=50", accepted), res("cpu=64 memory=512Gi nvidia.com/gpu=3 pods=110"), true
		}, Leave, ReasonNoCapacity, "", false},
		"shrunk": {"at once, and what is no longer named becomes zero", func(c *Case) {
			c.Slice, c.Offer.Free = slice(wanted, wanted+" rdma/hca=2", accepted), res("cpu=0")
		}, Grant, ReasonAccepted, "cpu=16 memory=128Gi nvidia.com/gpu=4 pods=50 rdma/hca=0", false},
		"granted, and its nodes shrank":     {"the broker decides about what was granted", func(c *Case) { c.Slice, c.Offer.Free = slice(wanted, wanted, accepted), res("cpu=0") }, Grant, ReasonAccepted, wanted, false},
		"own workloads came first":          {"refused", func(c *Case) { c.Offer.Free = res("cpu=64 memory=512Gi nvidia.com/gpu=3 pods=110") }, Deny, ReasonNoCapacity, "", false},
		"a node has not its piece":          {"refused, whatever the others have", func(c *Case) { c.Offer.Short = "node n0: 2 left" }, Deny, ReasonNoCapacity, "", false},
		"a node has not its piece, granted": {"the broker decides about what was granted", func(c *Case) { c.Slice, c.Offer.Short = slice(wanted, wanted, accepted), "node n0: 2 left" }, Grant, ReasonAccepted, wanted, false},
		"nodes are yet to come": {"an autoscaler makes them", func(c *Case) {
			c.Offer.Free, c.Offer.Growing = res("cpu=64 memory=512Gi nvidia.com/gpu=0 pods=110"), true
		}, Leave, ReasonNoCapacity, "", false},
		"pods are not limited": {"a flavor that does not list them does not limit them", func(c *Case) { c.Offer.Free = res("cpu=64 memory=512Gi nvidia.com/gpu=8") }, Grant, ReasonAccepted, wanted, false},
		"the flavor is gone":   {"refused", func(c *Case) { c.Offer = Offer{} }, Deny, ReasonNoFlavor, "", false},
		"released":             {"GPUs and pods go, CPU and memory stay", func(c *Case) { c.Promise.Standing, c.Slice = false, slice(wanted, wanted, accepted) }, Withdraw, ReasonWithdrawn, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", true},
		"ended":                {"the same without a contract", func(c *Case) { c.Promise, c.Slice = nil, slice(wanted, wanted, accepted) }, Withdraw, ReasonNoContract, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", true},
		"withdrawn a moment ago": {"the consumer must hear of it before the slice is denied", func(c *Case) {
			c.Promise, c.Slice, c.Since = nil, slice(wanted, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", accepted), c.Now
		}, Withdraw, ReasonNoContract, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", true},
		"withdrawn": {"and then denied", func(c *Case) {
			c.Promise, c.Slice = nil, slice(wanted, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", accepted)
		}, Deny, ReasonNoContract, "", false},
		"denied with a grant":    {"what was granted before is withdrawn all the same", func(c *Case) { c.Promise, c.Slice = nil, slice(wanted, wanted, denied) }, Withdraw, ReasonNoContract, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", true},
		"denied, now a contract": {"granted", func(c *Case) { c.Slice = slice(wanted, "", denied) }, Grant, ReasonAccepted, wanted, false},
		"Cordoned":               {"nothing new", func(c *Case) { c.Tenant = tenant(authv1beta1.TenantConditionCordoned) }, Deny, ReasonCordoned, "", false},
		"Cordoned, granted": {"keeps what it has", func(c *Case) {
			c.Tenant, c.Slice = tenant(authv1beta1.TenantConditionCordoned), slice(wanted, "cpu=1", accepted)
		}, Leave, "", "", false},
		"Cordoned, released": {"ends like any other", func(c *Case) {
			c.Tenant, c.Promise.Standing, c.Slice = tenant(authv1beta1.TenantConditionCordoned), false, slice(wanted, wanted, accepted)
		}, Withdraw, ReasonWithdrawn, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", true},
		"Drained": {"withdraws all", func(c *Case) {
			c.Tenant, c.Slice = tenant(authv1beta1.TenantConditionDrained), slice(wanted, wanted, accepted)
		}, Withdraw, ReasonDrained, "cpu=16 memory=128Gi nvidia.com/gpu=0 pods=0", true},
		"no Tenant":           {"nobody vouches for the consumer", func(c *Case) { c.Tenant = nil }, Leave, "", "", false},
		"another's namespace": {"a consumer speaks in its own namespace only", func(c *Case) { c.Tenant.Spec.ClusterID = "cl-milan" }, Leave, "", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := base()
			tc.change(&c)
			a := Decide(c)
			if a.Verdict != tc.want || a.Reason != tc.reason || text(a.Resources) != tc.gives || (a.Again > 0) != tc.waits {
				t.Errorf("%s:\n got %s %s %q again %s (%s)\nwant %s %s %q", tc.why, a.Verdict, a.Reason, text(a.Resources), a.Again, a.Message, tc.want, tc.reason, tc.gives)
			}
			if refused := (a.Reason == ReasonNoCapacity || a.Reason == ReasonNoFlavor) && !tc.waits && !c.Offer.Growing; a.Refused != refused {
				t.Errorf("refused is %t", a.Refused)
			}
		})
	}
}

func TestLabelsOfTheNode(t *testing.T) {
	a := Decide(base())
	want := map[string]string{v1alpha1.LabelCardModel: "nvidia-h100", v1alpha1.LabelCardMemory: "80Gi", v1alpha1.LabelCardTier: "premium", LabelContract: "vision-train-0-k3f9q2ab", LabelFlavor: "h100"}
	if len(a.NodeLabels) != len(want) {
		t.Errorf("labels are %v", a.NodeLabels)
	}
	for key, value := range want {
		if a.NodeLabels[key] != value {
			t.Errorf("label %s is %q, want %q", key, a.NodeLabels[key], value)
		}
	}
	if a.NodeSelector["fleetbroker.io/pool"] != "h100" {
		t.Errorf("pods are pinned to %v", a.NodeSelector)
	}
}

// What is applied again and again, time passing, comes to rest; what is granted
// is then the contract's or nothing but CPU and memory.
func TestAnswersComeToRest(t *testing.T) {
	amount := rapid.SampledFrom([]string{"", "cpu=16 memory=128Gi", wanted, "cpu=4 memory=1Gi nvidia.com/gpu=9", "rdma/hca=2 cpu=1 memory=1Gi pods=3"})
	rapid.Check(t, func(t *rapid.T) {
		c := base()
		c.Slice = slice(amount.Draw(t, "asks"), amount.Draw(t, "has"), rapid.SampledFrom([]authv1beta1.ResourceSliceConditionStatus{"", accepted, denied}).Draw(t, "status"))
		c.Tenant = tenant(rapid.SampledFrom([]authv1beta1.TenantCondition{authv1beta1.TenantConditionActive, authv1beta1.TenantConditionCordoned, authv1beta1.TenantConditionDrained}).Draw(t, "condition"))
		c.Offer.Free = res(amount.Draw(t, "free"))
		switch rapid.IntRange(0, 2).Draw(t, "promise") {
		case 0:
			c.Promise = nil
		case 1:
			c.Promise.Standing = false
		}
		before := amounts(c.Slice.Status.Resources)
		reason, changes := "", 0
		for range 10 {
			a := Decide(c)
			if a.Reason != reason {
				reason, c.Since = a.Reason, c.Now
				a = Decide(c)
			}
			if apply(c.Slice, a, metav1.NewTime(c.Now)) {
				changes++
			}
			c.Now = c.Now.Add(c.Patience)
		}
		if apply(c.Slice, Decide(c), metav1.NewTime(c.Now)) || changes > 3 {
			t.Fatalf("the answer does not come to rest: %d changes", changes)
		}
		if n := len(c.Slice.Status.Conditions); n > 2 || c.Slice.Status.Conditions[0].Type != authv1beta1.ResourceSliceConditionTypeAuthentication {
			t.Fatalf("conditions are %v", c.Slice.Status.Conditions)
		}
		has := amounts(c.Slice.Status.Resources)
		drainedTenant := c.Tenant.Spec.TenantCondition == authv1beta1.TenantConditionDrained
		switch {
		case c.Promise == nil || !c.Promise.Standing || drainedTenant:
			if !has["nvidia.com/gpu"].IsZero() || !has["pods"].IsZero() || !has["rdma/hca"].IsZero() {
				t.Fatalf("without a contract %s is granted", text(has))
			}
			if has["cpu"] != before["cpu"] || has["memory"] != before["memory"] {
				t.Fatalf("CPU and memory went from %s to %s", text(before), text(has))
			}
		case state(c.Slice) == accepted && !has.Equal(before) && !has.Equal(c.Promise.Resources):
			t.Fatalf("%s is granted, the contract says %s", text(has), text(c.Promise.Resources))
		}
	})
}
