package market_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func dec(s string) v1alpha1.Decimal { return v1alpha1.MustDecimal(s) }

func amount(name, s string) v1alpha1.Amount {
	a, err := v1alpha1.ParseAmount(name, s)
	if err != nil {
		panic(err)
	}
	return a
}

// gpus is a flavor of so many H100.
func gpus(provider, name string, n int64) v1alpha1.Flavor {
	return v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: name, Namespace: provider},
		Spec: v1alpha1.FlavorSpec{
			Architecture: "amd64",
			Capacity:     v1alpha1.Resources{"cpu": amount("cpu", "64"), "memory": amount("memory", "512Gi"), "gpu": v1alpha1.AmountOf(n)},
			GPU:          &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", Memory: v1alpha1.MemorySize{Amount: amount("memory", "80Gi")}, UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"},
		},
	}
}

func gen(epoch, n uint64) wire.Generation { return wire.Generation{Epoch: epoch, N: n} }

func cluster(name string, roles ...string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.ClusterSpec{Roles: roles, Location: v1alpha1.Location{Region: "eu-west-3", Country: "FR"}}}
}

func report(t testing.TB, m *market.Market, provider string, g wire.Generation, flavors ...v1alpha1.Flavor) {
	t.Helper()
	if err := m.Report(provider, g, flavors, true); err != nil {
		t.Fatal(err)
	}
}

// states is every offer with its state, in one line.
func states(s *market.Snapshot) string {
	var out []string
	for _, o := range s.Offers() {
		static := ""
		if o.Static {
			static = " file"
		}
		out = append(out, fmt.Sprintf("%s %s%s", o.Flavor.Ref(), o.State, static))
	}
	return strings.Join(out, ", ")
}

func TestGenerationsOfReports(t *testing.T) {
	type call struct {
		g    wire.Generation
		full bool
		want string // "" taken, "base" 412, or the generation that a stale one is told
	}
	cases := map[string][]call{
		"unchanged without a list":               {{gen(5, 1), false, "base"}},
		"a list, then unchanged":                 {{gen(5, 1), true, ""}, {gen(5, 1), false, ""}},
		"unchanged since a change":               {{gen(5, 1), true, ""}, {gen(5, 2), false, "base"}},
		"a change":                               {{gen(5, 1), true, ""}, {gen(5, 2), true, ""}, {gen(5, 2), false, ""}},
		"the same list again":                    {{gen(5, 1), true, ""}, {gen(5, 1), true, ""}},
		"an older change that comes late":        {{gen(5, 3), true, ""}, {gen(5, 2), true, "5.3"}},
		"an older life of the agent":             {{gen(5, 1), true, ""}, {gen(4, 9), true, "5.1"}, {gen(4, 9), false, "5.1"}},
		"a newer life of the agent":              {{gen(5, 7), true, ""}, {gen(6, 1), false, "base"}, {gen(6, 1), true, ""}},
		"an epoch that nobody could ever top":    {{gen(1<<63-1, 1), true, "mistake"}},
		"a refused report does not count at all": {{gen(5, 1), true, ""}, {gen(1<<63-1, 1), true, "mistake"}, {gen(5, 1), false, ""}},
	}
	for name, calls := range cases {
		t.Run(name, func(t *testing.T) {
			m := market.New(market.Options{Now: newClock().Now})
			for i, c := range calls {
				err := m.Report("paris", c.g, []v1alpha1.Flavor{gpus("paris", "h100", 8)}, c.full)
				var stale *market.StaleEpochError
				got := ""
				switch {
				case errors.Is(err, market.ErrUnknownBase):
					got = "base"
				case errors.As(err, &stale):
					got = stale.Last.String()
				case err != nil:
					got = "mistake"
				}
				if got != c.want {
					t.Fatalf("call %d: %q (%v), want %q", i, got, err, c.want)
				}
			}
		})
	}
}

