package howto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Kinds of the manifest.
const (
	Job        = "Job"
	Deployment = "Deployment"
	Pod        = "Pod"
)

// Kinds are those that a Guide can be made for, the default first.
func Kinds() []string { return []string{Job, Deployment, Pod} }

// Input is what a guide is made of.
type Input struct {
	Tenant, Name string
	// Spec as its file says, nil when the file is gone or cannot be read.
	Spec *v1alpha1.IntentSpec
	// State of the intent on the ledger, nil before it has one.
	State *v1alpha1.IntentState
	// Contracts of the intent, those that ended too.
	Contracts []*v1alpha1.Contract
	// Consumer is the cluster in which the capacity appears.
	Consumer string
	// Kind of the manifest: Job, Deployment or Pod. "" is Job.
	Kind string
	// Hourly is what the intent costs now, in Currency.
	Hourly   v1alpha1.Decimal
	Currency string
}

// Guide is what to do.
type Guide struct {
	Intent   string `json:"intent"`
	Consumer string `json:"consumer,omitempty"`
	// Ready: pods can run now, in one of Namespaces.
	Ready bool `json:"ready"`
	// Contracts that hold capacity.
	Contracts []string `json:"contracts"`
	// Nodes of the consumer that they are.
	Nodes []string `json:"nodes"`
	// Namespaces of the consumer whose pods may use it.
	Namespaces []string `json:"namespaces"`
	// Manifest to start from, as YAML; "" while nothing is held, or no namespace may use it.
	Manifest string `json:"manifest,omitempty"`
	Steps    []Step `json:"steps"`
}

// Step is one thing to know or do.
type Step struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	// Commands to run, in order.
	Commands []string `json:"commands,omitempty"`
}

// deploy titles the step that says how to deploy, or why nothing can be deployed.
const deploy = "Deploy"

// Missing is the step that says why there is no manifest yet, and what to do about it.
func (g *Guide) Missing() Step {
	for i := range g.Steps {
		if g.Steps[i].Title == deploy {
			return g.Steps[i]
		}
	}
	return g.Steps[0]
}

// Of makes the guide of an intent.
func Of(in Input) *Guide {
	in.Kind = cmp.Or(in.Kind, Job)
	g := &Guide{Intent: in.Tenant + "/" + in.Name, Consumer: in.Consumer, Contracts: []string{}, Nodes: []string{}, Namespaces: []string{}}
	held := held(in.Contracts)
	for _, c := range held {
		g.Contracts = append(g.Contracts, c.Metadata.Name)
		if c.Spec.Stage != v1alpha1.StageReserve {
			for _, node := range c.VirtualNodes() {
				g.Nodes = append(g.Nodes, node.Name)
			}
		}
		g.Ready = g.Ready || c.Status.Phase == v1alpha1.PhaseActive
		g.Consumer = cmp.Or(g.Consumer, c.Spec.Consumer)
	}
	for _, ns := range namespaces(in, held) {
		g.Namespaces = append(g.Namespaces, ns.Name)
	}
	g.Ready = g.Ready && len(g.Namespaces) > 0
	if len(held) > 0 {
		g.Manifest = Manifest(in.Kind, held)
	}
	g.Steps = append(g.Steps, where(in, g, held))
	switch {
	case g.Manifest != "":
		g.Steps = append(g.Steps, running(in, g, held)...)
	case len(g.Nodes) > 0:
		g.Steps = append(g.Steps, Step{Title: deploy, Text: "No namespace may use it: name one under `offload.namespaces` in its file, by pull request."})
	}
	g.Steps = append(g.Steps, costs(in, held), ends(in, held))
	return g
}

