package planner_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// shared makes an offer sell its cards in so many parts each.
func shared(cards, per int, sharing string) func(*model.Offer) {
	return func(o *model.Offer) {
		Cards("nvidia-t4", cards*per, "4Gi")(o)
		o.Flavor.Spec.GPU.Sharing, o.Flavor.Spec.GPU.UnitsPerGPU = sharing, int32(per)
		if sharing == "mig" {
			o.Flavor.Spec.GPU.Profile = "1g.10gb"
		}
	}
}

func wantsShare(share string) func(*model.Intent) {
	return func(in *model.Intent) {
		Wants(1)(in)
		in.Spec.Resources.Named = Amounts("cpu=1 memory=1Gi")
		in.Spec.Resources.GPU = &v1alpha1.GPURequest{Share: Money(share)}
	}
}

func wantsUnits(n int32, sharing string) func(*model.Intent) {
	return func(in *model.Intent) {
		wantsShare("1")(in)
		in.Spec.Resources.GPU = &v1alpha1.GPURequest{Count: n, Sharing: sharing}
	}
}

func sharing(cards, per int, kind string) *Builder {
	return New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/shared", shared(cards, per, kind))
}

// A share lies on one card: what is free on several is no room for it.
func TestSharesLieOnOneCard(t *testing.T) {
	b := sharing(2, 10, "mps").Intent("vision/a", wantsShare("0.6"))
	step(t, b, "an empty flavor", map[string]string{"vision/a": "place"})
	b.Intent("vision/b", wantsShare("0.6"))
	step(t, b, "another card", map[string]string{"vision/b": "place"})
	b.Intent("vision/c", wantsShare("0.5"))
	p := step(t, b, "0.8 is free, 0.4 on each", map[string]string{"vision/c": "queue NothingFits"})
	d := Of(p, "vision/c")
	if d.Rejected[match.ReqCard] != 1 {
		t.Errorf("%v", d.Rejected)
	}
	if len(d.Try) == 0 || !strings.Contains(fmt.Sprint(d.Try), `resources.gpu.share: "0.4"`) {
		t.Errorf("try %v, near %v", d.Try, d.Near)
	}
	e, err := planner.Explain(b.W, "vision", "c")
	if err != nil || !strings.Contains(e.Offers[0].Detail, "no card has 0.5 free: at most 0.4; the 0.8 GPUs free lie on several") {
		t.Errorf("%v: %+v", err, e.Offers)
	}
	b.Intent("vision/d", wantsShare("0.4"))
	step(t, b, "0.4 fits", map[string]string{"vision/d": "place", "vision/c": "queue NothingFits"})
	had := b.Contracts("vision/d")[0].Spec.GPUs.Cards
	// The other card's tenant leaves: now there is room, and nobody else moves.
	leaves := "vision/a"
	if b.Contracts(leaves)[0].Spec.GPUs.Cards[0].Card == had[0].Card {
		leaves = "vision/b"
	}
	gone := b.Contracts(leaves)[0].Spec.GPUs.Cards[0].Card
	b.Deliver().Remove(leaves)
	b.Round()
	b.Tick(time.Minute).Deliver()
	step(t, b, "a card came free", map[string]string{"vision/c": "place"})
	if on := b.Contracts("vision/c")[0].Spec.GPUs.Cards; len(on) != 1 || on[0].Card != gone || on[0].Units != 5 {
		t.Errorf("on %v, free was %d", on, gone)
	}
	if now := b.Contracts("vision/d")[0].Spec.GPUs.Cards; !slices.Equal(now, had) {
		t.Errorf("the neighbour moved from %v to %v", had, now)
	}
}

// Units that come to cards take whole ones; instances of MIG lie anywhere.
func TestUnitsOfSharedCards(t *testing.T) {
	for _, c := range []struct {
		kind  string
		per   int
		ask   int32
		taken [2]string // shares that lie there already
		want  string
	}{
		{"mps", 4, 4, [2]string{"0.25", "1"}, "queue NothingFits"},
		{"mps", 4, 5, [2]string{"0.25", "0.5"}, "queue NothingFits"},
		{"mps", 4, 2, [2]string{"0.75", "0.75"}, "queue NothingFits"},
		{"mps", 4, 3, [2]string{"1", "0.25"}, "place"},
		{"time-slicing", 4, 4, [2]string{"1", ""}, "place"},
		{"mig", 7, 4, [2]string{"0.7", "0.7"}, "place"},
		{"mig", 7, 5, [2]string{"0.7", "0.7"}, "queue NothingFits"},
	} {
		b := sharing(2, c.per, c.kind)
		for i, share := range c.taken {
			if share != "" {
				// Of two that do not fit on one card, each has its own.
				b.Intent(fmt.Sprintf("vision/taken%d", i), wantsShare(share))
				b.Round()
			}
		}
		b.Intent("vision/asks", wantsUnits(c.ask, c.kind))
		p := b.Round()
		if d := Of(p, "vision/asks"); strings.TrimSpace(string(d.Action)+" "+d.Code) != c.want {
			t.Errorf("%+v: %s %s\n%s", c, d.Action, d.Code, describe(p))
		}
		wantOnlyKeeps(t, b)
	}
}

