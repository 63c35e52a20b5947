package server

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
	"github.com/fleetbroker/fleetbroker/internal/tracing/exemplar"
)

// Metrics are all the daemon's, fleetbroker_*. Other rooms declare small
// interfaces of the methods they call; nobody reads them back.
type Metrics struct {
	registry *prometheus.Registry

	rounds        *prometheus.CounterVec
	reservations  *prometheus.CounterVec
	decision      prometheus.Histogram
	steps         *prometheus.HistogramVec
	checks        *prometheus.CounterVec
	checkBytes    prometheus.Gauge
	checkLimit    prometheus.Gauge
	commit        prometheus.Histogram
	pushConflicts prometheus.Counter
	faults        prometheus.Counter
	adverts       *prometheus.CounterVec
	toReserve     prometheus.Histogram
	toActive      prometheus.Histogram
	spend         *money
	savings       *levels
	expiring      *levels
	conditions    *levels
	notifications *prometheus.CounterVec
	storeWrites   *prometheus.CounterVec
	storeCut      prometheus.Gauge
	tracer        *tracing.Tracer // nil: histograms have no exemplars
}

// Buckets in seconds: fast ones for what the daemon computes, slow ones for
// what a team waits for.
var (
	fast = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slow = []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600}
)

// NewMetrics makes them on a registry of their own, with those of the Go
// runtime and the process.
func NewMetrics() *Metrics {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "fleetbroker_" + name, Help: help, Buckets: buckets})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fleetbroker_" + name, Help: help}, labels)
	}
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		rounds:       counters("rounds_total", "Rounds by outcome: committed, planned (nothing to write yet), unchanged, again (another one follows at once), error.", "outcome"),
		reservations: counters("reservations_total", "Contracts that entered a phase, by the tenant or cluster that asked.", "phase", "requester"),
		decision:     histogram("decision_seconds", "Time to plan a round.", fast),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fleetbroker_planner_step_seconds", Help: "Time of a plan's steps: observe, guard, settle, serve, batch, consolidate, conclude, check.", Buckets: fast,
		}, []string{"step"}),
		checks:        counters("planner_checks_total", "Plans checked against a plan from nothing, by result: equal, different (which is then acted on), over_budget (not checked for want of memory); disputed: by the denials that it records it would be decided otherwise.", "result"),
		checkBytes:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "fleetbroker_planner_check_bytes", Help: "Memory that the newest check of a plan allocated."}),
		checkLimit:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "fleetbroker_planner_check_limit_bytes", Help: "Memory that a check of a plan may allocate; 0 is without limit."}),
		commit:        histogram("commit_seconds", "Time to write and push a round's commit.", fast),
		pushConflicts: prometheus.NewCounter(prometheus.CounterOpts{Name: "fleetbroker_push_conflicts_total", Help: "Pushes refused because the ref had moved."}),
		faults:        prometheus.NewCounter(prometheus.CounterOpts{Name: "fleetbroker_planner_faults_total", Help: "Plans made from nothing because the planner's session could not be updated; the log has the stack."}),
		adverts:       counters("advert_total", "Reports of agents, by result: accepted, unknown_base, stale, rejected, limited, unavailable.", "cluster", "result"),
		toReserve:     histogram("time_to_reserve_seconds", "Time from an intent's first sight to its reservation.", slow),
		toActive:      histogram("time_to_active_seconds", "Time from reservation to usable capacity.", slow),
		spend:         newMoney("spend_total", "Spend accrued, from the ledger."),
		savings:       newLevels("savings", "What contracts would have cost at list price less what they cost (spot, reserved, price windows), from the ledger. It falls while a price window is above list price.", "tenant", "currency"),
		expiring:      newLevels("contracts_expiring", "Contracts that end within their lead time: a tenth of their term, a day at the most.", "tenant"),
		conditions:    newLevels("provider_condition", "1 for each provider of which something should be looked at: LocationContradicted, PriceContradicted, FlavorFileShadowed, RefusesContracts.", "provider", "type"),
		notifications: counters("notifications_total", "Notifications of tenants, by result: sent, failed (and tried again), dropped (too many or too old).", "tenant", "result"),
		storeWrites:   counters("market_store_writes_total", "Writes of the market's shared store, by kind (advertisement, part, observation, heartbeat) and result (ok, conflict, refused, error).", "kind", "result"),
		storeCut:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "fleetbroker_market_store_cut", Help: "1 while the market's shared store cannot be used, so that no agent's report is taken."}),
	}
	for _, outcome := range []string{"committed", "planned", "unchanged", "again", "error"} {
		m.rounds.WithLabelValues(outcome) // so that the first of each is seen as one more
	}
	m.registry.MustRegister(version.Info("fleetbroker"), m.rounds, m.storeWrites, m.storeCut, m.notifications, m.expiring, m.conditions, m.reservations, m.decision, m.steps, m.checks, m.checkBytes, m.checkLimit, m.commit, m.pushConflicts, m.faults, m.adverts, m.toReserve, m.toActive, m.spend, m.savings,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Describe tells which metrics there are, those too of which there is no series yet.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { m.registry.Describe(ch) }

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: m.tracer != nil})
}

// Traced has histograms of rounds show the trace of the one under way, as exemplars, which
// are told to who asks for OpenMetrics. It is called before the first round.
func (m *Metrics) Traced(t *tracing.Tracer) { m.tracer = t }

