package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// makeKeys makes keys and a trust root as a platform team does: with
// `fleetbroker init`. They lie outside Dir, which may be in a work tree.
func (r *Rig) makeKeys(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fleetbroker-keys-")
	if err != nil {
		return fmt.Errorf("make the keys: %w", err)
	}
	r.cleanup(func() error { return os.RemoveAll(dir) })
	r.keys, r.Laid = filepath.Join(dir, "fleet.keys"), filepath.Join(dir, "fleet")
	out, err := exec.CommandContext(ctx, filepath.Join(r.Bin, "fleetbroker"), "init", r.Laid, "--keys-dir", r.keys).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make the keys: %w: %s", err, out)
	}
	return nil
}

// Sign makes git sign what is committed in a clone with the platform's key.
func (r *Rig) Sign(ctx context.Context, t *env.Team) error {
	for _, set := range [][2]string{{"gpg.format", "ssh"}, {"user.signingkey", filepath.Join(r.keys, "policy")}, {"commit.gpgsign", "true"}} {
		if _, err := t.Git(ctx, "config", set[0], set[1]); err != nil {
			return err
		}
	}
	return nil
}

// Trust are the flags by which a daemon, or an operator's round, knows whose
// signatures count.
func (r *Rig) Trust() []string {
	if r.keys == "" {
		return []string{"--unsigned"}
	}
	return []string{"--trust-root", r.TrustRoot(), "--signing-key", filepath.Join(r.keys, "ledger")}
}

// TrustRoot is the trust root file of a signed fleet.
func (r *Rig) TrustRoot() string { return filepath.Join(r.keys, "trust-root.yaml") }
