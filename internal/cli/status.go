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
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/review"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

type statusOptions struct {
	worldFlags
	watchFlags
	streams     Streams
	dir         string
	kubeconfigs string
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
peerings and virtual nodes. From a day of history on, it tells how many GPUs
tenants are expected to hold of each shape, and how wrong that was so far.`,
		Example: `  fleetbroker status
  fleetbroker status --watch
  fleetbroker status -C fleet --kubeconfigs-dir ~/kubeconfigs`,
		Args: exactly(0, "no arguments; the fleet repo is named with -C"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", o.output, statusForms...); err != nil {
				return err
			}
			return o.watchFlags.run(cmd.Context(), s, func(s Streams) error {
				o.streams = s
				return statusRun(cmd.Context(), o)
			})
		},
	}
	o.worldFlags.register(cmd.Flags())
	o.watchFlags.register(cmd)
	dirFlag(cmd, &o.dir)
	cmd.Flags().StringVar(&o.kubeconfigs, "kubeconfigs-dir", "", "directory with <cluster>.kubeconfig files of consumers to ask")
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
	Nodes     []nodeState         `json:"nodes"`
	Spend     []view.Spend        `json:"spend"`
	// Sources are tenants' own repositories.
	Sources []view.SourceRow `json:"sources,omitempty"`
	Demand  []demandState    `json:"demand,omitempty"`
	Asked   []clusterState   `json:"clusters"`
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
	text := fmt.Sprintf("%s/%s since %s, holds %s on their own terms", f.Tenant, f.Intent, f.Since.UTC().Format(time.RFC3339), count(f.Contracts, "contract"))
	if f.Endless > 0 {
		text += fmt.Sprintf("; %d without an end: preemptible at priority 0 from %s on", f.Endless, f.PreemptibleFrom.UTC().Format(time.RFC3339))
	}
	return text
}

type peeringState struct {
	view.Peering
	// Modules are Liqo's, with their health; absent when nobody was asked.
	Modules map[string]string `json:"modules,omitempty"`
}

func statusRun(ctx context.Context, o statusOptions) error {
	src, err := o.open(ctx, dirArgs(o.dir))
	if err != nil {
		return err
	}
	in, err := o.gather(ctx, src, o.streams)
	if err != nil {
		return err
	}
	p := in.page(ctx)
	if o.kubeconfigs != "" {
		p.ask(ctx, in, o.kubeconfigs)
	}
	switch o.output {
	case "json":
		return escape.WriteJSON(o.streams.Out, p)
	case "yaml":
		return printYAML(o.streams.Out, p)
	}
	return printPage(o.streams, p, in, o.output == "markdown")
}

// page is what the repo alone tells.
func (g *gathered) page(ctx context.Context) *page {
	p := &page{
		Fleet: g.fleet.Name, Branch: g.src.branch, Commit: g.src.commitText(), Trust: g.trusted(ctx), Intents: map[string]int{}, Frozen: []string{},
		Phases: map[string]int{}, Troubled: []trouble{}, Peerings: []peeringState{}, Nodes: []nodeState{}, Spend: []view.Spend{}, Asked: []clusterState{},
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
		if c.Status.Phase == v1alpha1.PhaseReleasing || c.Status.Phase.Charged() && c.Status.Reason != "" {
			p.Troubled = append(p.Troubled, trouble{c.Metadata.Name, c.Metadata.Namespace, c.Status.Phase, c.Status.Since, c.Status.Reason, c.Status.Message, c.Status.Why()})
		}
	}
	facts := g.facts()
	for _, pr := range facts.Peerings() {
		p.Peerings = append(p.Peerings, peeringState{Peering: pr})
	}
	for _, name := range sortedNames(g.fleet.Tenants) {
		p.Spend = append(p.Spend, facts.SpendOf(name))
	}
	var frozen []wire.SourceStatus
	if g.market.sources != nil {
		frozen = g.market.sources.Frozen
	}
	p.Sources = view.Sources(g.fleet, frozen, g.market.sources != nil)
	p.Demand = g.demand()
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

func printPage(s Streams, p *page, in *gathered, markdown bool) error {
	var b strings.Builder
	at := p.Fleet
	if p.Branch != "" {
		at += " " + p.Branch
	}
	if p.Commit != "" {
		at += "@" + shortCommit(p.Commit)
	}
	if n := len(p.Unsigned); n > 0 {
		fmt.Fprintf(&b, "NOT ACTED ON: %s without a signature by a person who may change it. %s\n", count(n, "file"), strings.ReplaceAll(review.Remedy("COMMIT"), "`", ""))
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
	// Sections are for eyes: they keep their headers in a pipe too.
	headed := s
	headed.Terminal = true
	sections := []struct {
		title string
		t     *table
	}{
		{"Needs a look", troubleTable(headed, p)},
		{"Providers", conditionTable(headed, p)},
		{"Peerings", peeringTable(headed, p, in)},
		{"Virtual nodes", nodeTable(headed, p)},
		{"Spend this month", spendTable(headed, p, in)},
		{"GPUs expected", demandTable(headed, p)},
		{"Tenants' repositories", sourceTable(headed, p)},
	}
	for _, sec := range sections {
		if len(sec.t.rows) == 0 {
			continue
		}
		title := "\n" + sec.title + "\n"
		if markdown {
			title = "\n**" + sec.title + "**\n\n"
		}
		if _, err := io.WriteString(s.Out, title); err != nil {
			return err
		}
		show := sec.t.print
		if markdown {
			show = sec.t.markdown
		}
		if err := show(s.Out); err != nil {
			return err
		}
	}
	return nil
}