// What reported while the clock was a day ahead is as old, when the clock is right
// again, as it had become by then.
// TestEpochsLeaveRoomForASuccessor: whatever epoch was taken from somebody who has
// a provider's key, one above it is taken later.
func TestEpochsLeaveRoomForASuccessor(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	highest := uint64(0)
	for bits := range 64 {
		for _, g := range []wire.Generation{gen(1<<bits-1, 1<<64-1), gen(1<<bits, 1<<64-1)} {
			if err := m.Report("paris", g, nil, true); err == nil {
				highest = max(highest, g.Epoch)
			}
		}
	}
	if ahead := uint64(c.Now().Add(365 * 24 * time.Hour).UnixNano()); m.Report("paris", gen(ahead, 1), nil, true) == nil {
		highest = max(highest, ahead)
	}
	if day := uint64(c.Now().Add(24 * time.Hour).UnixNano()); highest < day {
		t.Fatalf("the highest epoch taken is %d, want that of a clock which is a day ahead (%d)", highest, day)
	}
	c.pass(time.Second)
	report(t, m, "paris", gen(highest+1, 1), gpus("paris", "a", 1))
}

func TestAgeWhenTheClockGoesBack(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	m.SetInputs(market.Inputs{Clusters: map[string]*v1alpha1.Cluster{"oslo": cluster("oslo", "provider"), "paris": cluster("paris", "provider")}})
	for _, at := range []string{"oslo", "paris"} {
		report(t, m, at, gen(1, 1), gpus(at, "h", 8))
	}
	c.pass(24 * time.Hour)
	report(t, m, "oslo", gen(1, 2), gpus("oslo", "h", 8))
	c.pass(time.Minute)
	report(t, m, "paris", gen(1, 2), gpus("paris", "h", 8))
	for _, st := range []struct {
		passes time.Duration
		want   string
	}{
		{-24 * time.Hour, "oslo/h Fresh, paris/h Fresh"},
		{29 * time.Second, "oslo/h Fresh, paris/h Fresh"},
		{time.Second, "oslo/h Silent, paris/h Fresh"},
		{time.Minute, "oslo/h Silent, paris/h Silent"},
		{market.DefaultGrace - 150*time.Second, "oslo/h Lost, paris/h Silent"},
		{time.Minute, "oslo/h Lost, paris/h Lost"},
	} {
		c.pass(st.passes)
		if got := states(m.Snapshot()); got != st.want {
			t.Errorf("%v later: %s, want %s", st.passes, got, st.want)
		}
	}
}

// While nobody can be heard time changes nothing, also where the clock goes back
// meanwhile: an instant that has passed and changes nothing would stay due.
func TestNothingIsDueWhileNobodyIsHeard(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	m.SetInputs(market.Inputs{Clusters: map[string]*v1alpha1.Cluster{"oslo": cluster("oslo", "provider")}})
	report(t, m, "oslo", gen(1, 1), gpus("oslo", "h", 8))
	if m.Next().IsZero() {
		t.Fatal("silence is not due")
	}
	m.Cut()
	for _, passes := range []time.Duration{time.Second, -24 * time.Hour, time.Second, 48 * time.Hour} {
		c.pass(passes)
		m.Snapshot()
		if due := m.Next(); !due.IsZero() {
			t.Errorf("%v later something is due at %v, now %v", passes, due, c.Now())
		}
	}
	m.Listen()
	if due := m.Next(); !due.After(c.Now()) {
		t.Errorf("heard again: due at %v, now %v", due, c.Now())
	}
}

