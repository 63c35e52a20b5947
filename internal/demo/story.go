package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// Providers of the story, in the order in which they are looked at.
var Providers = []string{"paris", "milan"}

// Names of the story's branches, cluster and intent file.
const (
	Ledger     = "ledger"
	Consumer   = "rome"
	IntentFile = "intents/vision/llm-finetune.yaml"
)

// Inputs are the fleet's files that matter for the story: prices of the providers.
func Inputs() map[string]string {
	cluster := func(name, gpu, region string) string {
		return fmt.Sprintf(`apiVersion: fleetbroker.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  roles: [provider]
  location: {region: %s}
  defaultPrice: {currency: EUR, perHour: {gpu: %q, cpu: "0.021", memoryGi: "0.0028"}}
`, name, region, gpu)
	}
	return map[string]string{
		"clusters/paris.yaml": cluster("paris", "2.85", "eu-west-3"),
		"clusters/milan.yaml": cluster("milan", "3.40", "eu-south-1"),
	}
}

// Intent is what team vision asks for.
const Intent = `apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: llm-finetune, namespace: vision}
spec:
  consumer: rome
  resources:
    cpu: "16"
    memory: 128Gi
    gpu: "H100:4:80GB"
  budget: {maxHourly: "40", currency: EUR}
  schedule: {duration: 72h}
  offload:
    namespaces: [{name: vision, create: true, podOffloadingStrategy: Remote}]
`

// Job is what the team runs: nothing in it but its GPU request says where.
const Job = `apiVersion: apps/v1
kind: Deployment
metadata: {name: finetune, namespace: vision}
spec:
  replicas: 4
  selector: {matchLabels: {app: finetune}}
  template:
    metadata: {labels: {app: finetune}}
    spec:
      containers:
      - name: main
        image: example.org/finetune
        resources: {limits: {nvidia.com/gpu: 1, cpu: "4", memory: 32Gi}}
`

// Options of a story.
type Options struct {
	// Out is told the story.
	Out io.Writer
	// Granted: slices are granted and pods run; else the story stops at Peering.
	Granted bool
	// Patience bounds each step that waits (default 60 s).
	Patience time.Duration
}

// story is one telling.
type story struct {
	Options
	on    Stage
	begun time.Time
}

// Tell tells the story from nothing to a released slice. Whatever happens, the stage is
// ended.
func Tell(ctx context.Context, o Options, on Stage) (err error) {
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	s := &story{Options: o, on: on, begun: time.Now()}
	defer func() {
		s.say("stopping everything")
		if err = errors.Join(err, on.End()); err == nil {
			s.say("done: nothing is left running")
		}
	}()
	last := s.stopAtPeering
	if o.Granted {
		last = s.work
	}
	for _, chapter := range []func(context.Context) error{s.setUp, s.ask, s.show, last, s.explain, s.giveBack} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say writes one line of the timeline.
func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.Out, "%6.1fs  %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

// quote shows what a command printed, or a file.
func (s *story) quote(title, text string) {
	fmt.Fprintf(s.Out, "\n         $ %s\n", title)
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(s.Out, "         %s\n", line)
	}
	fmt.Fprintln(s.Out)
}

