//go:build e2e

package liqo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
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

// finds waits until the doctor makes a diagnosis whose cause has these words.
func (f *fleet) finds(contract string, code doctor.Code, words ...string) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("the doctor finds %s %q", code, words), func() error {
		found, err := f.examine(contract)
		if err != nil {
			return err
		}
		for _, one := range found {
			if one.Code == code && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(one.Cause, w) }) {
				return nil
			}
		}
		return fmt.Errorf("it finds %+v", found)
	})
}

// well waits until the doctor finds nothing.
func (f *fleet) well(contract string) {
	f.t.Helper()
	f.Eventually("the doctor finds nothing", func() error {
		found, err := f.examine(contract)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("it finds %+v", found)
		}
		return err
	})
}

// healthy waits until `get peerings` shows the modules of a peering that a real
// ForeignCluster has, and that they are well.
func (f *fleet) healthy(consumer, provider string) {
	f.t.Helper()
	f.Eventually("get peerings shows the modules' health", func() error {
		out, err := exec.CommandContext(f.ctx, filepath.Join(bin, "fleetbroker"), "get", "peerings", "-C", f.Git.URL(rig.Repo),
			"--kubeconfigs-dir", filepath.Join(f.Dir, "kubeconfigs"), "-o", "json").Output()
		if err != nil {
			return err
		}
		var list []struct {
			Consumer, Provider string
			Modules            map[string]string
			Columns            struct{ Health string }
		}
		if err := json.Unmarshal(out, &list); err != nil || len(list) != 1 {
			return fmt.Errorf("%s, %w", out, err)
		}
		p := list[0]
		good := []string{"Established", "Ready", "True", "Enabled"} // of authentication Liqo v1.2.0 says only that
		if p.Consumer != consumer || p.Provider != provider || !slices.Contains(good, p.Modules["offloading"]) || !slices.Contains(good, p.Modules["authentication"]) || !strings.Contains(p.Columns.Health, "offloading "+p.Modules["offloading"]) {
			return fmt.Errorf("it shows %+v", p)
		}
		return nil
	})
}

// reason waits until the daemon sees a contract so.
func (f *fleet) reason(contract, phase, reason string) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("%s is %s: %s", contract, phase, reason), func() error {
		s, err := f.state(contract)
		if err == nil && (string(s.Phase) != phase || !strings.Contains(s.Why(), reason)) {
			err = fmt.Errorf("it is %s: %s", s.Phase, s.Why())
		}
		return err
	})
}