func troubleTable(s Streams, p *page) *table {
	t := newTable(s, "CONTRACT", "TENANT", "PHASE", ">SINCE", "REASON")
	for _, c := range p.Troubled {
		t.row(c.Contract, c.Tenant, string(c.Phase), t.age(c.Since), dash(c.why))
	}
	return t
}

func conditionTable(s Streams, p *page) *table {
	t := newTable(s, "PROVIDER", "CONDITION", "MESSAGE")
	for _, c := range p.Providers {
		t.row(c.Provider, c.Type, c.Message)
	}
	return t
}

func peeringTable(s Streams, p *page, in *gathered) *table {
	t := newTable(s, "CONSUMER", "PROVIDER", ">CONTRACTS", ">ACTIVE", ">GPU", ">"+in.perHour(), "MODULES")
	for _, pr := range p.Peerings {
		var modules []string
		for _, m := range sortedNames(pr.Modules) {
			modules = append(modules, m+" "+pr.Modules[m])
		}
		t.row(pr.Consumer, pr.Provider, fmt.Sprint(pr.Contracts), fmt.Sprint(pr.Active), fmt.Sprint(pr.GPUs), t.money(pr.Hourly), dash(strings.Join(modules, ", ")))
	}
	return t
}

func nodeTable(s Streams, p *page) *table {
	t := newTable(s, "CONSUMER", "NODE", "READY", "GPU", ">CPU", ">MEMORY")
	for _, n := range p.Nodes {
		t.row(n.Consumer, n.Node, map[bool]string{true: "yes", false: "no"}[n.Ready], dash(n.GPUs), n.CPU, n.Memory)
	}
	return t
}

func spendTable(s Streams, p *page, in *gathered) *table {
	t := newTable(s, "TENANT", ">"+in.perHour(), ">SPENT", ">FORECAST", ">BUDGET")
	for _, sp := range p.Spend {
		t.row(sp.Tenant, t.money(sp.Hourly), t.money(sp.Spent), t.money(sp.Forecast), dash(sp.Budget))
	}
	return t
}

func sourceTable(s Streams, p *page) *table {
	t := newTable(s, "SOURCE", "TENANTS", "STATE", "COMMIT", ">READ", "WHY")
	for i := range p.Sources {
		r := &p.Sources[i]
		t.row(r.Name, strings.Join(r.Tenants, ","), r.State, dash(shortCommit(r.Copied)), t.age(r.At), dash(r.Frozen))
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
