package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
)

type logOptions struct {
	sourceFlags
	streams                            Streams
	args                               []string
	tenant, provider, contract, person string
	since, until                       string
	limit                              int
	output                             string
}

var logForms = []string{"text", "wide", "json", "yaml", "markdown"}

func newCmdAuditLog(s Streams) *cobra.Command {
	o := logOptions{streams: s, sourceFlags: sourceFlags{offers: true}}
	cmd := &cobra.Command{
		Use:   "log [DIR|URL]",
		Short: "Who asked, what was decided and why, what it cost",
		Long: `Show for every contract what was decided or seen, from the history of the ledger,
oldest first: who wrote the intent, who merged and who approved it, where it was
placed and why there, its phases, and what it had cost by then. A broken sla of
an intent stands among them: slower to become usable than sla.maxTimeToActive,
or less of the time than sla.availability.`,
		Example: `  fleetbroker audit log -t vision --since 2026-11-01
  fleetbroker audit log --person ada@example.org -o wide
  fleetbroker audit log --contract vision-llm-finetune-0-k3f9q2ab -o json`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			if err := oneOf("output", o.output, logForms...); err != nil {
				return err
			}
			return auditLogRun(cmd.Context(), &o)
		},
	}
	o.register(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVarP(&o.tenant, "tenant", "t", "", "only this tenant's")
	fs.StringVar(&o.provider, "provider", "", "only on this provider")
	fs.StringVar(&o.contract, "contract", "", "only this contract")
	fs.StringVar(&o.person, "person", "", "only what somebody asked for, merged or approved: a part of the name or address")
	fs.StringVar(&o.since, "since", "", "from this day or time on")
	fs.StringVar(&o.until, "until", "", "before this day or time")
	fs.IntVarP(&o.limit, "limit", "n", 0, "only the newest so many (default: all)")
	outputFlag(cmd, &o.output, logForms...)
	return cmd
}

func auditLogRun(ctx context.Context, o *logOptions) error {
	var bounds [2]time.Time
	for i, text := range []string{o.since, o.until} {
		if text == "" {
			continue
		}
		var err error
		if bounds[i], err = time.Parse(time.DateOnly, text); err != nil {
			if bounds[i], err = time.Parse(time.RFC3339, text); err != nil {
				return usagef("--since, --until %q: want a day such as 2026-11-20, or a time such as 2026-11-20T22:00:00Z", text)
			}
		}
	}
	src, f, err := o.openFleet(ctx, o.args)
	if err != nil {
		return err
	}
	if err := src.sayUnverified(ctx, f, o.streams); err != nil {
		return err
	}
	opts, end, err := src.history(f, o.streams, "commits read")
	if err != nil {
		return err
	}
	events, tenants := []audit.Event{}, sortedNames(f.Tenants)
	err = audit.Log(ctx, src.objects, opts, func(e audit.Event) error {
		if e.Tenant == o.tenant { // of one that has left the fleet too
			tenants = append(tenants, e.Tenant)
		}
		if o.wants(&e) && !e.At.Before(bounds[0]) && (bounds[1].IsZero() || e.At.Before(bounds[1])) {
			events = append(events, e)
		}
		return nil
	})
	end()
	if err != nil {
		return err
	}
	if err := knownTenant(tenants, o.tenant); err != nil {
		return err
	}
	if o.limit < 0 {
		return errors.New("--limit counts events: it cannot be less than 0")
	}
	if o.limit > 0 && len(events) > o.limit {
		events = events[len(events)-o.limit:]
	}
	return o.print(events)
}

// wants reports whether an event passes the filters.
func (o *logOptions) wants(e *audit.Event) bool {
	if o.tenant != "" && e.Tenant != o.tenant || o.provider != "" && e.Provider != o.provider || o.contract != "" && e.Contract != o.contract {
		return false
	}
	people := strings.ToLower(strings.Join(append([]string{e.AskedBy, e.MergedBy}, e.ApprovedBy...), "\n"))
	return strings.Contains(people, strings.ToLower(o.person))
}

func (o *logOptions) print(events []audit.Event) error {
	switch o.output {
	case "json":
		return escape.WriteJSON(o.streams.Out, events)
	case "yaml":
		return printYAML(o.streams.Out, events)
	}
	t := tables.New(o.streams.view(o.output), "TIME", "WHAT", "INTENT", "ON", ">COST", "ASKED BY", "WHY", "+CONTRACT", "+COMMIT", "+CHANGE", "+MERGED BY", "+APPROVED BY")
	for i := range events {
		e := &events[i]
		t.Row(e.At.UTC().Format(time.RFC3339), e.What, e.Tenant+"/"+e.Intent, e.Provider+"/"+e.Flavor, t.Money(e.Cost).Text+" "+e.Currency, e.AskedBy, e.Why,
			e.Contract, e.Commit, e.Change, e.MergedBy, strings.Join(e.ApprovedBy, ", "))
	}
	if o.output == "markdown" {
		return t.Markdown(o.streams.Out)
	}
	return t.Print(o.streams.Out)
}