func TestAgeIsMeasuredByOurClock(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	short := cluster("oslo", "provider")
	short.Spec.Agent.GracePeriod = v1alpha1.Duration{Duration: 2 * time.Minute}
	tiny := cluster("turin", "provider")
	tiny.Spec.Agent.GracePeriod = v1alpha1.Duration{Duration: time.Second}
	m.SetInputs(market.Inputs{
		Fleet:    &v1alpha1.FleetSpec{Defaults: v1alpha1.FleetDefaults{GracePeriod: v1alpha1.Duration{Duration: 4 * time.Minute}}},
		Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider"), "oslo": short, "turin": tiny},
		Flavors:  []*v1alpha1.Flavor{{Metadata: v1alpha1.Metadata{Name: "file", Namespace: "zurich"}, Spec: v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{}}}},
	})
	for _, p := range []string{"oslo", "paris", "turin"} {
		report(t, m, p, gen(1, 1), gpus(p, "h", 8))
	}
	heard := v1alpha1.TimeOf(c.Now())
	steps := []struct {
		after              time.Duration
		oslo, paris, turin string
	}{
		{89 * time.Second, "Fresh", "Fresh", "Fresh"},
		{90 * time.Second, "Silent", "Silent", "Lost"}, // a grace shorter than silence is no grace
		{119 * time.Second, "Silent", "Silent", "Lost"},
		{120 * time.Second, "Lost", "Silent", "Lost"},
		{239 * time.Second, "Lost", "Silent", "Lost"},
		{240 * time.Second, "Lost", "Lost", "Lost"},
	}
	passed := time.Duration(0)
	last := m.Snapshot()
	for _, st := range steps {
		if next := m.Next(); st.after > passed && next.After(c.Now().Add(st.after-passed)) && states(m.Snapshot()) != states(last) {
			t.Errorf("at %v the next change was said to be at %v", st.after, next)
		}
		c.pass(st.after - passed)
		passed = st.after
		s := m.Snapshot()
		want := fmt.Sprintf("oslo/h %s, paris/h %s, turin/h %s, zurich/file Fresh file", st.oslo, st.paris, st.turin)
		if got := states(s); got != want {
			t.Errorf("after %v: %s, want %s", st.after, got, want)
		}
		if same := states(s) == states(last); same != (s.Generation() == last.Generation()) {
			t.Errorf("after %v: the generation went from %d to %d", st.after, last.Generation(), s.Generation())
		}
		last = s
	}
	if o := last.Offer("paris", "h"); o.Since != heard || !o.GraceEnds.Equal(heard.Add(4*time.Minute)) {
		t.Errorf("paris silent since %v, grace ends %v", o.Since, o.GraceEnds)
	}
	// A sign of life is enough to come back.
	if err := m.Report("paris", gen(1, 1), nil, false); err != nil {
		t.Fatal(err)
	}
	if o := m.Snapshot().Offer("paris", "h"); o.State != model.Fresh || !o.GraceEnds.IsZero() {
		t.Errorf("paris is %v after it was heard again", o.State)
	}
}

func TestWhatIsNotNewMakesNoGeneration(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	f := gpus("paris", "h100", 8)
	f.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(2)}
	f.Spec.Held = map[string]v1alpha1.Resources{"a": {"gpu": v1alpha1.AmountOf(1)}}
	report(t, m, "paris", gen(1, 1), f)
	before := m.Snapshot()
	<-m.Changed()
	same := f
	same.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(2), "cpu": v1alpha1.AmountOf(0)}
	report(t, m, "paris", gen(1, 2), same)
	c.pass(time.Second)
	m.SetInputs(market.Inputs{Fleet: &v1alpha1.FleetSpec{}})
	if s := m.Snapshot(); s.Generation() != before.Generation() || s.Tree().Root != before.Tree().Root {
		t.Error("the same list made another generation")
	}
	select {
	case <-m.Changed():
		t.Error("the same list was news")
	default:
	}
	same.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(3)}
	report(t, m, "paris", gen(1, 3), same)
	if s := m.Snapshot(); s.Generation() == before.Generation() || s.Tree().Root == before.Tree().Root || s.Offer("paris", "h100").Flavor.Spec.Used["gpu"].Int64() != 3 {
		t.Error("other usage made no other generation")
	}
	select {
	case <-m.Changed():
	default:
		t.Error("other usage was no news")
	}
	if before.Offer("paris", "h100").Flavor.Spec.Used["gpu"].Int64() != 2 {
		t.Error("an older snapshot changed")
	}
}