// held are the contracts that hold capacity for pods, by name.
func held(contracts []*v1alpha1.Contract) (out []*v1alpha1.Contract) {
	for _, c := range contracts {
		if c.Status.Phase.Charged() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Contract) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

// namespaces are those that may use the capacity: as contracts have them, or as the
// file asks before there is any.
func namespaces(in Input, held []*v1alpha1.Contract) []v1alpha1.OffloadNamespace {
	offload := (*v1alpha1.Offload)(nil)
	switch {
	case len(held) > 0:
		offload = held[0].Spec.Offload
	case in.Spec != nil:
		offload = in.Spec.Offload
	}
	if offload == nil {
		return nil
	}
	return offload.Namespaces
}

// where says what the intent has.
func where(in Input, g *Guide, held []*v1alpha1.Contract) Step {
	s := Step{Title: "What it has"}
	switch {
	case len(held) == 0:
		s.Text = "It holds nothing yet" + why(in) + "."
		s.Commands = []string{"fleetbroker explain " + g.Intent}
		return s
	case held[0].Spec.Stage == v1alpha1.StageReserve:
		s.Text = fmt.Sprintf("It holds %s, and its stage is reserve: no virtual node is made. Set `stage: peer` in its file to use it.", count(len(held), "contract"))
		return s
	}
	active := 0
	for _, c := range held {
		if c.Status.Phase == v1alpha1.PhaseActive {
			active++
		}
	}
	s.Text = fmt.Sprintf("It holds %s on %s, of which %d %s ready: nodes of cluster %s by the contracts' names.",
		count(len(held), "contract"), strings.Join(flavors(held), ", "), active, plural(active, "is", "are"), g.Consumer)
	if active == 0 && len(g.Namespaces) > 0 {
		s.Text += " Pods wait until it is ready, so that you may deploy now."
	}
	s.Commands = []string{context(g) + "get nodes " + strings.Join(g.Nodes, " ")}
	return s
}

// why says what the ledger says of an intent without a contract.
func why(in Input) string {
	switch {
	case in.State == nil && in.Spec == nil:
		return ", and there is no file of it: merge one first"
	case in.State == nil:
		return ": the daemon has not decided on it since it was merged"
	case in.State.Status.Message != "":
		return fmt.Sprintf(" (%s): %s", in.State.Status.State, escape.Line(strings.TrimSuffix(in.State.Status.Message, ".")))
	}
	return fmt.Sprintf(" (%s)", in.State.Status.State)
}

// running says how to deploy, see and debug.
func running(in Input, g *Guide, held []*v1alpha1.Contract) []Step {
	kubectl := context(g) + "-n " + g.Namespaces[0] + " "
	object := strings.ToLower(in.Kind) + "/" + in.Name
	first := Step{
		Title: deploy, Text: fmt.Sprintf("Write your image into the manifest below and apply it in namespace %s. Nothing else is needed: the cluster adds the toleration.", g.Namespaces[0]),
		Commands: []string{fmt.Sprintf("fleetbroker how %s --kind %s -o manifest > %s.yaml", g.Intent, in.Kind, in.Name), context(g) + "apply -f " + in.Name + ".yaml"},
	}
	if local(held[0]) {
		first.Text += " The namespace may run pods at home too: what asks for no card may stay there (`podOffloadingStrategy: Remote` in the intent forbids it)."
	}
	return []Step{
		first,
		{
			Title: "See it run", Text: "The column NODE shows the contract's name. A pod that stays Pending says why in its events.",
			Commands: []string{kubectl + "get pods -o wide", kubectl + "describe pod -l app=" + in.Name},
		},
		{Title: "Logs, and a shell in it", Text: "Both go through the virtual node, as for any pod.", Commands: []string{kubectl + "logs -f " + object, kubectl + "exec -it " + object + " -- sh"}},
	}
}

// local reports whether pods of a contract's namespace may stay at home.
func local(c *v1alpha1.Contract) bool {
	switch c.Spec.Offload.Namespaces[0].PodOffloadingStrategy {
	case "", "LocalAndRemote":
		return true
	}
	return false
}

func costs(in Input, held []*v1alpha1.Contract) Step {
	s := Step{Title: "What it costs", Commands: []string{"fleetbroker cost --by intent"}}
	if len(held) == 0 {
		s.Text = "Nothing while it holds nothing."
		return s
	}
	s.Text = fmt.Sprintf("%s %s an hour now, whether pods run or not.", in.Hourly.Text(), in.Currency)
	return s
}

// ends says when and how it ends.
func ends(in Input, held []*v1alpha1.Contract) Step {
	s := Step{Title: "How it ends"}
	file := "its file"
	if len(held) > 0 {
		file = held[0].Spec.Intent.Path
	} else if in.State != nil && in.State.Status.Path != "" {
		file = in.State.Status.Path
	}
	var until v1alpha1.Time
	for _, c := range held {
		if end := c.Spec.Term.End; until.IsZero() || !end.IsZero() && end.Before(until.Time) {
			until = end
		}
	}
	if !until.IsZero() {
		s.Text = fmt.Sprintf("By itself at %s; a longer `schedule.duration` extends it. ", until.UTC().Format("2006-01-02 15:04 UTC"))
	} else if len(held) > 0 {
		s.Text = "Not by itself: it has no end. "
	}
	s.Text += fmt.Sprintf("To end it, delete %s (or set `suspend: true`) by pull request. Its pods are evicted first, within their PodDisruptionBudgets and grace periods; the cost stops when the release begins.", escape.Line(file))
	return s
}

// flavors are those that contracts are on, once each.
func flavors(held []*v1alpha1.Contract) (out []string) {
	for _, c := range held {
		out = append(out, c.Spec.Provider+"/"+c.Spec.Flavor)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// context begins a command on the consumer.
func context(g *Guide) string {
	if g.Consumer == "" {
		return "kubectl "
	}
	return "kubectl --context " + g.Consumer + " "
}

func count(n int, what string) string { return fmt.Sprintf("%d %s", n, plural(n, what, what+"s")) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
