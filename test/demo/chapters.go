package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// providers are the clusters that give, with nodes as a kubelet with NVIDIA's
// device plugin would register them.
func providers() map[string][]env.GPUNode {
	pool := func(name string) map[string]string { return map[string]string{"fleetbroker.io/pool": name} }
	return map[string][]env.GPUNode{
		"paris": {
			{Name: "paris-1", GPUs: 8, Labels: pool("h100-pool")},
			{Name: "paris-2", GPUs: 8, Labels: pool("h100-pool")},
		},
		"milan": {
			{Name: "milan-1", GPUs: 4, Labels: pool("h100-pool")},
			{Name: "milan-2", GPUs: 8, Labels: pool("a100-pool"), Product: "NVIDIA-A100-SXM4-80GB", Family: "ampere", MemoryMiB: 81920},
		},
	}
}

// inputs are the fleet's files that matter for the story: prices.
func inputs() map[string]string {
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

const (
	intentFile = "intents/vision/llm-finetune.yaml"
	intent     = `apiVersion: fleetbroker.io/v1alpha1
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
)

// ask is the team's pull request and its merge.
func (s *story) ask(ctx context.Context) error {
	var err error
	if s.team, err = s.rig.Team(ctx, "ada"); err != nil {
		return err
	}
	if _, err := s.team.Git(ctx, "switch", "-q", "-c", "llm-finetune"); err != nil {
		return err
	}
	if _, err := s.team.Commit(ctx, "Ask for four H100 for three days", map[string]string{intentFile: intent}); err != nil {
		return err
	}
	s.say("ada of team vision commits an intent on a branch")
	s.quote("cat "+intentFile, intent)
	plan, err := s.fleetbroker(ctx, "plan", s.team.Dir, "--market", s.market())
	if err != nil {
		return err
	}
	s.quote("fleetbroker plan    # what merging would do", plan)
	for _, args := range [][]string{
		{"switch", "-q", env.DefaultBranch},
		{"merge", "-q", "--no-ff", "-m", "Merge: four H100 for llm-finetune", "llm-finetune"},
		{"push", "-q", "origin", env.DefaultBranch},
	} {
		if _, err := s.team.Git(ctx, args...); err != nil {
			return err
		}
	}
	merged := time.Now()
	s.say("the pull request is merged and pushed; the git server calls the daemon's webhook")
	if err := s.ledgerSays(ctx, "place vision/llm-finetune"); err != nil {
		return err
	}
	s.say("reserved: the remote has the contract's commit, %d ms after the push", time.Since(merged).Milliseconds())
	if err := s.until(ctx, "the slice on rome", func(ctx context.Context) (bool, error) {
		out, err := s.rig.Clusters["rome"].Kubectl(ctx, s.Dir, "get", "resourceslices.authentication.liqo.io", "-A", "-o", "name")
		return err == nil && strings.Contains(out, "vision-llm-finetune"), nil
	}); err != nil {
		return err
	}
	s.say("applied: the slice stands on rome, %d ms after the push", time.Since(merged).Milliseconds())
	return nil
}

// ledgerSays waits for a commit on the ledger whose message begins so.
func (s *story) ledgerSays(ctx context.Context, subject string) error {
	return s.until(ctx, "a commit that says "+subject, func(ctx context.Context) (bool, error) {
		if _, err := s.team.Git(ctx, "fetch", "-q", "origin"); err != nil {
			return false, err
		}
		out, err := s.team.Git(ctx, "log", "--format=%B", "origin/"+rig.Ledger)
		return err == nil && strings.Contains("\n"+out, "\n"+subject), nil
	})
}

// show is what there is now: the commit, the contract, the objects.
func (s *story) show(ctx context.Context) error {
	log, err := s.team.Git(ctx, "log", "--format=%h %an, %ad%n%n%B", "--date=iso", "--grep=^place vision/llm-finetune", "origin/"+rig.Ledger)
	if err != nil {
		return err
	}
	s.quote("git log --grep '^place' origin/"+rig.Ledger, log)
	files, err := s.team.Git(ctx, "ls-tree", "-r", "--name-only", "origin/"+rig.Ledger)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(files) {
		if !strings.HasPrefix(name, "contracts/") || path.Base(name) == "_intent.yaml" {
			continue
		}
		contract, err := s.team.Git(ctx, "show", "origin/"+rig.Ledger+":"+name)
		if err != nil {
			return err
		}
		s.quote("git show origin/"+rig.Ledger+":"+name, contract)
	}
	objects, err := s.rig.Clusters["rome"].Kubectl(ctx, s.Dir, "get", "-A",
		"virtualnodes.offloading.liqo.io,resourceslices.authentication.liqo.io,namespaceoffloadings.offloading.liqo.io",
		"-o", "custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,GPUS:.spec.resources.nvidia\\.com/gpu")
	if err != nil {
		return err
	}
	s.quote("kubectl --context rome get virtualnodes,resourceslices,namespaceoffloadings -A", objects)
	return nil
}

// stopAtPeering is what happens without Liqo.
func (s *story) stopAtPeering(ctx context.Context) error {
	if err := s.ledgerSays(ctx, "peering vision/llm-finetune"); err != nil {
		return err
	}
	s.say("the contract is Peering: without Liqo's controllers on these clusters nobody grants the slice, so the demo goes no further")
	return nil
}

// job is what the team runs: nothing in it but its GPU request tells of where.
const job = `apiVersion: apps/v1
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

// work is what the team does with it.
func (s *story) work(ctx context.Context) error {
	if err := s.ledgerSays(ctx, "active vision/llm-finetune"); err != nil {
		return err
	}
	s.say("active: the provider granted the slice as the contract says, and Liqo made it a node of rome")
	rome := s.rig.Clusters["rome"]
	nodes, err := rome.Kubectl(ctx, s.Dir, "get", "nodes", "-o",
		"custom-columns=NAME:.metadata.name,GPUS:.status.allocatable.nvidia\\.com/gpu,MODEL:.metadata.labels.gpu\\.fluidos\\.eu/model,READY:.status.conditions[?(@.type==\"Ready\")].status")
	if err != nil {
		return err
	}
	s.quote("kubectl --context rome get nodes", nodes)
	file := filepath.Join(s.Dir, "finetune.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		return err
	}
	if _, err := rome.Kubectl(ctx, s.Dir, "apply", "-f", file); err != nil {
		return err
	}
	s.say("ada deploys her job on rome: four pods that ask for a GPU each, and for nothing else")
	var at string
	if err := s.until(ctx, "four running pods", func(ctx context.Context) (bool, error) {
		var err error
		at, err = rome.Kubectl(ctx, s.Dir, "get", "pods", "-n", "vision", "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName")
		return err == nil && strings.Count(at, "Running") == 4, nil
	}); err != nil {
		return err
	}
	s.quote("kubectl --context rome get pods -n vision", at)
	for name := range providers() {
		there, err := s.rig.Clusters[name].Kubectl(ctx, s.Dir, "get", "pods", "-n", "vision-rome", "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName")
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
	if _, err := s.team.Git(ctx, "pull", "-q"); err != nil {
		return err
	}
	out, err := s.fleetbroker(ctx, "explain", "vision/llm-finetune", "-C", s.team.Dir, "--market", s.market())
	if err != nil {
		return err
	}
	s.quote("fleetbroker explain vision/llm-finetune", out)
	return nil
}

// giveBack removes the intent and watches the capacity come back.
func (s *story) giveBack(ctx context.Context) error {
	if err := os.Remove(filepath.Join(s.team.Dir, filepath.FromSlash(intentFile))); err != nil {
		return err
	}
	if _, err := s.team.CommitAndPush(ctx, "The fine-tuning is done", nil); err != nil {
		return err
	}
	removed := time.Now()
	s.say("ada removes the intent")
	if err := s.ledgerSays(ctx, "release vision/llm-finetune"); err != nil {
		return err
	}
	if err := s.ledgerSays(ctx, "released vision/llm-finetune"); err != nil {
		return err
	}
	s.say("released, %d ms after the push: virtual node, slice and grant were seen gone before the ledger said so", time.Since(removed).Milliseconds())
	history, err := s.team.Git(ctx, "log", "--format=%h  %s", "origin/"+rig.Ledger)
	if err != nil {
		return err
	}
	s.quote("git log --oneline origin/"+rig.Ledger, history)
	if s.Liqo {
		s.say("the pods were evicted before the node went; namespace vision and what is in it stay")
	}
	left, err := s.rig.Clusters["rome"].Kubectl(ctx, s.Dir, "get", "-A", "virtualnodes.offloading.liqo.io,resourceslices.authentication.liqo.io,namespaceoffloadings.offloading.liqo.io")
	if err != nil {
		return err
	}
	if strings.TrimSpace(left) == "" {
		left = "No resources found"
	}
	s.quote("kubectl --context rome get virtualnodes,resourceslices,namespaceoffloadings -A", left)
	return nil
}