func TestAFlavorThatIsMissingIsWithdrawn(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	m.SetInputs(market.Inputs{Flavors: []*v1alpha1.Flavor{ptr(gpus("paris", "b", 4))}})
	report(t, m, "paris", gen(1, 1), gpus("paris", "a", 8), gpus("paris", "b", 8))
	if got := states(m.Snapshot()); got != "paris/a Fresh, paris/b Fresh" {
		t.Fatal(got)
	}
	if got := m.Snapshot().Shadowed(); !slices.Equal(got, []string{"paris/b"}) {
		t.Errorf("shadowed %v", got)
	}
	report(t, m, "paris", gen(1, 2))
	if got := states(m.Snapshot()); got != "paris/a Withdrawn, paris/b Fresh file" {
		t.Errorf("%s: want the file's flavor back, and the agent's withdrawn", got)
	}
	if _, list, _ := m.Offers(market.Query{}); len(list) != 1 {
		t.Errorf("%d flavors are shown, want only what is offered", len(list))
	}
	report(t, m, "paris", gen(1, 3), gpus("paris", "a", 8))
	if got := states(m.Snapshot()); got != "paris/a Fresh, paris/b Fresh file" {
		t.Error(got)
	}
	report(t, m, "paris", gen(1, 4))
	c.pass(25 * time.Hour)
	if err := m.Report("paris", gen(1, 4), nil, false); err != nil {
		t.Fatal(err)
	}
	s := m.Snapshot()
	if got := states(s); got != "paris/b Fresh file" {
		t.Errorf("%s: want the withdrawn flavor forgotten", got)
	}
	if o := s.Missing("paris", "a"); o.State != model.Withdrawn || o.Flavor.Ref() != "paris/a" {
		t.Errorf("a forgotten flavor of a provider that is heard is %v", o.State)
	}
	// Lost beats withdrawn: contracts on it must fail over.
	report(t, m, "paris", gen(1, 5), gpus("paris", "c", 8))
	report(t, m, "paris", gen(1, 6))
	c.pass(time.Hour)
	if o := m.Snapshot().Offer("paris", "c"); o.State != model.Lost {
		t.Errorf("withdrawn, then lost: %v", o.State)
	}
}

func ptr[T any](v T) *T { return &v }

func TestAProviderNeverHeardIsSilentSinceTheStart(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now})
	started := v1alpha1.TimeOf(c.Now())
	c.pass(time.Minute)
	if o := m.Snapshot().Missing("oslo", "h"); o.State != model.Withdrawn {
		t.Errorf("a provider that has not had the time to be heard is blamed for it: %v", o.State)
	}
	c.pass(31 * time.Second)
	if o := m.Snapshot().Missing("oslo", "h"); o.State != model.Silent || o.Since != started || !o.GraceEnds.Equal(started.Add(market.DefaultGrace)) {
		t.Errorf("%v since %v until %v", o.State, o.Since, o.GraceEnds)
	}
	c.pass(market.DefaultGrace)
	if o := m.Snapshot().Missing("oslo", "h"); o.State != model.Lost {
		t.Errorf("past its grace: %v", o.State)
	}
}

func gib(n int64) v1alpha1.MemorySize {
	return v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(n << 30)}
}

// The fleet's silence goes before the daemon's, from one round to the next, and a grace is
// never shorter.
func TestSilenceOfTheFleet(t *testing.T) {
	c := newClock()
	m := market.New(market.Options{Now: c.Now, Silence: 90 * time.Second})
	says := func(silence time.Duration) {
		m.SetInputs(market.Inputs{
			Fleet:    &v1alpha1.FleetSpec{Safety: v1alpha1.Safety{Silence: v1alpha1.Duration{Duration: silence}}, Defaults: v1alpha1.FleetDefaults{GracePeriod: v1alpha1.Duration{Duration: 5 * time.Minute}}},
			Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider")},
		})
	}
	says(0)
	report(t, m, "paris", gen(1, 1), gpus("paris", "h", 8))
	c.pass(100 * time.Second)
	for _, step := range []struct {
		silence time.Duration
		want    string
	}{{0, "paris/h Silent"}, {2 * time.Minute, "paris/h Fresh"}, {time.Minute, "paris/h Silent"}, {10 * time.Minute, "paris/h Fresh"}} {
		says(step.silence)
		if got := states(m.Snapshot()); got != step.want {
			t.Errorf("with a silence of %v after 100 s: %s, want %s", step.silence, got, step.want)
		}
	}
	c.pass(6 * time.Minute) // beyond the grace, and not beyond the silence of ten minutes
	if got := states(m.Snapshot()); got != "paris/h Fresh" {
		t.Errorf("before its silence: %s", got)
	}
	c.pass(3 * time.Minute)
	if got := states(m.Snapshot()); got != "paris/h Lost" {
		t.Errorf("after silence and grace: %s", got)
	}
}

