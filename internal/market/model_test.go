package market_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// plainMarket is the market as a plain map: what everything carried over between snapshots must agree with.
type plainMarket struct {
	clock    *clock
	reported map[string]map[string]v1alpha1.Flavor
	heard    map[string]time.Time
	newest   map[string]uint64 // number of the newest list
	gone     map[string]map[string]bool
	files    map[string]v1alpha1.Flavor
	price    string
}

// view is what the model says of every offer: identity, state, units and price.
func (m *plainMarket) view() []string {
	var out []string
	line := func(f v1alpha1.Flavor, state string) {
		free := f.Spec.Capacity["gpu"].Sub(f.Spec.Used["gpu"]).Int64()
		out = append(out, fmt.Sprintf("%s %s %d of %s at %s", f.Ref(), state, free, f.Spec.GPU.Model, m.price))
	}
	for p, list := range m.reported {
		state := "Fresh"
		switch silent := m.clock.Now().Sub(m.heard[p]); {
		case silent >= market.DefaultGrace:
			state = "Lost"
		case silent >= 3*market.Interval:
			state = "Silent"
		}
		for _, f := range list {
			line(f, state)
		}
		for name := range m.gone[p] {
			if _, file := m.files[p+"/"+name]; file {
				continue
			}
			if state == "Fresh" {
				out = append(out, p+"/"+name+" Withdrawn")
			} else {
				out = append(out, p+"/"+name+" "+state+" withdrawn")
			}
		}
	}
	for ref, f := range m.files {
		if _, agent := m.reported[f.Metadata.Namespace][f.Metadata.Name]; !agent {
			line(f, "Fresh file")
		}
		_ = ref
	}
	slices.Sort(out)
	return out
}

func (m *plainMarket) of(s *market.Snapshot) []string {
	var out []string
	for _, o := range s.Offers() {
		_, offered := m.reported[o.Flavor.Metadata.Namespace][o.Flavor.Metadata.Name]
		switch {
		case o.State == model.Withdrawn:
			out = append(out, o.Flavor.Ref()+" Withdrawn")
			continue
		case !offered && !o.Static:
			out = append(out, o.Flavor.Ref()+" "+o.State.String()+" withdrawn")
			continue
		}
		state := o.State.String()
		if o.Static {
			state += " file"
		}
		free := o.Flavor.Spec.Capacity["gpu"].Sub(o.Flavor.Spec.Used["gpu"]).Int64()
		price := "none"
		if o.Price != nil {
			price = o.Price.PerHour["gpu"].String()
		}
		out = append(out, fmt.Sprintf("%s %s %d of %s at %s", o.Flavor.Ref(), state, free, o.Flavor.Spec.GPU.Model, price))
	}
	slices.Sort(out)
	return out
}

// checkCarried holds the offers that are handed out, which are carried over from
// snapshot to snapshot, against those made of what is known, and against the
// very same values in the snapshot's table.
func checkCarried(t *rapid.T, m *market.Market, s *market.Snapshot) {
	if rows := s.FromRows(); !slices.Equal(s.Offers(), rows) {
		t.Fatalf("%d offers are handed out, and the table holds %d others", len(s.Offers()), len(rows))
	}
	want := m.FromNothing()
	got := s.Offers()
	if len(got) != len(want) {
		t.Fatalf("%d offers are handed out, and what is known makes %d", len(got), len(want))
	}
	for i, o := range got {
		x, y := *o.Flavor, *want[i].Flavor
		if x.Spec.Used.Equal(y.Spec.Used) { // nothing used, said or not said
			x.Spec.Used, y.Spec.Used = nil, nil
		}
		a, b := *o, *want[i]
		if a.Flavor, b.Flavor = &x, &y; !reflect.DeepEqual(&a, &b) {
			t.Fatalf("%+v is handed out, and what is known makes %+v", o, want[i])
		}
	}
}

// TestMarketAgreesWithAPlainMap drives both through the same reports, inputs
// and silences, asks both everything after each step, and holds that no older
// snapshot has changed.
func TestMarketAgreesWithAPlainMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		m := market.New(market.Options{Now: c.Now})
		plain := &plainMarket{clock: c, reported: map[string]map[string]v1alpha1.Flavor{}, heard: map[string]time.Time{}, newest: map[string]uint64{}, gone: map[string]map[string]bool{}, files: map[string]v1alpha1.Flavor{}, price: "none"}
		n := uint64(0)
		old, oldView := m.Snapshot(), []string{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				n++
				plain.report(t, m, n)
			case 2:
				plain.inputs(t, m)
			case 3:
				c.pass(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			case 4, 5:
				c.pass(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds")) * time.Second)
				plain.unchanged(t, m)
			}
			s := m.Snapshot()
			if got, want := m.Next(), m.NextOfAll(); !got.Equal(want) {
				t.Fatalf("freshness changes next at %v, and by all providers at %v", got, want)
			}
			if got, want := plain.of(s), plain.view(); !slices.Equal(got, want) {
				t.Fatalf("market\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			checkCarried(t, m, s)
			if rapid.Bool().Draw(t, "written") { // a blob is written from the newest that was
				for name, b := range s.Blobs() {
					if want := s.BlobFromNothing(name); b.Hash != want.Hash || string(b.Content) != string(want.Content) {
						t.Fatalf("the blob of %s:\n%s\nwant\n%s", name, b.Content, want.Content)
					}
				}
			}
			if same := s.Generation() == old.Generation(); same && s.Tree().Root != old.Tree().Root {
				t.Fatal("one generation has two trees")
			}
			var now []string
			for _, o := range old.Offers() {
				now = append(now, fmt.Sprint(o.Flavor.Ref(), o.State, o.Flavor.Spec.Used))
			}
			if !slices.Equal(now, oldView) {
				t.Fatalf("an older snapshot changed:\n%v\n%v", oldView, now)
			}
			old, oldView = s, nil
			for _, o := range s.Offers() {
				oldView = append(oldView, fmt.Sprint(o.Flavor.Ref(), o.State, o.Flavor.Spec.Used))
			}
		}
	})
}

