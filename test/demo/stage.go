package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/demo"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// stage is the story's fleet on real components.
type stage struct {
	Options
	signs  bool
	rig    *rig.Rig
	daemon *rig.Daemon
	team   *env.Team
}

var _ demo.Stage = (*stage)(nil)

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

// Opening implements demo.Stage.
func (s *stage) Opening() []string {
	with := ""
	if s.Liqo {
		with = ", with the controllers of Liqo " + tools.LiqoVersion + " on each,"
	}
	return []string{"starting three clusters (etcd and kube-apiserver each)" + with + " and a git server; nodes are objects without machines"}
}

// Up implements demo.Stage.
func (s *stage) Up(ctx context.Context) (string, error) {
	r, err := rig.Start(ctx, rig.Options{
		Liqo: s.Liqo, Signed: s.signs,
		Dir: s.Dir, Bin: s.Bin, Consumers: []string{demo.Consumer}, Providers: providers(), Inputs: demo.Inputs(),
		// A release waits for the provider's word; a viewer need not wait for the
		// usual half minute.
		AgentArgs: []string{"--advertisement-requeue-interval", "1s"},
	})
	if err != nil {
		return "", err
	}
	s.rig = r
	return r.Git.URL(rig.Repo), nil
}

// Join implements demo.Stage.
func (s *stage) Join(ctx context.Context) error {
	var err error
	if s.daemon, err = s.rig.Daemon(ctx, "one"); err != nil {
		return err
	}
	s.daemon.NotifyPushes(ctx)
	for name := range s.rig.Clusters {
		if _, err := s.rig.Agent(ctx, name, s.daemon); err != nil {
			return err
		}
	}
	wait, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	if err := s.daemon.AwaitReady(wait); err != nil {
		return err
	}
	return s.daemon.AwaitNodes(wait, providers())
}

// Commit implements demo.Stage.
func (s *stage) Commit(ctx context.Context, branch, subject string, files map[string]string) error {
	var err error
	if s.team, err = s.rig.Team(ctx, "ada"); err != nil {
		return err
	}
	if _, err := s.team.Git(ctx, "switch", "-q", "-c", branch); err != nil {
		return err
	}
	_, err = s.team.Commit(ctx, subject, files)
	return err
}

// Merge implements demo.Stage.
func (s *stage) Merge(ctx context.Context, branch, subject string) error {
	for _, args := range [][]string{
		{"switch", "-q", env.DefaultBranch},
		{"merge", "-q", "--no-ff", "-m", subject, branch},
		{"push", "-q", "origin", env.DefaultBranch},
	} {
		if _, err := s.team.Git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements demo.Stage.
func (s *stage) Remove(ctx context.Context, subject, file string) error {
	if _, err := s.team.Git(ctx, "pull", "-q"); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.team.Dir, filepath.FromSlash(file))); err != nil {
		return err
	}
	_, err := s.team.CommitAndPush(ctx, subject, nil)
	return err
}

const remoteLedger = "origin/" + rig.Ledger

// Ledger implements demo.Stage.
func (s *stage) Ledger(ctx context.Context) ([]demo.Commit, error) {
	if _, err := s.team.Git(ctx, "fetch", "-q", "origin"); err != nil {
		return nil, err
	}
	branches, err := s.team.Git(ctx, "branch", "-r", "--list", remoteLedger)
	if err != nil || branches == "" {
		return nil, err
	}
	log, err := s.team.Git(ctx, "log", "--format=%h%x1f%an%x1f%ad%x1f%B%x1e", "--date=iso", remoteLedger)
	if err != nil {
		return nil, err
	}
	var out []demo.Commit
	for entry := range strings.SplitSeq(log, "\x1e") {
		if parts := strings.Split(strings.TrimLeft(entry, "\n"), "\x1f"); len(parts) == 4 {
			out = append(out, demo.Commit{Hash: parts[0], Author: parts[1], Date: parts[2], Message: parts[3]})
		}
	}
	return out, nil
}

// Files implements demo.Stage.
func (s *stage) Files(ctx context.Context) ([]string, error) {
	files, err := s.team.Git(ctx, "ls-tree", "-r", "--name-only", remoteLedger)
	return strings.Fields(files), err
}

// File implements demo.Stage.
func (s *stage) File(ctx context.Context, name string) (string, error) {
	return s.team.Git(ctx, "show", remoteLedger+":"+name)
}

// Objects implements demo.Stage.
func (s *stage) Objects(ctx context.Context) (string, error) {
	out, err := s.kubectl(ctx, demo.Consumer, "get", "-A",
		"virtualnodes.offloading.liqo.io,resourceslices.authentication.liqo.io,namespaceoffloadings.offloading.liqo.io",
		"-o", "custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,GPUS:.spec.resources.nvidia\\.com/gpu")
	if strings.Count(strings.TrimSpace(out), "\n") == 0 { // a header alone
		return "", err
	}
	return out, err
}

// Nodes implements demo.Stage.
func (s *stage) Nodes(ctx context.Context) (string, error) {
	return s.kubectl(ctx, demo.Consumer, "get", "nodes", "-o",
		"custom-columns=NAME:.metadata.name,GPUS:.status.allocatable.nvidia\\.com/gpu,MODEL:.metadata.labels.gpu\\.fluidos\\.eu/model,READY:.status.conditions[?(@.type==\"Ready\")].status")
}

// Pods implements demo.Stage.
func (s *stage) Pods(ctx context.Context, cluster, namespace string) (string, error) {
	return s.kubectl(ctx, cluster, "get", "pods", "-n", namespace, "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName")
}

// Deploy implements demo.Stage.
func (s *stage) Deploy(ctx context.Context, manifest string) error {
	file := filepath.Join(s.Dir, "job.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, demo.Consumer, "apply", "-f", file)
	return err
}

func (s *stage) kubectl(ctx context.Context, cluster string, args ...string) (string, error) {
	on := s.rig.Clusters[cluster]
	if on == nil {
		return "", errors.New("there is no cluster " + cluster)
	}
	out, err := on.Kubectl(ctx, s.Dir, args...)
	if err != nil {
		return out, fmt.Errorf("kubectl on %s: %w", cluster, err)
	}
	return out, nil
}
