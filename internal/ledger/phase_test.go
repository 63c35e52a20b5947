package ledger_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

var allPhases = []v1alpha1.Phase{
	v1alpha1.PhaseBooked, v1alpha1.PhaseReserved, v1alpha1.PhasePeering, v1alpha1.PhaseActive, v1alpha1.PhaseDegraded, v1alpha1.PhaseReleasing,
	v1alpha1.PhaseReleased, v1alpha1.PhaseExpired, v1alpha1.PhasePreempted, v1alpha1.PhaseFailed,
}

// TestPhaseTable asks for every step; those that are not in DESIGN's picture
// are refused.
func TestPhaseTable(t *testing.T) {
	legal := map[string]bool{
		" Reserved": true,
		" Booked":   true, "Booked Reserved": true, "Booked Released": true, "Booked Expired": true, "Booked Failed": true,
		"Reserved Peering": true, "Reserved Active": true, "Reserved Degraded": true, "Reserved Releasing": true,
		"Peering Active": true, "Peering Degraded": true, "Peering Releasing": true,
		"Active Degraded": true, "Active Releasing": true,
		"Degraded Reserved": true, "Degraded Peering": true, "Degraded Active": true, "Degraded Degraded": true, "Degraded Releasing": true,
		"Releasing Expired": true, "Releasing Failed": true,
	}
	b := rome(t)
	now := at("2026-11-20T10:00:00Z")
	for _, from := range append([]v1alpha1.Phase{""}, allPhases...) {
		for _, to := range allPhases {
			c := fresh("1", "1")
			c.Status.Phase = from
			if from == v1alpha1.PhaseReleasing {
				c.Status.Target = v1alpha1.PhaseExpired
			}
			_, err := b.Transition(c, to, ledger.Reason{}, now)
			if want := legal[string(from)+" "+string(to)]; (err == nil) != want {
				t.Errorf("%q to %q: %v, want legal %v", from, to, err, want)
			}
		}
	}
	if _, err := b.Release(fresh("1", "1"), v1alpha1.PhaseActive, ledger.Reason{}, now); err == nil {
		t.Error("released to a phase that is no end")
	}
}

func TestHistoryIsTheLastTen(t *testing.T) {
	b := rome(t)
	now := at("2026-11-20T10:00:00Z")
	c, err := b.Transition(fresh("1", "1"), v1alpha1.PhaseReserved, ledger.Reason{}, now)
	if err != nil {
		t.Fatal(err)
	}
	first := c
	for i := range 14 {
		now = v1alpha1.TimeOf(now.Add(time.Minute))
		to := v1alpha1.PhaseActive
		if i%2 == 1 {
			to = v1alpha1.PhaseDegraded
		}
		if c, err = b.Transition(c, to, ledger.Reason{Code: "why"}, now); err != nil {
			t.Fatal(err)
		}
	}
	h := c.Status.History
	if len(h) != 10 || h[9].Phase != c.Status.Phase || !h[9].At.Equal(now.Time) || h[9].Reason != "why" {
		t.Errorf("history %v", h)
	}
	if len(first.Status.History) != 1 || first.Status.Phase != v1alpha1.PhaseReserved {
		t.Error("a transition changed the contract it started from")
	}
}

func TestContractName(t *testing.T) {
	first := v1alpha1.FirstSeen{Commit: "4f1c2ab"}
	cases := map[string]struct{ tenant, intent, prefix string }{
		"short":                 {"vision", "llm-finetune", "vision-llm-finetune-0-"},
		"cut":                   {"vision", "a-very-long-name-of-an-intent-that-goes-on-and-on", "vision-a-very-long-name-of-an-intent-th-0-"},
		"no dash where it ends": {"vision", "a-very-long-name-of-an-intent-t-hat-goes-on", "vision-a-very-long-name-of-an-intent-t-0-"},
	}
	seen := map[string]bool{}
	for name, tc := range cases {
		got := ledger.ContractName(tc.tenant, tc.intent, first, 0, 0, 0)
		if len(got) > 50 || got[:len(got)-8] != tc.prefix {
			t.Errorf("%s: %s, want %s…", name, got, tc.prefix)
		}
		seen[got] = true
	}
	for _, other := range []string{
		ledger.ContractName("vision", "llm-finetune", v1alpha1.FirstSeen{Commit: "other"}, 0, 0, 0),
		ledger.ContractName("vision", "llm-finetune", first, 1, 0, 0),
		ledger.ContractName("vision", "llm-finetune", first, 0, 1, 0),
		ledger.ContractName("vision", "llm-finetune", first, 0, 0, 1),
		ledger.ContractName("vision-llm", "finetune", first, 0, 0, 0),
	} {
		if seen[other] {
			t.Errorf("%s twice", other)
		}
		seen[other] = true
	}
}

