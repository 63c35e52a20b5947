package rig

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// Daemon is a fleetbroker that runs as a child process.
type Daemon struct {
	*env.Program
	// Name distinguishes the daemons of a rig.
	Name string
	// Agents, Operators and Webhooks are the addresses it serves.
	Agents, Operators, Webhooks string

	rig  *Rig
	args []string
}

// Daemon starts a daemon on the rig's fleet repo. Further arguments are added
// to its command line.
func (r *Rig) Daemon(ctx context.Context, name string, args ...string) (*Daemon, error) {
	d := &Daemon{Name: name, rig: r}
	for _, address := range []*string{&d.Agents, &d.Operators, &d.Webhooks} {
		a, release, err := env.ReserveAddress()
		if err != nil {
			return nil, err
		}
		*address = a
		r.cleanup(func() error { release(); return nil })
	}
	certs, err := r.certificates("daemon-"+name, pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1", "localhost"}})
	if err != nil {
		return nil, err
	}
	d.args = append([]string{
		"run", "--repo", r.Git.URL(Repo), "--state-dir", filepath.Join(r.Dir, "state-"+name), "--cert-path", certs,
		"--kubeconfigs-dir", filepath.Join(r.Dir, "kubeconfigs"), "--webhook-secrets-dir", filepath.Join(r.Dir, "hooks"),
		"--agents-address", d.Agents, "--operators-address", d.Operators, "--webhooks-address", d.Webhooks, "--webhooks-tls=false",
		"--identity", name, // all run on one host, and a Lease is held by one of them
	}, append(r.Trust(), args...)...)
	if err := d.Restart(ctx); err != nil {
		return nil, err
	}
	r.cleanup(func() error { return d.Stop() })
	return d, nil
}

// Restart starts the program again on the same addresses and state; one that
// still runs must be stopped or killed first.
func (d *Daemon) Restart(context.Context) error {
	p, err := env.StartProgramWith(d.rig.Env, "daemon-"+d.Name, filepath.Join(d.rig.Dir, "logs"), filepath.Join(d.rig.Bin, "fleetbroker"), d.args...)
	if err != nil {
		return err
	}
	d.Program = p
	return nil
}

// Args is its command line without the program's name.
func (d *Daemon) Args() []string { return slices.Clone(d.args) }

// NotifyPushes lets the git server call the daemon's webhook after each push.
func (d *Daemon) NotifyPushes(ctx context.Context) {
	d.rig.Git.NotifyPushes(ctx, env.Generic, "http://"+d.Webhooks+"/hooks/generic", webhookSecret)
}

// Readiness is what /readyz says.
type Readiness struct {
	Ready  bool `json:"ready"`
	Checks []struct {
		Name, Reason string
		OK           bool
	} `json:"checks"`
}

// Readiness asks the daemon.
func (d *Daemon) Readiness(ctx context.Context) (Readiness, error) {
	var out Readiness
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Operators+"/readyz", nil)
	if err != nil {
		return out, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

// Market is the market as the daemon shows it, in YAML.
func (d *Daemon) Market(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Operators+"/market", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/yaml")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// AwaitNodes waits, as long as the context, until the daemon's market has the nodes of all
// providers: an agent's first report may be of nodes that do not bear their labels yet, and
// nothing can be placed on those.
func (d *Daemon) AwaitNodes(ctx context.Context, providers map[string][]env.GPUNode) error {
	_, err := env.Until(ctx, time.Hour, func() error {
		market, err := d.Market(ctx)
		if err != nil {
			return err
		}
		offered, err := nodesOffered(market)
		if err != nil {
			return err
		}
		for name, nodes := range providers {
			if offered[name] < len(nodes) {
				return fmt.Errorf("daemon %s hears %d of %d nodes of %s:\n%s", d.Name, offered[name], len(nodes), name, market)
			}
		}
		return nil
	})
	return err
}

// nodesOffered counts the nodes of a market by provider.
func nodesOffered(market string) (map[string]int, error) {
	offered := map[string]int{}
	for document := range strings.SplitSeq(market, "---\n") {
		var flavor v1alpha1.Flavor
		if err := yaml.Unmarshal([]byte(document), &flavor); err != nil {
			return nil, err
		}
		if flavor.Spec.Nodes == nil {
			continue
		}
		for _, group := range flavor.Spec.Nodes.Groups {
			offered[flavor.Metadata.Namespace] += len(group.Nodes)
		}
	}
	return offered, nil
}

// AwaitReady waits until the daemon says that it is ready.
func (d *Daemon) AwaitReady(ctx context.Context) error {
	var last Readiness
	var lastErr error
	for {
		if last, lastErr = d.Readiness(ctx); lastErr == nil && last.Ready {
			return nil
		}
		select {
		case <-d.Done():
			return d.Failure()
		case <-ctx.Done():
			return fmt.Errorf("daemon %s is not ready: %w (it answered %+v); its log is %s", d.Name, cmp.Or(lastErr, ctx.Err()), last, d.LogFile())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Agent starts the agent of a cluster, reporting to daemons.
func (r *Rig) Agent(_ context.Context, cluster string, to ...*Daemon) (*env.Program, error) {
	certs, err := r.certificates("agent-"+cluster, pki.Request{Name: cluster})
	if err != nil {
		return nil, err
	}
	args := []string{"--cluster-id", cluster, "--kubeconfig", filepath.Join(r.Dir, "agents", cluster+".kubeconfig"), "--broker-cert-path", certs}
	args = append(append(args, r.AgentArgs...), r.AgentArgsOf[cluster]...)
	for _, d := range to {
		args = append(args, "--broker-url", "https://"+d.Agents)
	}
	p, err := env.StartProgramWith(r.Env, "agent-"+cluster, filepath.Join(r.Dir, "logs"), filepath.Join(r.Bin, "fleet-agent"), args...)
	if err != nil {
		return nil, err
	}
	r.cleanup(p.Stop)
	return p, nil
}

// Files are the certificate and key of a cluster's agent.
func (r *Rig) Files(cluster string) (*pki.Files, error) {
	certs, err := r.certificates("agent-"+cluster, pki.Request{Name: cluster})
	if err != nil {
		return nil, err
	}
	return pki.OpenFiles(certs)
}

// Line is a cluster's line to a daemon, for tests that speak as its agent.
func (r *Rig) Line(cluster string, d *Daemon) (transport.Transport, error) {
	files, err := r.Files(cluster)
	if err != nil {
		return nil, err
	}
	return transport.NewHTTP("https://"+d.Agents, cluster, files)
}
