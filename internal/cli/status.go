package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/cli/consumers"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/review"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

type statusOptions struct {
	worldFlags
	watchFlags
	streams     Streams
	kubeconfigs access.Kubeconfigs
	output      string
}

// A page has no narrow form, so wide is text.
var statusForms = []string{"text", "wide", "json", "yaml", "markdown"}

func newCmdStatus(s Streams) *cobra.Command {
	o := statusOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show intents, contracts, peerings, nodes and spend on one page",
		Long: `Show the state of the fleet on one page, from the fleet repo and its ledger. With
--kubeconfigs-dir the consumer clusters are asked for the health of their
peerings and virtual nodes. With --market of a running daemon it shows the pods on
each contract, as the consumers' agents reported them, and how long ago. From a day
of history on, it tells how many GPUs tenants are expected to hold of each shape,
and how wrong that was so far.`,
		Example: `  fleetbroker status
  fleetbroker status --watch
  fleetbroker status --market https://broker.example.org:8443/market --cert-path ~/certs
  fleetbroker status -C fleet --kubeconfigs-dir ~/kubeconfigs`,
		Args: exactly(0, "no arguments; the fleet repo is named with -C"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", o.output, statusForms...); err != nil {
				return err
			}
			o.looked = new(ledgerSeen)
			w := watched{watchFlags: o.watchFlags, form: o.output, seen: o.looked, show: func(s Streams) error {
				o.streams = s
				return statusRun(cmd.Context(), o)
			}}
			return w.run(cmd.Context(), s)
		},
	}
	o.worldFlags.register(cmd.Flags())
	o.watchFlags.register(cmd)
	o.kubeconfigs.Register(cmd.Flags(), "directory with <cluster>.kubeconfig files of consumers to ask")
	outputFlag(cmd, &o.output, statusForms...)
	return cmd
}

// page is everything `status` shows.
type page struct {
	Fleet   string         `json:"fleet"`
	Branch  string         `json:"branch,omitempty"`
	Commit  string         `json:"commit,omitempty"`
	Trust   trusted        `json:"trust"`
	Intents map[string]int `json:"intents"`
	Frozen  []string       `json:"frozen"`
	// FrozenIntents are those that hold contracts while their files cannot be read.
	FrozenIntents []frozenState `json:"frozenIntents,omitempty"`
	// Limits name what stands beyond a limit that came later.
	Limits []string `json:"limits,omitempty"`
	// Unsigned are files that are not acted on for want of a signature.
	Unsigned []string       `json:"unsigned,omitempty"`
	Phases   map[string]int `json:"contracts"`
	Troubled []trouble      `json:"troubled"`
	// Providers that people should look at, and why.
	Providers []planner.Condition `json:"providers,omitempty"`
	Peerings  []peeringState      `json:"peerings"`
	Nodes     []consumers.Node    `json:"nodes"`
	// Pods that use each contract, where --market asked a daemon.
	Pods  []podState   `json:"pods,omitempty"`
	Spend []view.Spend `json:"spend"`
	// Sources are tenants' own repositories.
	Sources []view.SourceRow  `json:"sources,omitempty"`
	Demand  []demandState     `json:"demand,omitempty"`
	Asked   []consumers.State `json:"clusters"`
}

// trouble is a contract that needs somebody's eye.
type trouble struct {
	Contract string         `json:"contract"`
	Tenant   string         `json:"tenant"`
	Phase    v1alpha1.Phase `json:"phase"`
	Since    v1alpha1.Time  `json:"since"`
	Reason   string         `json:"reason,omitempty"`
	Message  string         `json:"message,omitempty"`

	why string // both in one line
}

// frozenState is an intent that is frozen, as the ledger remembers it.
type frozenState struct {
	Tenant string        `json:"tenant"`
	Intent string        `json:"intent"`
	Since  v1alpha1.Time `json:"since"`
	// Contracts that it holds, and Endless those of them that have no end: they
	// count as preemptible at priority 0 from PreemptibleFrom on.
	Contracts       int           `json:"contracts"`
	Endless         int           `json:"endless"`
	PreemptibleFrom v1alpha1.Time `json:"preemptibleFrom,omitzero"`
	Reason          string        `json:"reason,omitempty"`
}

func (f *frozenState) String() string {
	text := fmt.Sprintf("%s/%s since %s, holds %s on their own terms", f.Tenant, f.Intent, f.Since.UTC().Format(time.RFC3339), tables.Count(f.Contracts, "contract"))
	if f.Endless > 0 {
		text += fmt.Sprintf("; %d without an end: preemptible at priority 0 from %s on", f.Endless, f.PreemptibleFrom.UTC().Format(time.RFC3339))
	}
	return text
}

