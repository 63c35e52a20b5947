package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/cli/booked"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
)

type getOptions struct {
	worldFlags
	watchFlags
	streams Streams
	kind    string
	names   []string
	tenant  string
	output  string
	ended   bool

	kubeconfigs access.Kubeconfigs
}

// getKinds are what `get` lists.
var getKinds = []string{"intents", "contracts", "bookings", "flavors", "clusters", "tenants", "peerings"}

// getKey is how many of the first cells name a row, where it is not one.
var getKey = map[string]int{"intents": 2, "flavors": 2, "peerings": 2}

var getForms = []string{"text", "wide", "json", "yaml", "markdown"}

func newCmdGet(s Streams) *cobra.Command {
	o := getOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "get " + strings.Join(getKinds, "|") + " [NAME...]",
		Short: "List intents, contracts, bookings, flavors, clusters, tenants or peerings",
		Long: `List what is in a fleet repo, its ledger and its market. On a terminal columns
are aligned; in a pipe they are separated by tabs. -o wide has more of them, and
-o json has all of them, under "columns" of each object.`,
		Example: `  fleetbroker get intents
  fleetbroker get contracts -t vision -o wide
  fleetbroker get contracts --watch
  fleetbroker get flavors --market https://broker.example.org:8443/market --cert-path ~/certs
  fleetbroker get contracts -o json | jq -r '.[].metadata.name'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("what to get? One of %s", strings.Join(getKinds, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind, o.names = pluralKind(args[0]), args[1:]
			if err := oneOf("output", o.output, getForms...); err != nil {
				return err
			}
			o.looked = new(ledgerSeen)
			w := watched{watchFlags: o.watchFlags, form: o.output, key: getKey[o.kind], seen: o.looked, show: func(s Streams) error {
				o.streams = s
				return getRun(cmd.Context(), o)
			}}
			return w.run(cmd.Context(), s)
		},
	}
	o.worldFlags.register(cmd.Flags())
	o.watchFlags.register(cmd)
	cmd.Flags().StringVarP(&o.tenant, "tenant", "t", "", "only this tenant's")
	cmd.Flags().BoolVar(&o.ended, "ended", false, "contracts that have ended too")
	o.kubeconfigs.Register(cmd.Flags(), "with peerings: directory with <cluster>.kubeconfig files of consumers to ask for the health of Liqo's modules")
	outputFlag(cmd, &o.output, getForms...)
	cmd.ValidArgsFunction = completeNames(namesOfKind)
	return cmd
}

func (o *getOptions) view() tables.View { return o.streams.view(o.output) }

// pluralKind accepts "intent" for "intents".
func pluralKind(s string) string {
	s = strings.ToLower(s)
	for _, k := range getKinds {
		if s == k || s+"s" == k {
			return k
		}
	}
	return s
}

func getRun(ctx context.Context, o getOptions) error {
	list := map[string]func(*gathered, getOptions) (*tables.Table, any){
		"intents": getIntents, "contracts": getContracts, "flavors": getFlavors, "clusters": getClusters, "tenants": getTenants,
		"bookings": func(in *gathered, o getOptions) (*tables.Table, any) {
			return booked.Table(o.view(), in.perHour(), in.fleet.Policy.Timezone, in.ledger.Bookings(), o.wanted, in.facts().Hourly)
		},
		"peerings": func(in *gathered, o getOptions) (*tables.Table, any) { return getPeerings(ctx, in, o) },
	}[o.kind]
	if list == nil {
		err := usagef("there are no %q", o.kind)
		if near := nearest.Of(o.kind, getKinds); near != "" {
			return hinted(err, "did you mean "+near+"?")
		}
		return hinted(err, "one of "+strings.Join(getKinds, ", "))
	}
	src, err := o.open(ctx, nil)
	if err != nil {
		return err
	}
	in, err := o.gather(ctx, src, o.streams)
	if err != nil {
		return err
	}
	if err := knownTenant(tenantNames(in.fleet, in.ledger), o.tenant); err != nil {
		return err
	}
	t, objects := list(in, o)
	if len(o.names) > 0 && t.Len() < len(o.names) {
		return hinted(fmt.Errorf("not found among the %s: %s", o.kind, strings.Join(o.names, ", ")), "list them: fleetbroker get "+o.kind)
	}
	switch o.output {
	case "json":
		return escape.WriteJSON(o.streams.Out, objects)
	case "yaml":
		return printYAML(o.streams.Out, objects)
	case "markdown":
		return t.Markdown(o.streams.Out)
	}
	if t.Len() == 0 && o.streams.Terminal {
		fmt.Fprintf(o.streams.Err, "no %s\n", o.kind)
		return nil
	}
	return t.Print(o.streams.Out)
}

// wanted reports whether a thing is asked for: by NAME, or TENANT/NAME.
func (o *getOptions) wanted(tenant, name string) bool {
	if o.tenant != "" && tenant != o.tenant {
		return false
	}
	if len(o.names) == 0 {
		return true
	}
	for _, n := range o.names {
		if n == name || n == tenant+"/"+name {
			return true
		}
	}
	return false
}