// TestContractNamesAreLabels: whatever tenant and intent are called, the name
// is a DNS label of at most 50 characters, always the same.
func TestContractNamesAreLabels(t *testing.T) {
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$`)
	name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		tenant, intent := name.Draw(t, "tenant"), name.Draw(t, "intent")
		first := v1alpha1.FirstSeen{Commit: rapid.StringMatching(`[0-9a-f]{40}`).Draw(t, "commit")}
		replica := rapid.Int32Range(0, 1<<30).Draw(t, "replica")
		got := ledger.ContractName(tenant, intent, first, replica, 0, 0)
		if !label.MatchString(got) || got != ledger.ContractName(tenant, intent, first, replica, 0, 0) {
			t.Fatalf("%q", got)
		}
	})
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestGeneratedFiles holds the bytes of the three generated kinds, and that
// they are read back whole.
func TestGeneratedFiles(t *testing.T) {
	b := rome(t)
	c := fresh("12.0944", "14")
	c.Spec.Price.Windows = []v1alpha1.ContractPriceWindow{{Window: v1alpha1.Window{Days: []string{"Sat", "Sun"}, From: "00:00", To: "24:00", Timezone: "UTC"}, Hourly: dec("9.5")}}
	c = live(t, b, c, []step{
		{"2026-11-30T20:00:00Z", v1alpha1.PhaseReserved, ""}, {"2026-11-30T20:00:09Z", v1alpha1.PhaseActive, ""},
		{"2026-12-01T04:00:00Z", v1alpha1.PhaseDegraded, "ProviderSilent: paris was last heard at 03:55"},
	})
	spend := &v1alpha1.Spend{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSpend}, Metadata: v1alpha1.Metadata{Name: "2026-11", Namespace: "vision"},
		Entries: []v1alpha1.SpendEntry{{Contract: c.Metadata.Name, Intent: "llm", Provider: "paris", Amount: dec("36.2832"), List: dec("42"), Currency: "EUR"}},
	}
	for name, v := range map[string]any{"contract": c, "state": state("vision", "llm"), "spend": spend} {
		got, err := ledger.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s:\n%s\nwant (-update writes it anew)\n%s", name, got, want)
		}
		back := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := ledger.Decode(got, back); err != nil {
			t.Fatal(err)
		}
		again, err := ledger.Encode(back)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s is read back as\n%s (%v)", name, again, err)
		}
	}
}

// A claim ends a warm contract at once, with its cost kept, and only for one
// that stands on the very same slice.
func TestClaim(t *testing.T) {
	b := ledger.Books{Currency: "EUR"}
	warm, by := contract(v1alpha1.FleetTenant, "warm", 0, 0), contract("vision", "llm", 0, 0)
	by.Spec.Slice = warm.Spec.Slice
	hour := v1alpha1.TimeOf(warm.Status.AccruedAt.Add(time.Hour))
	ended, err := b.Claim(warm, by, hour)
	if err != nil || ended.Status.Phase != v1alpha1.PhaseReleased || ended.Status.Reason != ledger.ReasonClaimed || ended.Status.Since != hour {
		t.Fatalf("%+v, %v", ended, err)
	}
	if got := b.Accrued(ended, v1alpha1.TimeOf(hour.Add(time.Hour))); got.Cmp(warm.Spec.Price.Hourly) != 0 {
		t.Fatalf("it has cost %s after an hour", got)
	}
	if _, err := b.Claim(ended, by, hour); err == nil {
		t.Error("an ended contract is claimed")
	}
	by.Spec.Slice = "other"
	if _, err := b.Claim(warm, by, hour); err == nil {
		t.Error("a contract with another slice claims")
	}
}