func statusRun(ctx context.Context, o statusOptions) error {
	src, err := o.open(ctx, nil)
	if err != nil {
		return err
	}
	in, err := o.gather(ctx, src, o.streams)
	if err != nil {
		return err
	}
	p := in.page(ctx, o.kubeconfigs)
	switch o.output {
	case "json":
		return escape.WriteJSON(o.streams.Out, p)
	case "yaml":
		return printYAML(o.streams.Out, p)
	}
	return printPage(o.streams, p, in, o.output)
}

// page is what the repo shows, and the consumers where kubeconfigs name them.
func (g *gathered) page(ctx context.Context, kubeconfigs access.Kubeconfigs) *page {
	p := &page{
		Fleet: g.fleet.Name, Branch: g.src.branch, Commit: g.src.commitText(), Trust: g.trusted(ctx), Intents: map[string]int{}, Frozen: []string{},
		Phases: map[string]int{}, Troubled: []trouble{}, Nodes: []consumers.Node{}, Spend: []view.Spend{}, Asked: []consumers.State{},
	}
	for _, it := range g.fleet.Intents {
		m := it.Metadata
		state := "New"
		if st := g.ledger.State(m.Namespace, m.Name); st != nil {
			state = string(st.Status.State)
		}
		p.Intents[state]++
	}
	for _, f := range g.fleet.Frozen {
		if !slices.Contains(p.Frozen, f.Why) { // a file and the intent in it, for the same reason
			p.Frozen = append(p.Frozen, f.Why)
		}
	}
	for _, d := range g.fleet.Diagnostics {
		switch d.Code {
		case verify.CodeNotVerified:
			p.Unsigned = append(p.Unsigned, d.String())
		case verify.CodeBroken:
			p.Frozen = append(p.Frozen, d.String())
		}
	}
	p.FrozenIntents = g.frozen()
	p.Limits = g.beyondLimits()
	for c := range g.ledger.Contracts() {
		p.Phases[string(c.Status.Phase)]++
		if view.NeedsLook(c.Status.Phase, c.Status.Reason) {
			p.Troubled = append(p.Troubled, trouble{c.Metadata.Name, c.Metadata.Namespace, c.Status.Phase, c.Status.Since, c.Status.Reason, c.Status.Message, c.Status.Why()})
		}
	}
	facts := g.facts()
	var answers []consumers.Answer
	p.Peerings, answers = g.peerings(ctx, kubeconfigs)
	for _, a := range answers {
		p.Asked, p.Nodes = append(p.Asked, a.State), append(p.Nodes, a.Nodes...)
	}
	for _, name := range sortedNames(g.fleet.Tenants) {
		p.Spend = append(p.Spend, facts.SpendOf(name))
	}
	var frozen []wire.SourceStatus
	if g.market.sources != nil {
		frozen = g.market.sources.Frozen
	}
	p.Sources = view.Sources(g.fleet, frozen, g.market.sources != nil)
	p.Demand, p.Pods = g.demand(), g.pods()
	p.Providers = g.conditions()
	return p
}

// frozen are the intents that the ledger remembers as frozen.
func (g *gathered) frozen() []frozenState {
	var out []frozenState
	for s := range g.ledger.States() {
		f := s.Status.Frozen
		if f == nil {
			continue
		}
		one := frozenState{Tenant: s.Metadata.Namespace, Intent: s.Metadata.Name, Since: f.Since, Reason: f.Reason}
		for _, c := range g.ledger.ByIntent(one.Tenant, one.Intent) {
			if !c.Status.Phase.Charged() {
				continue
			}
			one.Contracts++
			if c.Spec.Term.End.IsZero() {
				one.Endless++
				one.PreemptibleFrom = v1alpha1.TimeOf(f.Since.Add(g.fleet.Policy.Safety.Ages()))
			}
		}
		out = append(out, one)
	}
	return out
}

// beyondLimits names what stands beyond the fleet's limits.
func (g *gathered) beyondLimits() []string {
	w := g.world()
	return planner.BeyondLimits(&w)
}

