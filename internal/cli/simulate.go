package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/outfile"
	"github.com/fleetbroker/fleetbroker/internal/cli/progress"
	"github.com/fleetbroker/fleetbroker/internal/cli/simulated"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
	"github.com/fleetbroker/fleetbroker/internal/simulate/samples"
)

type simulateOptions struct {
	sourceFlags
	streams  Streams
	args     []string
	offers   []string
	demand   string
	policies []string
	growth   []int
	rates    []string
	currency string
	purchase []string
	penalty  string
	tick     time.Duration
	until    time.Duration
	html     string
	samples  string
	output   string
	run      simulate.Options
}

var simulateForms = []string{"text", "wide", "json", "yaml"}

func newCmdSimulate(s Streams) *cobra.Command {
	o := simulateOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "simulate [DIR|URL] --offers FILE --demand FILE",
		Short: "Run a table of demand through the planner in virtual time",
		Long: `Run a table of demand through the planner in virtual time, and say what would have
been placed and refused, how long it would have waited, what it would have cost,
how full the GPUs were and how evenly tenants were served.

--offers is a CSV of priced machines or the node list of a cluster trace, --demand
a CSV with one intent a row (the form of cluster traces). With a fleet repo its
currency, rates, weights, quotas and budgets hold. The planner is compared with
known policies by --policy: ` + strings.Join(simulate.Baselines, ", ") + `.

Where the demand has shares of cards, the cards of a trace's nodes are cut into
thousandths, and every share lies on one card.`,
		Example: `  fleetbroker simulate --samples what-if        # two tables to start from
  fleetbroker simulate --offers offers.csv --demand demand.csv
  fleetbroker simulate --offers nodes.csv --demand pods.csv --policy planner,best-fit,fgd --load 1.3 --stay --queue fail
  fleetbroker simulate fleet --offers offers.csv --demand demand.csv --html report.html
  fleetbroker simulate --offers nodes.csv --demand pods.csv --growth 10,50,100 -o json`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			return simulateRun(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	o.register(f)
	f.StringSliceVar(&o.offers, "offers", nil, "CSV of offers or nodes; several are put together")
	f.StringVar(&o.demand, "demand", "", "CSV of demand")
	f.StringSliceVar(&o.policies, "policy", []string{simulate.Planner}, "policies to compare: "+strings.Join(simulate.Policies(), ", "))
	f.StringVar((*string)(&o.run.Objective), "objective", "", "objective of every intent: balanced, cost, performance, latency or energy (default the fleet's weights)")
	f.StringSliceVar(&o.purchase, "purchase", nil, "price classes that every intent accepts: on-demand, spot, reserved (default on-demand)")
	f.StringVar(&o.run.Fair, "fair", "on", "turns among intents of equal priority by what tenants hold: on, off (by age alone), or both for comparison")
	f.StringVar(&o.run.Queue, "queue", "wait", "what does not fit: wait, or fail at once")
	f.Uint64Var(&o.run.Seed, "seed", 1, "seed of what is drawn")
	f.Float64Var(&o.run.Load, "load", 0, "draw demand for so many times the GPUs there are; 0 takes the table as it is")
	f.BoolVar(&o.run.Stay, "stay", false, "ignore deletion times: arrivals only")
	f.DurationVar(&o.tick, "tick", 0, "plan arrivals together at multiples of this; 0 plans each instant by itself")
	f.DurationVar(&o.until, "until", 0, "end at this virtual time; 0 goes on until the last has left")
	f.IntVar(&o.run.Clusters, "clusters", 0, "deal the offers out over so many clusters; 0 takes them as they are")
	f.IntSliceVar(&o.growth, "growth", nil, "also at these sizes of the fleet, in clusters")
	f.BoolVar(&o.run.Parts, "parts", false, "sell parts of machines that the table sells whole")
	f.StringVar(&o.currency, "currency", "", "currency of the report (default the fleet's, else that of the first priced offer)")
	f.StringArrayVar(&o.rates, "rate", nil, "exchange rate such as CNY:USD=0.14; several may be given")
	f.StringVar(&o.penalty, "penalty", "100", "what a GPU-hour that was never placed counts in the second sum of costs")
	f.StringVar(&o.html, "html", "", "write a report with charts to this file")
	f.StringVar(&o.samples, "samples", "", "write offers.csv and demand.csv to start from into this directory, drawn by --seed, and end")
	outputFlag(cmd, &o.output, simulateForms...)
	return cmd
}

func simulateRun(ctx context.Context, o simulateOptions) error {
	if o.samples != "" {
		return o.writeSamples()
	}
	if err := o.check(); err != nil {
		return err
	}
	if err := o.load(ctx); err != nil {
		return err
	}
	page, err := outfile.Open(o.html)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	defer page.Discard()
	line := progress.To(o.streams.Err, o.streams.ErrTerminal, o.streams.Now)
	o.run.Progress = line.Show
	result, err := simulate.Run(o.run)
	if err == nil && len(o.growth) > 0 {
		result.Growth, err = simulate.Grow(o.run, o.growth)
	}
	line.End()
	if err != nil {
		return fmt.Errorf("run the simulation: %w", err)
	}
	if o.html != "" {
		var report bytes.Buffer
		if err := simulate.HTML(&report, result); err != nil {
			return fmt.Errorf("make the report: %w", err)
		}
		if err := page.Replace(report.Bytes()); err != nil {
			return err
		}
	}
	if o.output == "json" || o.output == "yaml" {
		return printOutcome(o.streams.Out, o.output, result, "")
	}
	return simulated.Print(o.streams.Out, o.streams.view("text"), result, o.output == "wide")
}

// sampleRows is how many rows of demand a sample has.
const sampleRows = 60

// writeSamples writes tables to start from.
func (o *simulateOptions) writeSamples() error {
	offers, demand, err := samples.Write(o.samples, o.run.Seed, sampleRows)
	if err == nil {
		fmt.Fprintf(o.streams.Out, "%s\n%s\n", offers, demand)
	}
	return err
}

// check looks at the flags alone.
func (o *simulateOptions) check() error {
	if len(o.offers) == 0 || o.demand == "" {
		return hinted(usagef("--offers and --demand are needed"), "both are CSV files; to start from some: fleetbroker simulate --samples DIR. The columns are in docs/simulate.md of a fleet repo")
	}
	if err := oneOf("output", o.output, simulateForms...); err != nil {
		return err
	}
	for _, p := range o.policies {
		if err := oneOf("policy", p, simulate.Policies()...); err != nil {
			return err
		}
	}
	if o.run.Objective != "" {
		if err := oneOf("objective", string(o.run.Objective), "balanced", "cost", "performance", "latency", "energy"); err != nil {
			return err
		}
	}
	for _, c := range o.purchase {
		if err := oneOf("purchase", c, "on-demand", "spot", "reserved"); err != nil {
			return err
		}
		o.run.Purchase = append(o.run.Purchase, v1alpha1.PriceClass(c))
	}
	if err := oneOf("fair", o.run.Fair, simulate.Fairnesses...); err != nil {
		return err
	}
	if err := oneOf("queue", o.run.Queue, "wait", "fail"); err != nil {
		return err
	}
	if n := o.run.Clusters; n < 0 || n > 10_000 {
		return usagef("--clusters %d: want 1 to 10000, or 0 to take the offers as they are", n)
	}
	for _, n := range o.growth {
		if n < 1 || n > 10_000 {
			return usagef("--growth %d: want 1 to 10000 clusters", n)
		}
	}
	if !(o.run.Load >= 0 && o.run.Load <= 1000) {
		return usagef("--load %v: want 0 to 1000", o.run.Load)
	}
	if o.tick < 0 || o.until < 0 {
		return usagef("--tick and --until are times from 0")
	}
	o.run.Policies, o.run.Tick, o.run.Until = o.policies, int64(o.tick/time.Second), int64(o.until/time.Second)
	var err error
	if o.run.Penalty, err = v1alpha1.ParseDecimal(o.penalty); err != nil || o.run.Penalty.Sign() < 0 {
		return usagef("--penalty %q: want an amount such as 100", o.penalty)
	}
	return nil
}

// load reads the tables, and the fleet when one was named.
func (o *simulateOptions) load(ctx context.Context) error {
	o.run.Offers = &market.Table{}
	for _, name := range o.offers {
		content, err := simulated.ReadTable(name)
		if err != nil {
			return err
		}
		base := strings.ToLower(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
		t, err := market.ReadCSV(bytes.NewReader(content), strings.ReplaceAll(base, "_", "-"))
		if err != nil {
			return simulated.InFile(name, err)
		}
		o.run.Offers.Flavors = append(o.run.Offers.Flavors, t.Flavors...)
		o.run.Offers.Clusters = append(o.run.Offers.Clusters, t.Clusters...)
	}
	content, err := simulated.ReadTable(o.demand)
	if err != nil {
		return err
	}
	if o.run.Demand, err = market.ReadDemand(bytes.NewReader(content)); err != nil {
		return simulated.InFile(o.demand, err)
	}
	o.run.Fleet = &v1alpha1.FleetSpec{}
	if len(o.args) > 0 || o.dir != "" {
		src, err := o.open(ctx, o.args)
		if err != nil {
			return err
		}
		f, err := src.readFleet(ctx)
		if err != nil {
			return err
		}
		policy := *f.Policy
		o.run.Fleet, o.run.Tenants = &policy, f.Tenants
	}
	return o.money()
}

// money settles the currency and the rates.
func (o *simulateOptions) money() error {
	f := o.run.Fleet
	if o.currency != "" {
		f.Currency = strings.ToUpper(o.currency)
	}
	// The fleet's rates must hold from the start.
	o.run.Start = simulate.Start
	for _, r := range f.Rates {
		if r.Date.After(o.run.Start.Time) {
			o.run.Start = v1alpha1.TimeOf(r.Date.Time)
		}
	}
	var priced []string
	for _, fl := range o.run.Offers.Flavors {
		if fl.Spec.Price != nil {
			priced = append(priced, fl.Spec.Price.Currency)
		}
	}
	if f.Currency == "" {
		f.Currency = "EUR"
		if len(priced) > 0 {
			f.Currency = priced[0]
		}
	}
	for _, text := range o.rates {
		pair, rate, ok := strings.Cut(text, "=")
		from, to, two := strings.Cut(strings.ToUpper(pair), ":")
		d, err := v1alpha1.ParseDecimal(rate)
		if !ok || !two || err != nil || d.Sign() <= 0 {
			return usagef("--rate %q: want one such as CNY:USD=0.14", text)
		}
		f.Rates = append(f.Rates, v1alpha1.Rate{From: from, To: to, Rate: d, Date: v1alpha1.Date{Time: o.run.Start.Time}})
	}
	for _, c := range priced {
		if c != f.Currency && v1alpha1.NewestRate(f.Rates, c, f.Currency, o.run.Start) == nil {
			return hinted(fmt.Errorf("offers are priced in %s and there is no rate from %s to %s", c, c, f.Currency), fmt.Sprintf("--rate %s:%s=…", c, f.Currency))
		}
	}
	return nil
}
