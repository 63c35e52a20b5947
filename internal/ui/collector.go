package ui

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// collector gives the fleet's figures as the dashboard shows them.
type collector struct {
	ui                                                                          *UI
	info, intents, providers, unreported, gpus, oldest, perHour, breaches, deaf *prometheus.Desc
	used, held, forecast, limit                                                 *prometheus.Desc // of budgets
}

// Collector are the fleet's figures for Prometheus, by the newest round that pages show.
// Before the first round there are none. Each figure has at most some 64 series, those of
// budgets one a tenant.
func Collector(u *UI) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("fleetbroker_"+name, help, labels, nil)
	}
	return &collector{
		ui:         u,
		info:       desc("fleet_info", "1, with the fleet's name and the currency of its sums: join by it where one Prometheus scrapes several fleets.", "fleet", "currency"),
		intents:    desc("intents", "Intents by state and code of the reason (other: beyond 64 of them).", "state", "reason"),
		providers:  desc("providers", "Providers by state: Ready, Cordoned, Draining, Silent, Lost, Elsewhere, Unreported, Unreachable (as a consumer).", "state"),
		unreported: desc("provider_unreported_seconds", "For how long a provider that is Silent or Lost has sent no report (other: beyond 64 of them, the longest).", "provider", "state"),
		gpus:       desc("gpus", "GPUs of all offers by model, and kind: capacity, used (by the provider itself), held (by contracts), free (for sale now), idle (held by active contracts without pods, as far as agents report pods), oversold (used and held beyond capacity), headroom (may still be sold beyond capacity, by overcommit).", "model", "kind"),
		oldest:     desc("queue_oldest_seconds", "How long the intent has waited that has waited longest; 0 when none waits."),
		perHour:    desc("spend_per_hour", "What all contracts cost an hour now.", "currency"),
		breaches:   desc("sla_breaches", "Held contracts that break their intent's sla at present, by kind: late (not usable within maxTimeToActive so far), availability (usable for less of the time than asked for, an outage that goes on included).", "kind"),
		used:       desc("budget_used", "What the contracts of a tenant with a monthly budget have cost this month, as its page shows it.", "tenant", "currency"),
		held:       desc("budget_held", "What a tenant's contracts will cost until the month or their term ends.", "tenant", "currency"),
		forecast:   desc("budget_forecast", "What the whole month will cost a tenant: used and held.", "tenant", "currency"),
		limit:      desc("budget_limit", "A tenant's budget of a month.", "tenant", "currency"),
		deaf:       desc("deaf", "1 while too few providers report, so that nothing is moved, refused or queued."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.info, c.intents, c.providers, c.unreported, c.gpus, c.oldest, c.perHour, c.breaches, c.deaf, c.used, c.held, c.forecast, c.limit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	m, err := c.ui.newest()
	if err != nil || m == nil {
		return // nothing is known yet; /readyz says why
	}
	l := m.Levels()
	// Labels are words of files and agents: they are written as a page writes them, and those
	// that are then alike are one series, because two of them would cost the whole scrape.
	type series struct {
		of     *prometheus.Desc
		labels [2]string
	}
	sums, sizes := map[series]float64{}, map[series]int{}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		key := series{of: d}
		for i := range labels {
			key.labels[i] = escape.Line(labels[i])
		}
		sums[key] += v
		sizes[key] = len(labels)
	}
	defer func() {
		for key, v := range sums {
			ch <- prometheus.MustNewConstMetric(key.of, prometheus.GaugeValue, v, key.labels[:sizes[key]]...)
		}
	}()
	gauge(c.info, 1, m.Fleet.Name, m.Currency())
	for key, n := range l.Intents {
		gauge(c.intents, float64(n), key[0], key[1])
	}
	for state, n := range l.Providers {
		gauge(c.providers, float64(n), state)
	}
	for key, silent := range l.Unreported {
		gauge(c.unreported, silent.Seconds(), key[0], key[1])
	}
	for model, share := range l.GPUs {
		for _, kind := range []struct {
			name string
			n    int64
		}{{"capacity", share.Capacity}, {"used", share.Used}, {"held", share.Held}, {"free", share.Free}, {"idle", l.Idle[model]}, {"oversold", l.Oversold[model]}, {"headroom", l.Headroom[model]}} {
			gauge(c.gpus, float64(kind.n), model, kind.name)
		}
	}
	gauge(c.oldest, l.Oldest.Seconds())
	gauge(c.perHour, l.Hourly.Float(), l.Currency)
	for kind, n := range l.Breaches {
		gauge(c.breaches, float64(n), kind)
	}
	for i := range l.Budgets {
		t := &l.Budgets[i]
		gauge(c.limit, t.Money.Budget.Float(), t.Name, t.Money.Currency)
		if t.Money.Spent != nil { // else a rate of exchange is missing
			gauge(c.used, t.Money.Spent.Float(), t.Name, t.Money.Currency)
			gauge(c.held, t.Money.Forecast.Sub(*t.Money.Spent).Float(), t.Name, t.Money.Currency)
			gauge(c.forecast, t.Money.Forecast.Float(), t.Name, t.Money.Currency)
		}
	}
	set := 0.0
	if l.Deaf {
		set = 1
	}
	gauge(c.deaf, set)
}