// until waits for a condition.
func (s *story) until(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		ok, err := condition(ctx)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		if err := s.on.Failure(); err != nil {
			return fmt.Errorf("wait for %s: the daemon ended: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ledgerHas waits for a commit on the ledger with a line that begins so.
func (s *story) ledgerHas(ctx context.Context, subject string) error {
	return s.until(ctx, "a commit of the ledger: "+subject, func(ctx context.Context) (bool, error) {
		commits, err := s.on.Ledger(ctx)
		for _, c := range commits {
			if strings.Contains("\n"+c.Message, "\n"+subject) {
				return true, nil
			}
		}
		return false, err
	})
}

// setUp brings the fleet up: clusters, git server, daemon, agents.
func (s *story) setUp(ctx context.Context) error {
	for _, line := range s.on.Opening() {
		s.say("%s", line)
	}
	repo, err := s.on.Up(ctx)
	if err != nil {
		return err
	}
	s.say("up: paris and milan give (16 H100, 4 H100, 8 A100), rome takes; fleet repo at %s", repo)
	if err := s.on.Join(ctx); err != nil {
		return err
	}
	flavors := ""
	if err := s.until(ctx, "the agents' flavors", func(ctx context.Context) (bool, error) {
		var err error
		flavors, err = s.on.Fleetbroker(ctx, "get", "flavors")
		return err == nil && strings.Count(flavors, "pool") >= 3, nil
	}); err != nil {
		return err
	}
	s.say("the daemon is ready and knows what the agents offer")
	s.quote("fleetbroker get flavors", flavors)
	return nil
}

// ask is the team's pull request and its merge.
func (s *story) ask(ctx context.Context) error {
	if err := s.on.Commit(ctx, "llm-finetune", "Ask for four H100 for three days", map[string]string{IntentFile: Intent}); err != nil {
		return err
	}
	s.say("ada of team vision commits an intent on a branch")
	s.quote("cat "+IntentFile, Intent)
	plan, err := s.on.Fleetbroker(ctx, "plan")
	if err != nil {
		return err
	}
	s.quote("fleetbroker plan    # what merging would do", plan)
	if err := s.on.Merge(ctx, "llm-finetune", "Merge: four H100 for llm-finetune"); err != nil {
		return err
	}
	merged := time.Now()
	s.say("the pull request is merged and pushed; the git server calls the daemon's webhook")
	if err := s.ledgerHas(ctx, "place vision/llm-finetune"); err != nil {
		return err
	}
	s.say("reserved: the remote has the contract's commit, %d ms after the push", time.Since(merged).Milliseconds())
	if err := s.until(ctx, "the slice on rome", func(ctx context.Context) (bool, error) {
		objects, err := s.on.Objects(ctx)
		for line := range strings.Lines(objects) {
			if strings.Contains(line, "ResourceSlice") && strings.Contains(line, "vision-llm-finetune") {
				return true, nil
			}
		}
		return false, err
	}); err != nil {
		return err
	}
	s.say("applied: the slice exists on rome, %d ms after the push", time.Since(merged).Milliseconds())
	return nil
}

// show is what there is now: the commit, the contract, the objects.
func (s *story) show(ctx context.Context) error {
	commits, err := s.on.Ledger(ctx)
	if err != nil {
		return err
	}
	for _, c := range commits {
		if strings.HasPrefix(c.Message, "place vision/llm-finetune") {
			s.quote("git log --grep '^place' origin/"+Ledger, fmt.Sprintf("%s %s, %s\n\n%s", c.Hash, c.Author, c.Date, c.Message))
		}
	}
	files, err := s.on.Files(ctx)
	if err != nil {
		return err
	}
	for _, name := range files {
		if !strings.HasPrefix(name, "contracts/") || path.Base(name) == "_intent.yaml" {
			continue
		}
		contract, err := s.on.File(ctx, name)
		if err != nil {
			return err
		}
		s.quote("git show origin/"+Ledger+":"+name, contract)
	}
	return s.showObjects(ctx)
}

func (s *story) showObjects(ctx context.Context) error {
	objects, err := s.on.Objects(ctx)
	if err != nil {
		return err
	}
	if strings.TrimSpace(objects) == "" {
		objects = "No resources found"
	}
	s.quote("kubectl --context rome get virtualnodes,resourceslices,namespaceoffloadings -A", objects)
	return nil
}

// stopAtPeering is what happens without Liqo.
func (s *story) stopAtPeering(ctx context.Context) error {
	if err := s.ledgerHas(ctx, "peering vision/llm-finetune"); err != nil {
		return err
	}
	s.say("the contract is Peering: without Liqo's controllers on these clusters nobody grants the slice, so the demo goes no further")
	return nil
}

// work is what the team does with it.
func (s *story) work(ctx context.Context) error {
	if err := s.ledgerHas(ctx, "active vision/llm-finetune"); err != nil {
		return err
	}
	s.say("active: the provider granted the slice as the contract says, and Liqo made it a node of rome")
	nodes, err := s.on.Nodes(ctx)
	if err != nil {
		return err
	}
	s.quote("kubectl --context rome get nodes", nodes)
	if err := s.on.Deploy(ctx, Job); err != nil {
		return err
	}
	s.say("ada deploys her job on rome: four pods that ask for a GPU each, and for nothing else")
	pods := ""
	if err := s.until(ctx, "four running pods", func(ctx context.Context) (bool, error) {
		var err error
		pods, err = s.on.Pods(ctx, Consumer, "vision")
		return err == nil && strings.Count(pods, "Running") == 4, nil
	}); err != nil {
		return err
	}
	s.quote("kubectl --context rome get pods -n vision", pods)
	for _, name := range Providers {
		there, err := s.on.Pods(ctx, name, "vision-rome")
		if err != nil {
			return err
		}
		if strings.Contains(there, "Running") {
			s.quote("kubectl --context "+name+" get pods -n vision-rome    # where they really run", there)
		}
	}
	return nil
}

// explain answers why.
func (s *story) explain(ctx context.Context) error {
	out, err := s.on.Fleetbroker(ctx, "explain", "vision/llm-finetune")
	if err != nil {
		return err
	}
	s.quote("fleetbroker explain vision/llm-finetune", out)
	return nil
}

// giveBack removes the intent and watches the capacity come back.
func (s *story) giveBack(ctx context.Context) error {
	if err := s.on.Remove(ctx, "The fine-tuning is done", IntentFile); err != nil {
		return err
	}
	removed := time.Now()
	s.say("ada removes the intent")
	for _, subject := range []string{"release vision/llm-finetune", "released vision/llm-finetune"} {
		if err := s.ledgerHas(ctx, subject); err != nil {
			return err
		}
	}
	s.say("released, %d ms after the push: virtual node, slice and grant were seen gone before the ledger said so", time.Since(removed).Milliseconds())
	commits, err := s.on.Ledger(ctx)
	if err != nil {
		return err
	}
	history := ""
	for _, c := range commits {
		subject, _, _ := strings.Cut(c.Message, "\n")
		history += c.Hash + "  " + subject + "\n"
	}
	s.quote("git log --oneline origin/"+Ledger, history)
	if s.Granted {
		s.say("the pods were evicted before the node went; namespace vision and what is in it stay")
	}
	return s.showObjects(ctx)
}