// A share grows where it lies while its card has the room.
func TestSharesResizeOnTheirCard(t *testing.T) {
	b := sharing(1, 10, "mps").Intent("vision/a", wantsShare("0.3")).Intent("vision/b", wantsShare("0.3"))
	b.Round()
	b.Deliver()
	was := b.Contracts("vision/a")[0]
	b.Intent("vision/a", wantsShare("0.7"))
	step(t, b, "0.7 beside 0.3", map[string]string{"vision/a": "resize IntentChanged"})
	now := b.Contracts("vision/a")[0]
	if now.Metadata.Name != was.Metadata.Name || len(now.Spec.GPUs.Cards) != 1 || now.Spec.GPUs.Cards[0].Units != 7 {
		t.Errorf("%s on %v", now.Metadata.Name, now.Spec.GPUs.Cards)
	}
	// On two cards of which each has 0.4 free, there is 0.8 and not on one.
	b = sharing(2, 10, "mps").Intent("vision/a", wantsShare("0.6"))
	b.Round()
	b.Intent("vision/b", wantsShare("0.6"))
	b.Round()
	b.Intent("vision/c", wantsShare("0.2"))
	b.Round()
	b.Deliver().Intent("vision/c", wantsShare("0.5"))
	if d := Of(b.Round(), "vision/c"); d.Action == planner.Resize || d.Action == planner.Place {
		t.Errorf("%s: 0.4 is the most on one card", d.Action)
	}
	wantOnlyKeeps(t, b)
}

// Whoever preempts for a share makes room on one card, by the fewest.
func TestPreemptOnOneCard(t *testing.T) {
	b := sharing(2, 10, "mps").Tenant("bio", "rome")
	for i, share := range []string{"0.6", "0.7", "0.3", "0.3"} {
		b.Intent(fmt.Sprintf("bio/i%d", i), wantsShare(share), Priority(10))
		b.Round()
	}
	b.Deliver().Round()
	b.Tick(time.Minute).Intent("vision/big", wantsShare("0.7"), preempts(100))
	b.Round()
	leaving := map[int32]int64{}
	n := 0
	for c := range b.W.Ledger.Contracts() {
		if c.Metadata.Namespace == "bio" && c.Status.Displaced != nil {
			n++
			leaving[c.Spec.GPUs.Cards[0].Card] += c.Spec.GPUs.Cards[0].Units
		}
	}
	if n != 1 || len(leaving) != 1 {
		t.Fatalf("%d give way: %v", n, leaving)
	}
	b.Tick(time.Minute).Deliver()
	step(t, b, "served", map[string]string{"vision/big": "place"})
}

// Shares come and go, and the books by card, kept apart, are never overdrawn;
// what has to wait fits on no card.
func TestSharesComeAndGo(t *testing.T) {
	draw := rand.New(rand.NewSource(3))
	b := sharing(3, 10, "mps")
	sizes := map[string]int64{}
	for i := range 120 {
		var names []string
		for name := range sizes {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) > 0 && draw.Intn(5) < 2 {
			gone := names[draw.Intn(len(names))]
			delete(sizes, gone)
			b.Remove(gone)
			b.Round()
			b.Tick(time.Minute).Deliver()
		} else {
			name := fmt.Sprintf("vision/i%03d", i)
			sizes[name] = 1 + draw.Int63n(9)
			b.Intent(name, wantsShare(fmt.Sprintf("0.%d", sizes[name])))
		}
		p := b.Round()
		wantOnlyKeeps(t, b)
		free := []int64{10, 10, 10}
		for c := range b.W.Ledger.Contracts() {
			if !c.Status.Phase.Held() {
				continue
			}
			if len(c.Spec.GPUs.Cards) != 1 {
				t.Fatalf("%s lies on %v", c.Metadata.Name, c.Spec.GPUs.Cards)
			}
			free[c.Spec.GPUs.Cards[0].Card] -= c.Spec.GPUs.Cards[0].Units
		}
		if slices.Min(free) < 0 {
			t.Fatalf("after %d: %v", i, free)
		}
		for name, size := range sizes {
			if d := Of(p, name); d.Action == planner.Queued && size <= slices.Max(free) {
				t.Fatalf("after %d: %s waits for %d, free is %v: %s", i, name, size, free, d.Reason)
			}
		}
		b.Tick(time.Minute).Deliver()
	}
}
