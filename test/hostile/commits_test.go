//go:build e2e

package hostile

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// gitIn is git with something on its standard input.
func gitIn(t *testing.T, dir, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return strings.TrimSpace(string(out))
}

// TestDaemon_CommitsAndRevocationsStopNothing: commits with hostile headers,
// signatures, dates and messages, and hostile lists of revoked certificates, on
// the branch of the inputs. After each the daemon decides an orderly request.
func TestDaemon_CommitsAndRevocationsStopNothing(t *testing.T) {
	d := startDaemon(t)
	d.decides("the start")
	head := git(t, d.repo, "rev-parse", "main")
	tree := git(t, d.repo, "rev-parse", "main^{tree}")
	step := func(name, commit string) {
		d.bounded(name, func() {
			git(t, d.repo, "update-ref", "refs/heads/main", commit)
			d.push()
			d.decides(name)
		})
		head = git(t, d.repo, "commit-tree", tree, "-p", commit, "-m", "orderly again")
		git(t, d.repo, "update-ref", "refs/heads/main", head)
		d.push()
	}
	served := 0
	for _, name := range slices.Sorted(maps.Keys(Commits(tree, head))) {
		commit := object(t, d.repo, "commit", []byte(Commits(tree, head)[name]), map[string]string{})
		if _, err := env.Git(t.Context(), d.repo, "rev-list", "--objects", "--count", commit); err != nil {
			continue // what git itself cannot walk no server takes
		}
		served++
		step(name, commit)
	}
	if served < 12 {
		t.Errorf("git serves %d of the commits", served)
	}
	lists := Revocations()
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		blob := object(t, d.repo, "blob", []byte(lists[name]), map[string]string{})
		raw := fmt.Sprintf("100644 blob %s\trevoked.crl\n", blob)
		pki := gitIn(t, d.repo, raw, "mktree")
		root := git(t, d.repo, "ls-tree", tree) + fmt.Sprintf("\n040000 tree %s\tpki\n", pki)
		step("revoked-"+name, git(t, d.repo, "commit-tree", gitIn(t, d.repo, root, "mktree"), "-p", head, "-m", name))
	}
	r := runWithin(t, 4*maxCPU, "fleetbroker", "audit", "verify", "file://"+d.repo) // all of them at once
	if r.said == "" && r.out == "" {
		t.Error("audit verify says nothing")
	}
	cpu, peak := d.used()
	t.Logf("%d commits, %d lists: %s, %d MiB; audit verify: %s, %d MiB", served, len(lists), cpu, peak>>20, r.cpu, r.memory>>20)
}