func TestPriceAndPlace(t *testing.T) {
	own := &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": dec("2.5")}}
	table := &v1alpha1.PriceTable{Metadata: v1alpha1.Metadata{Name: "t"}, Spec: v1alpha1.PriceTableSpec{Currency: "USD", Prices: []v1alpha1.TablePrice{
		{Provider: "paris", PerHour: v1alpha1.UnitPrices{"cpu": dec("0.05")}},
		{Provider: "paris", Model: "H100", PerHour: v1alpha1.UnitPrices{"gpu": dec("3")}},
	}}}
	bySize := &v1alpha1.PriceTable{Metadata: v1alpha1.Metadata{Name: "u"}, Spec: v1alpha1.PriceTableSpec{Currency: "EUR", Prices: []v1alpha1.TablePrice{
		{Provider: "paris", Model: "A100", Memory: gib(40), PerHour: v1alpha1.UnitPrices{"gpu": dec("1")}},
		{Provider: "paris", Model: "A100", PerHour: v1alpha1.UnitPrices{"gpu": dec("5")}},
		{Provider: "paris", Model: "A100", Memory: gib(80), PerHour: v1alpha1.UnitPrices{"gpu": dec("2")}},
	}}}
	night := &v1alpha1.PriceTable{Metadata: v1alpha1.Metadata{Name: "n"}, Spec: v1alpha1.PriceTableSpec{Currency: "EUR", Prices: []v1alpha1.TablePrice{{
		Provider: "paris", Model: "H100", PerHour: v1alpha1.UnitPrices{"gpu": dec("3")},
		Windows: []v1alpha1.PriceWindow{{Window: v1alpha1.Window{From: "20:00", To: "06:00"}, PerHour: v1alpha1.UnitPrices{"gpu": dec("1")}}},
	}}}}
	a100 := func(memory v1alpha1.MemorySize) func(*v1alpha1.Flavor) {
		return func(f *v1alpha1.Flavor) { f.Spec.GPU.Model, f.Spec.GPU.Memory = "nvidia-a100", memory }
	}
	priced := cluster("paris", "provider")
	priced.Spec.DefaultPrice = &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": dec("9"), "cpu": dec("0.02")}}
	bare := cluster("paris", "provider")
	rate := []v1alpha1.Rate{{From: "USD", To: "EUR", Rate: dec("0.9")}}
	cpuOnly := func(f *v1alpha1.Flavor) { f.Spec.GPU = nil; delete(f.Spec.Capacity, "gpu") }
	cases := map[string]struct {
		change  func(*v1alpha1.Flavor)
		cluster *v1alpha1.Cluster
		tables  []*v1alpha1.PriceTable
		price   string
	}{
		"its own":                    {func(f *v1alpha1.Flavor) { f.Spec.Price = own }, priced, nil, "EUR 2.5"},
		"the table's before its own": {func(f *v1alpha1.Flavor) { f.Spec.Price = own }, priced, []*v1alpha1.PriceTable{table}, "USD 3"},
		"the table's":                {nil, priced, []*v1alpha1.PriceTable{table}, "USD 3"},
		"the table's, by the hour":   {nil, priced, []*v1alpha1.PriceTable{night}, "EUR 3, 20:00-06:00 1"},
		"the table's, without GPUs":  {cpuOnly, priced, []*v1alpha1.PriceTable{table}, "USD 0.05"},
		"the cluster's":              {nil, priced, nil, "EUR 9"},
		"another model's row is not": {func(f *v1alpha1.Flavor) { f.Spec.GPU.Model = "nvidia-a100" }, priced, []*v1alpha1.PriceTable{table}, "EUR 9"},
		"a flat price":               {func(f *v1alpha1.Flavor) { f.Spec.Price = &v1alpha1.Price{Flat: ptr(dec("24"))} }, bare, nil, "EUR 24"},
		"that of its own memory":     {a100(gib(80)), priced, []*v1alpha1.PriceTable{bySize}, "EUR 2"},
		"that of another memory":     {a100(gib(64)), priced, []*v1alpha1.PriceTable{bySize}, "EUR 5"},
		"none":                       {nil, bare, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := market.New(market.Options{Now: newClock().Now})
			m.SetInputs(market.Inputs{
				Fleet:    &v1alpha1.FleetSpec{Currency: "EUR", Rates: rate},
				Clusters: map[string]*v1alpha1.Cluster{"paris": tc.cluster}, Prices: tc.tables,
			})
			f := gpus("paris", "h100", 8)
			f.Spec.Location = v1alpha1.Location{Zone: "a", Country: "BE"}
			if tc.change != nil {
				tc.change(&f)
			}
			report(t, m, "paris", gen(1, 1), f)
			o := m.Snapshot().Offer("paris", "h100")
			price := ""
			if p := o.Price; p != nil {
				unit := p.PerHour["gpu"]
				if p.Flat != nil {
					unit = *p.Flat
				} else if f.Spec.GPU == nil {
					unit = p.PerHour["cpu"]
				}
				price = p.Currency + " " + unit.String()
				for _, w := range p.Windows {
					price += fmt.Sprintf(", %s-%s %s", w.From, w.To, w.PerHour["gpu"])
				}
			}
			if price != tc.price {
				t.Errorf("%q, want %q", price, tc.price)
			}
			if want := (v1alpha1.Location{Region: "eu-west-3", Country: "FR"}); o.Location != want {
				t.Errorf("place %v, want %v", o.Location, want)
			}
		})
	}
}

