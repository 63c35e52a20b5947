package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/audit/focus"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

type costOptions struct {
	sourceFlags
	streams  Streams
	args     []string
	by       string
	from, to string
	currency string
	at       string
	output   string
}

var costForms = []string{"text", "wide", "json", "yaml", "markdown", "focus", "focus-1.3"}

func newCmdCost(s Streams) *cobra.Command {
	o := costOptions{streams: s, sourceFlags: sourceFlags{offers: true}}
	cmd := &cobra.Command{
		Use:   "cost [DIR|URL]",
		Short: "What was spent, and will be, from the ledger's history",
		Long: `Add up what contracts cost, per second from their reservation to their release
except while degraded by their provider, from the history of the ledger: what
has accrued, what list price would have been, and what the contracts that are
held will cost until the end of the period (default: of this month).

-o focus (focus-1.3) writes one row a contract, price and month as CSV with the columns of
the FinOps Open Cost and Usage Specification 1.0 (or 1.3), without forecasts.`,
		Example: `  fleetbroker cost --by tenant
  fleetbroker cost --by label:app --from 2026-11-01 --to 2026-12-01
  fleetbroker cost --by provider --currency USD -o json
  fleetbroker cost --from 2026-11 --to 2026-12 -o focus > focus.csv`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			if err := oneOf("output", o.output, costForms...); err != nil {
				return err
			}
			err := costRun(cmd.Context(), &o)
			if errors.Is(err, ledger.ErrNoRate) {
				err = hinted(err, "add it to spec.rates of fleet.yaml")
			}
			return err
		},
	}
	o.register(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&o.by, "by", "tenant", "what to add up: tenant, intent, provider, month, contract, or label:KEY of the intents")
	fs.StringVar(&o.from, "from", "", "beginning of the period: a month, a day or a time (default: since ever)")
	fs.StringVar(&o.to, "to", "", "end of the period, not part of it (default: the end of this month)")
	fs.StringVar(&o.currency, "currency", "", "currency of all figures, by the fleet's rates of each day (default: the fleet's)")
	fs.StringVar(&o.at, "at", "", "look as if it were this time (RFC 3339)")
	outputFlag(cmd, &o.output, costForms...)
	return cmd
}

// costRow is what one tenant, intent, provider … cost.
type costRow struct {
	Name string `json:"name"`
	// Cost that has accrued, List what list price would have been, Saved the difference.
	Cost  v1alpha1.Decimal `json:"cost"`
	List  v1alpha1.Decimal `json:"list"`
	Saved v1alpha1.Decimal `json:"saved"`
	// BelowDearest is what all of it would have cost more on the dearest offers
	// that fitted when it was decided; nil where that is not known of all.
	BelowDearest *v1alpha1.Decimal `json:"belowDearest,omitempty"`
	// Forecast is what is still to come in the period.
	Forecast v1alpha1.Decimal `json:"forecast"`
	Currency string           `json:"currency"`
}

func costRun(ctx context.Context, o *costOptions) error {
	key, err := costKey(o.by)
	if err != nil {
		return err
	}
	src, f, err := o.openFleet(ctx, o.args)
	if err != nil {
		return err
	}
	if err := src.sayUnverified(ctx, f, o.streams); err != nil {
		return err
	}
	books, err := ledger.BooksOf(f.Policy)
	if err != nil {
		return err
	}
	period, err := o.period(books)
	if err != nil {
		return err
	}
	opts, end, err := src.history(f, o.streams, "commits read")
	if err != nil {
		return err
	}
	var charges []audit.Charge
	err = audit.Charges(ctx, src.objects, opts, period, func(c audit.Charge) { charges = append(charges, c) })
	end()
	if err != nil {
		return err
	}
	to := cmp.Or(strings.ToUpper(o.currency), books.Currency)
	if name, version, _ := strings.Cut(o.output, "-"); name == "focus" {
		return focus.Write(o.streams.Out, cmp.Or(version, focus.V10), f, books, to, charges)
	}
	rows, err := costRows(charges, books, to, key)
	if err != nil {
		return err
	}
	return o.print(rows)
}