func (m *plainMarket) report(t *rapid.T, real *market.Market, n uint64) {
	p := rapid.SampledFrom([]string{"oslo", "paris", "paris-2"}).Draw(t, "provider")
	list := map[string]v1alpha1.Flavor{}
	var flavors []v1alpha1.Flavor
	for _, name := range []string{"a", "a-b", "b"} {
		if !rapid.Bool().Draw(t, "offered") {
			continue
		}
		f := gpus(p, name, rapid.Int64Range(0, 8).Draw(t, "units"))
		f.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(rapid.Int64Range(0, 3).Draw(t, "used"))}
		f.Spec.GPU.Model = rapid.SampledFrom([]string{"nvidia-h100", "nvidia-a100"}).Draw(t, "model")
		list[name] = f
		flavors = append(flavors, f)
	}
	if err := real.Report(p, gen(1, n), flavors, true); err != nil {
		t.Fatal(err)
	}
	if m.gone[p] == nil {
		m.gone[p] = map[string]bool{}
	}
	for name := range m.reported[p] {
		m.gone[p][name] = true
	}
	for name := range list {
		delete(m.gone[p], name)
	}
	m.reported[p], m.heard[p], m.newest[p] = list, m.clock.Now(), n
}

// unchanged reports that a provider says what it said.
func (m *plainMarket) unchanged(t *rapid.T, real *market.Market) {
	p := rapid.SampledFrom([]string{"oslo", "paris", "paris-2"}).Draw(t, "provider")
	err := real.Report(p, gen(1, m.newest[p]), nil, false)
	if known := m.newest[p] > 0; known != (err == nil) {
		t.Fatalf("an unchanged report of %s, which is known: %v, is answered %v", p, known, err)
	}
	if err == nil {
		m.heard[p] = m.clock.Now()
	}
}

func (m *plainMarket) inputs(t *rapid.T, real *market.Market) {
	in := market.Inputs{Clusters: map[string]*v1alpha1.Cluster{}}
	m.price = rapid.SampledFrom([]string{"none", "1", "2.5"}).Draw(t, "price")
	for _, p := range []string{"oslo", "paris", "paris-2"} {
		in.Clusters[p] = cluster(p, "provider")
		if m.price != "none" {
			in.Clusters[p].Spec.DefaultPrice = &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": dec(m.price)}}
		}
	}
	m.files = map[string]v1alpha1.Flavor{}
	for _, name := range []string{"a", "c"} {
		if rapid.Bool().Draw(t, "file") {
			f := gpus("paris", name, 2)
			m.files[f.Ref()] = f
			in.Flavors = append(in.Flavors, &f)
		}
	}
	real.SetInputs(in)
}

// TestSnapshotPhantomRead: while a provider reports lists that are marked
// throughout, no snapshot ever shows marks of two lists, or a part of one.
func TestSnapshotPhantomRead(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	const size, rounds = 20, 300
	list := func(mark int64) []v1alpha1.Flavor {
		var out []v1alpha1.Flavor
		for i := range size {
			f := gpus("paris", fmt.Sprintf("f%02d", i), 1000)
			f.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(mark)}
			f.Spec.Capacity["memory"] = v1alpha1.AmountOf(mark)
			out = append(out, f)
		}
		return out
	}
	report(t, m, "paris", gen(1, 1), list(1)...)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				s := m.Snapshot()
				marks := map[int64]int{}
				for _, o := range s.Offers() {
					marks[o.Flavor.Spec.Used["gpu"].Int64()]++
					marks[o.Flavor.Spec.Capacity["memory"].Int64()]++
				}
				if len(marks) != 1 || len(s.Offers()) != size {
					t.Errorf("a snapshot shows the marks %v and %d of %d offers", marks, len(s.Offers()), size)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range int64(rounds) {
		report(t, m, "paris", gen(1, uint64(i+2)), list(i+2)...)
	}
	close(done)
	readers.Wait()
}
