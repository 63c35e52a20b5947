//go:build e2e

package liqo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// examine runs `fleetbroker doctor` on a contract and returns what it finds.
func (f *fleet) examine(contract string) ([]doctor.Finding, error) {
	cmd := exec.CommandContext(f.ctx, filepath.Join(bin, "fleetbroker"), "doctor", contract, "-C", f.Git.URL(rig.Repo),
		"--kubeconfigs-dir", filepath.Join(f.Dir, "kubeconfigs"), "-o", "json")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) == 0) {
		if exit != nil {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, err
	}
	var got struct{ Contracts []doctor.Diagnosis }
	if err := json.Unmarshal(out, &got); err != nil || len(got.Contracts) != 1 {
		return nil, fmt.Errorf("doctor said %s, %w", out, err)
	}
	if (err != nil) != (len(got.Contracts[0].Findings) > 0) {
		return nil, fmt.Errorf("doctor ended with %w and %d findings", err, len(got.Contracts[0].Findings))
	}
	return got.Contracts[0].Findings, nil
}

// finds waits until the doctor names a cause; "" is none at all.
func (f *fleet) finds(contract string, link doctor.Link, cause string) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("the doctor finds %s: %q", link, cause), func() error {
		found, err := f.examine(contract)
		if err != nil {
			return err
		}
		if cause == "" && len(found) == 0 {
			return nil
		}
		for _, one := range found {
			if cause != "" && one.Link == link && strings.Contains(one.Cause, cause) {
				return nil
			}
		}
		return fmt.Errorf("it finds %+v", found)
	})
}

// run runs kubectl and ends the test where it fails.
func (f *fleet) run(cluster string, args ...string) {
	f.t.Helper()
	if out, err := f.kubectl(cluster, args...); err != nil {
		f.t.Fatal(err, out)
	}
}

// reason waits until the daemon sees a contract so.
func (f *fleet) reason(contract, phase, reason string) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("%s is %s: %s", contract, phase, reason), func() error {
		s, err := f.state(contract)
		if err == nil && (string(s.Phase) != phase || !strings.Contains(s.Reason, reason)) {
			err = fmt.Errorf("it is %s: %s", s.Phase, s.Reason)
		}
		return err
	})
}

// Troubles are made on the real thing, one after the other: the contract's
// phase tells the truth, and the doctor names the cause.
func TestTroubles(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", intent("vision", "train", 2))
	node := f.Contract("vision", "train", "Active")
	f.finds(node, "", "")

	// Pods: too large, and older than the namespace's offloading.
	f.apply("rome", deployment("vision", 3))
	f.finds(node, doctor.LinkPods, "Insufficient nvidia.com/gpu")
	f.run("rome", "scale", "deployment", "train", "-n", "vision", "--replicas", "1")
	f.runs("rome", "vision", node, 1)
	f.says("rome", env.PodLog, "logs", "-n", "vision", "deployment/train")
	f.says("rome", "hello", "exec", "-n", "vision", "deployment/train", "--", "echo", "hello")
	f.run("rome", "cordon", node)
	f.finds(node, doctor.LinkNode, "it is cordoned")
	f.run("rome", "uncordon", node)
	f.finds(node, "", "")

	// The provider denies it: its administrator refuses the contract.
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Cordoned"}}`)
	f.finds(node, doctor.LinkPeering, "Cordoned")
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Active"}}`)

	// Leftovers of another peering.
	f.apply("paris", `apiVersion: v1
kind: Namespace
metadata: {name: liqo-tenant-old, labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: rome}}
`)
	f.finds(node, doctor.LinkPeering, "2 namespaces")
	f.run("paris", "delete", "namespace", "liqo-tenant-old")
	f.finds(node, "", "")

	// Liqo is dead on the consumer, and nobody answers a slice.
	if err := f.Liqos["rome"].Kill("liqo-crd-replicator"); err != nil {
		t.Fatal(err)
	}
	f.Put("nlp", "serve", intent("nlp", "serve", 1))
	serve := f.Contract("nlp", "serve", "Peering")
	f.reason(serve, "Peering", "nothing is granted yet")
	f.finds(serve, doctor.LinkSlice, "not replicated")
	if err := f.Liqos["rome"].Start(f.ctx, "liqo-crd-replicator"); err != nil {
		t.Fatal(err)
	}
	f.Contract("nlp", "serve", "Active")
	f.Remove("nlp", "serve")

	// The provider's API server freezes and thaws.
	if err := f.Clusters["paris"].Pause(); err != nil {
		t.Fatal(err)
	}
	f.reason(node, "Degraded", "ProviderUnreachable")
	f.finds(node, doctor.LinkPeering, "does not reach the provider's API server")
	if err := f.Clusters["paris"].Resume(); err != nil {
		t.Fatal(err)
	}
	f.reason(node, "Active", "")
	f.runs("rome", "vision", node, 1)

	// The Tenant is drained: only the provider knows.
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Drained"}}`)
	f.reason(node, "Degraded", "is Drained")
	f.finds(node, doctor.LinkPeering, "it is Drained")
	f.finds(node, doctor.LinkPods, "this is final")

	// It is Active again: Liqo by itself gives nothing back.
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Active"}}`)
	f.reason(node, "Active", "")
	f.runs("paris", "vision-rome", "paris-gpu", 1)
}