// costKey is what charges are added up by.
func costKey(by string) (func(c *audit.Charge) string, error) {
	label, labelled := strings.CutPrefix(by, "label:")
	switch {
	case labelled && label != "":
		return func(c *audit.Charge) string { return tables.Dash(c.Labels[label]) }, nil
	case by == "tenant":
		return func(c *audit.Charge) string { return c.Contract.Metadata.Namespace }, nil
	case by == "intent":
		return func(c *audit.Charge) string {
			return c.Contract.Metadata.Namespace + "/" + c.Contract.Spec.Intent.Name
		}, nil
	case by == "provider":
		return func(c *audit.Charge) string { return c.Contract.Spec.Provider }, nil
	case by == "contract":
		return func(c *audit.Charge) string { return c.Contract.Metadata.Name }, nil
	case by == "month":
		return func(c *audit.Charge) string { return c.Month }, nil
	}
	return nil, usagef("--by %q: want tenant, intent, provider, month, contract or label:KEY", by)
}

// costRows adds charges up, each converted by the rate of its own end.
func costRows(charges []audit.Charge, books ledger.Books, to string, key func(*audit.Charge) string) ([]costRow, error) {
	sums := map[string]*costRow{}
	for i := range charges {
		c := &charges[i]
		cost, err := focus.Exchange(books, c.Cost.Amount, c.Contract.Spec.Price.Currency, to, c.To)
		if err != nil {
			return nil, err
		}
		list, err := focus.Exchange(books, c.Cost.List, c.Contract.Spec.Price.Currency, to, c.To)
		if err != nil {
			return nil, err
		}
		name := key(c)
		r := sums[name]
		if r == nil {
			r = &costRow{Name: name, Currency: to, BelowDearest: &v1alpha1.Decimal{}}
			sums[name] = r
		}
		if c.Forecast {
			r.Forecast = r.Forecast.Add(cost)
			continue
		}
		r.Cost, r.List = r.Cost.Add(cost), r.List.Add(list)
		r.Saved = r.List.Sub(r.Cost)
		if c.Dearest == nil || r.BelowDearest == nil {
			r.BelowDearest = nil
			continue
		}
		there, err := focus.Exchange(books, *c.Dearest, c.Contract.Spec.Price.Currency, to, c.To)
		if err != nil {
			return nil, err
		}
		below := r.BelowDearest.Add(there.Sub(cost))
		r.BelowDearest = &below
	}
	rows := make([]costRow, 0, len(sums))
	for _, r := range sums {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b costRow) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

// period reads the flags; days and months are those of the fleet's timezone.
func (o *costOptions) period(books ledger.Books) (audit.Period, error) {
	now, err := parseAt(o.at, o.streams.Now())
	if err != nil {
		return audit.Period{}, err
	}
	p := audit.Period{Now: v1alpha1.TimeOf(now)}
	_, p.Until = books.MonthBounds(p.Now)
	for _, f := range []struct {
		flag, text string
		into       *v1alpha1.Time
	}{{"from", o.from, &p.From}, {"to", o.to, &p.Until}} {
		if f.text == "" {
			continue
		}
		parsed := false
		for _, form := range []string{"2006-01", time.DateOnly, time.RFC3339} {
			if t, err := time.ParseInLocation(form, f.text, books.Zone); err == nil {
				*f.into, parsed = v1alpha1.TimeOf(t), true
				break
			}
		}
		if !parsed {
			return p, usagef("--%s %q: want a month such as 2026-11, a day such as 2026-11-20, or a time such as 2026-11-20T22:00:00Z", f.flag, f.text)
		}
	}
	if !p.From.Before(p.Until.Time) {
		return p, usagef("the period ends %s, before it begins", p.Until.UTC().Format(time.RFC3339))
	}
	return p, nil
}

func (o *costOptions) print(rows []costRow) error {
	switch o.output {
	case "json":
		return escape.WriteJSON(o.streams.Out, rows)
	case "yaml":
		return printYAML(o.streams.Out, rows)
	}
	t := tables.New(o.streams.view(o.output), strings.ToUpper(o.by), ">COST", ">LIST", ">SAVED", ">BELOW HIGHEST", ">FORECAST", "CURRENCY")
	for _, r := range rows {
		below := tables.Cell{Text: "unknown"}
		if r.BelowDearest != nil {
			below = t.Money(*r.BelowDearest)
		}
		t.Row(r.Name, t.Money(r.Cost), t.Money(r.List), t.Money(r.Saved), below, t.Money(r.Forecast), r.Currency)
	}
	if o.output == "markdown" {
		return t.Markdown(o.streams.Out)
	}
	return t.Print(o.streams.Out)
}