func printPage(s Streams, p *page, in *gathered, form string) error {
	var b strings.Builder
	at := p.Fleet
	if p.Branch != "" {
		at += " " + p.Branch
	}
	if p.Commit != "" {
		at += "@" + shortCommit(p.Commit)
	}
	if n := len(p.Unsigned); n > 0 {
		fmt.Fprintf(&b, "NOT ACTED ON: %s without a signature by a person who may change it. %s\n", tables.Count(n, "file"), strings.ReplaceAll(review.Remedy("COMMIT"), "`", ""))
	}
	for _, line := range p.Trust.lines() {
		fmt.Fprintf(&b, "%s\n", escape.Line(line))
	}
	fmt.Fprintf(&b, "%s\n\n", escape.Line(at))
	fmt.Fprintf(&b, "Intents:   %s\n", countsOf(p.Intents, "none"))
	fmt.Fprintf(&b, "Contracts: %s\n", countsOf(p.Phases, "none"))
	for _, why := range p.Frozen {
		fmt.Fprintf(&b, "Frozen:    %s\n", escape.Line(why))
	}
	for i := range p.FrozenIntents {
		fmt.Fprintf(&b, "Frozen:    %s\n", escape.Line(p.FrozenIntents[i].String()))
	}
	for _, why := range p.Limits {
		fmt.Fprintf(&b, "Limits:    %s\n", escape.Line(why))
	}
	for _, why := range p.Unsigned {
		fmt.Fprintf(&b, "Unsigned:  %s\n", escape.Line(why))
	}
	for _, c := range p.Asked {
		if c.Error != "" {
			fmt.Fprintf(&b, "Cluster:   %s cannot be asked: %s\n", c.Cluster, escape.Line(c.Error))
		}
	}
	if _, err := io.WriteString(s.Out, b.String()); err != nil {
		return err
	}
	// Sections are for eyes: they are aligned in a pipe too.
	headed := s.view(form)
	headed.Terminal = true
	sections := []struct {
		title string
		t     *tables.Table
	}{
		{"Needs a look", troubleTable(headed, p)},
		{"Providers", conditionTable(headed, p)},
		{"Peerings", peeringTable(headed, p.Peerings, in)},
		{"Virtual nodes", nodeTable(headed, p)},
		{"Pods", podTable(headed, p)},
		{"Spend this month", spendTable(headed, p, in)},
		{"GPUs expected", demandTable(headed, p)},
		{"Tenants' repositories", sourceTable(headed, p)},
	}
	for _, sec := range sections {
		if sec.t.Len() == 0 {
			continue
		}
		title := "\n" + sec.title + "\n"
		if form == "markdown" {
			title = "\n**" + sec.title + "**\n\n"
		}
		if _, err := io.WriteString(s.Out, title); err != nil {
			return err
		}
		show := sec.t.Print
		if form == "markdown" {
			show = sec.t.Markdown
		}
		if err := show(s.Out); err != nil {
			return err
		}
	}
	return nil
}

func troubleTable(v tables.View, p *page) *tables.Table {
	t := tables.New(v, "CONTRACT", "TENANT", "PHASE", ">SINCE", "REASON")
	for _, c := range p.Troubled {
		t.Row(c.Contract, c.Tenant, string(c.Phase), t.Age(c.Since), c.why)
	}
	return t
}

func conditionTable(v tables.View, p *page) *tables.Table {
	t := tables.New(v, "PROVIDER", "CONDITION", "MESSAGE")
	for _, c := range p.Providers {
		t.Row(c.Provider, c.Type, c.Message)
	}
	return t
}

func nodeTable(v tables.View, p *page) *tables.Table {
	t := tables.New(v, "CONSUMER", "NODE", "READY", "GPU", ">CPU", ">MEMORY")
	for _, n := range p.Nodes {
		t.Row(n.Consumer, n.Node, map[bool]string{true: "yes", false: "no"}[n.Ready], n.GPUs, n.CPU, n.Memory)
	}
	return t
}

func spendTable(v tables.View, p *page, in *gathered) *tables.Table {
	t := tables.New(v, "TENANT", ">"+in.perHour(), ">SPENT", ">FORECAST", ">BUDGET")
	for _, sp := range p.Spend {
		t.Row(sp.Tenant, t.Money(sp.Hourly), t.Money(sp.Spent), t.Money(sp.Forecast), sp.Budget)
	}
	return t
}

func sourceTable(v tables.View, p *page) *tables.Table {
	t := tables.New(v, "SOURCE", "TENANTS", "STATE", "COMMIT", ">READ", "WHY")
	for i := range p.Sources {
		r := &p.Sources[i]
		t.Row(r.Name, strings.Join(r.Tenants, ","), r.State, shortCommit(r.Copied), t.Age(r.At), r.Frozen)
	}
	return t
}

// countsOf is "3 Active, 1 Reserved", in the order of the alphabet.
func countsOf(n map[string]int, none string) string {
	var parts []string
	for _, k := range sortedNames(n) {
		parts = append(parts, fmt.Sprintf("%d %s", n[k], k))
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

func printYAML(w io.Writer, v any) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = w.Write(b)
	return err
}