func TestDeafness(t *testing.T) {
	clusters := map[string]*v1alpha1.Cluster{"rome": cluster("rome", "consumer")}
	for _, p := range []string{"a", "b", "c", "d"} {
		clusters[p] = cluster(p, "provider")
	}
	cases := map[string]struct {
		after   time.Duration
		heard   []string
		static  []string
		holders []string
		deaf    bool
	}{
		"just started, nobody heard":                         {0, nil, nil, nil, true},
		"just started, a quarter heard":                      {0, []string{"a"}, nil, nil, true},
		"just started, half heard":                           {0, []string{"a", "b"}, nil, nil, false},
		"just started, files tell of half":                   {0, []string{"a"}, []string{"b"}, nil, false},
		"the warm-up is over: who is not heard is not there": {40 * time.Second, nil, nil, nil, false},
		"one of three holders":                               {40 * time.Second, []string{"a"}, nil, []string{"a", "b", "c"}, true},
		"two of three holders":                               {40 * time.Second, []string{"a", "b"}, nil, []string{"a", "b", "c"}, false},
		"half of the holders":                                {40 * time.Second, []string{"a"}, nil, []string{"a", "b"}, false},
		"the others are heard, the holder is not":            {40 * time.Second, []string{"b", "c", "d"}, nil, []string{"a"}, true},
		"a holder with files only is heard":                  {40 * time.Second, nil, []string{"a"}, []string{"a"}, false},
		"a holder that has left the fleet":                   {40 * time.Second, []string{"a"}, nil, []string{"gone"}, true},
		"heard, and then no more":                            {2 * time.Minute, []string{"a", "b", "c", "d"}, nil, []string{"a", "b"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			m := market.New(market.Options{Now: c.Now})
			var files []*v1alpha1.Flavor
			for _, p := range tc.static {
				files = append(files, ptr(gpus(p, "file", 1)))
			}
			m.SetInputs(market.Inputs{Clusters: clusters, Flavors: files})
			for _, p := range tc.heard {
				report(t, m, p, gen(1, 1))
			}
			c.pass(tc.after)
			if got := m.Snapshot().Deaf(tc.holders); got != tc.deaf {
				t.Errorf("deaf %v, want %v", got, tc.deaf)
			}
		})
	}
}

// TestInputsThatChangeNothingHere: a commit of other files is another key and
// the same documents.
func TestInputsThatChangeNothingHere(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	in := market.Inputs{Key: "one", Fleet: &v1alpha1.FleetSpec{Currency: "EUR"}, Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider")}, Flavors: []*v1alpha1.Flavor{ptr(gpus("paris", "a", 8))}}
	m.SetInputs(in)
	before := m.Snapshot()
	in.Key, in.Fleet = "two", &v1alpha1.FleetSpec{Currency: "EUR"}
	m.SetInputs(in)
	if m.Snapshot().Generation() != before.Generation() {
		t.Error("the same documents made another generation")
	}
	in.Key, in.Clusters = "three", map[string]*v1alpha1.Cluster{"paris": {Metadata: v1alpha1.Metadata{Name: "paris"}}}
	m.SetInputs(in)
	if s := m.Snapshot(); s.Generation() == before.Generation() || s.Offer("paris", "a").Location != (v1alpha1.Location{}) {
		t.Error("another cluster's document changed nothing")
	}
	in.Key, in.Flavors = "four", nil
	m.SetInputs(in)
	if s := m.Snapshot(); len(s.Offers()) != 0 || s.Provider("paris").State != model.Silent {
		t.Errorf("a file that is gone is still offered, or its provider heard: %s", states(s))
	}
}