// Register adds a room's own collectors.
func (m *Metrics) Register(cs ...prometheus.Collector) error {
	for _, c := range cs {
		if err := m.registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// Round counts a round by its outcome.
func (m *Metrics) Round(outcome string) { m.rounds.WithLabelValues(outcome).Inc() }

// Reservation counts a contract that entered a phase.
func (m *Metrics) Reservation(phase v1alpha1.Phase, requester string) {
	m.reservations.WithLabelValues(string(phase), requester).Inc()
}

// Decision observes the planning of a round.
func (m *Metrics) Decision(d time.Duration) { exemplar.Observe(m.decision, d, m.tracer.Round()) }

// Commit observes a commit with its push.
func (m *Metrics) Commit(d time.Duration) { exemplar.Observe(m.commit, d, m.tracer.Round()) }

// PushConflict counts a push that lost a race.
func (m *Metrics) PushConflict() { m.pushConflicts.Inc() }

// PlannerFault counts a plan that was made from nothing because the planner's
// session could not be updated.
func (m *Metrics) PlannerFault() { m.faults.Inc() }

// PlannerStep observes one step of a plan.
func (m *Metrics) PlannerStep(step string, d time.Duration) {
	exemplar.Observe(m.steps.WithLabelValues(step), d, m.tracer.Round())
}

// PlannerCheck counts a check of a plan, with the bytes that it allocated; 0 when
// none was made.
func (m *Metrics) PlannerCheck(result string, bytes uint64) {
	m.checks.WithLabelValues(result).Inc()
	if bytes > 0 {
		m.checkBytes.Set(float64(bytes))
	}
}

// PlannerCheckLimit sets how many bytes a check may allocate.
func (m *Metrics) PlannerCheckLimit(bytes uint64) { m.checkLimit.Set(float64(bytes)) }

// StoreWrote counts a write of the market's store.
func (m *Metrics) StoreWrote(kind, result string) { m.storeWrites.WithLabelValues(kind, result).Inc() }

// StoreCut sets whether the market's store is out of reach.
func (m *Metrics) StoreCut(cut bool) {
	m.storeCut.Set(0)
	if cut {
		m.storeCut.Set(1)
	}
}

// Advert counts an agent's report.
func (m *Metrics) Advert(cluster, result string) { m.adverts.WithLabelValues(cluster, result).Inc() }

// TimeToReserve observes the wait from first sight to reservation; trace is the contract's, "" for none.
func (m *Metrics) TimeToReserve(d time.Duration, trace string) {
	exemplar.Observe(m.toReserve, d, cmp.Or(trace, m.tracer.Round()))
}

// TimeToActive observes the wait from reservation to usable capacity; trace is the contract's, "" for none.
func (m *Metrics) TimeToActive(d time.Duration, trace string) {
	exemplar.Observe(m.toActive, d, cmp.Or(trace, m.tracer.Round()))
}

// Notified counts what became of notifications of a tenant.
func (m *Metrics) Notified(tenant, result string, n int) {
	m.notifications.WithLabelValues(tenant, result).Add(float64(n))
}

// Sum is a tenant's sum in one currency.
type Sum struct {
	Tenant, Currency string
	Amount           v1alpha1.Decimal
}

// SetSpend replaces all sums of spend by what the ledger says.
func (m *Metrics) SetSpend(sums []Sum) { m.spend.set(sums) }

// SetSavings replaces all sums of savings by what the ledger says.
func (m *Metrics) SetSavings(sums []Sum) {
	var out []level
	for _, s := range merged(sums) {
		out = append(out, level{[]string{s.Tenant, s.Currency}, s.Amount.Float()})
	}
	m.savings.set(out)
}

// money is a counter whose values are the ledger's and not this process's: a
// restart must not begin at 0 again. Nor does it fall: what runs is counted to now, and
// where it is then found to have ended a moment before, Prometheus would take the lower sum
// for a restart, and all that was ever spent for spent since. It waits until the sum is there
// again.
type money struct {
	desc *prometheus.Desc

	mu   sync.Mutex
	sums []Sum
}

func newMoney(name, help string) *money {
	return &money{desc: prometheus.NewDesc("fleetbroker_"+name, help, []string{"tenant", "currency"}, nil)}
}

// merged adds up what has the same labels: two series of one name would fail the
// whole scrape.
func merged(sums []Sum) []Sum {
	out := make([]Sum, 0, len(sums))
	at := map[[2]string]int{}
	for _, s := range sums {
		key := [2]string{s.Tenant, s.Currency}
		if i, ok := at[key]; ok {
			out[i].Amount = out[i].Amount.Add(s.Amount)
			continue
		}
		at[key] = len(out)
		out = append(out, s)
	}
	return out
}

func (m *money) set(sums []Sum) {
	sums = merged(sums)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, before := range m.sums {
		for i := range sums {
			if s := &sums[i]; s.Tenant == before.Tenant && s.Currency == before.Currency && s.Amount.Cmp(before.Amount) < 0 {
				s.Amount = before.Amount
			}
		}
	}
	m.sums = sums
}

// Describe implements prometheus.Collector.
func (m *money) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

// Collect implements prometheus.Collector.
func (m *money) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sums {
		ch <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, s.Amount.Float(), s.Tenant, s.Currency)
	}
}
