//go:build e2e

package hostile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// TestDaemon_ForeignCommitsOnTheLedgerStopNothing: somebody who may push to the
// ledger pushes commits with hostile headers, merges of hundreds, broken trees one
// on the other, and directories full of labels. Each is undone or refused within
// the bounds of one input, the daemon decides an orderly request after it, nothing
// of it is ever applied, and audit verify names it.
func TestDaemon_ForeignCommitsOnTheLedgerStopNothing(t *testing.T) {
	d := startDaemon(t)
	d.decides("the start")
	at := func(what string) string { return git(t, d.repo, "rev-parse", what) }
	known := map[string]string{}
	const people = "author A <a@b> 1790000000 +0000\ncommitter A <a@b> 1790000000 +0000\n"
	// add is a commit with so many files more among the contracts of vision.
	add := func(name, text string, n int) string {
		blob := object(t, d.repo, "blob", []byte(text), known)
		var list strings.Builder
		list.WriteString(git(t, d.repo, "ls-tree", "-r", "ledger") + "\n")
		for i := range n {
			fmt.Fprintf(&list, "100644 blob %s\tcontracts/vision/%s-%d.yaml\n", blob, name, i)
		}
		index := []string{"-c", "core.bare=false", "--git-dir", d.repo, "--work-tree", t.TempDir()}
		gitIn(t, d.repo, "", append(index, "read-tree", "--empty")...)
		gitIn(t, d.repo, list.String(), append(index, "update-index", "--add", "--index-info")...)
		tree := gitIn(t, d.repo, "", append(index, "write-tree")...)
		return git(t, d.repo, "commit-tree", tree, "-p", at("ledger"), "-m", name)
	}
	attacks := map[string]func() string{
		"merge-of-300": func() string {
			var text strings.Builder
			fmt.Fprintf(&text, "tree %s\nparent %s\n", at("ledger^{tree}"), at("ledger"))
			for i := range 300 {
				side := fmt.Sprintf("tree %s\nparent %s\n%s\nside %d\n", at("ledger^{tree}"), at("ledger"), people, i)
				fmt.Fprintf(&text, "parent %s\n", object(t, d.repo, "commit", []byte(side), known))
			}
			return object(t, d.repo, "commit", []byte(text.String()+people+"\nall\n"), known)
		},
		"stack-of-broken": func() string {
			root := rootOf(t, d.repo, "ledger")
			broken := store(t, d.repo, append(slices.Clone(root), Trees()["twice"]...))
			head := at("ledger")
			for i := range 200 {
				head = object(t, d.repo, "commit", fmt.Appendf(nil, "tree %s\nparent %s\n%s\nbroken %d\n", broken, head, people, i), known)
			}
			return head
		},
		"crowd-of-labels": func() string {
			text := strings.Replace(Intent("vision", "evil", ""), "namespace: vision}", "namespace: vision, labels: {"+strings.TrimSuffix(many(40_000, "k%d: v,"), ",")+"}}", 1)
			return add("evil-labels", text, 1)
		},
		"crowd-of-contracts": func() string {
			return add("evil", group+"kind: Contract\nmetadata: {name: evil, namespace: vision}\n", 5_000)
		},
		"name-of-9-mib": func() string {
			return object(t, d.repo, "commit", fmt.Appendf(nil, "tree %s\nparent %s\nauthor %s <a@b> 1790000000 +0000\ncommitter A <a@b> 1790000000 +0000\n\nx\n",
				at("ledger^{tree}"), at("ledger"), strings.Repeat("A", 9<<20)), known)
		},
	}
	for name := range Commits("", "") {
		attacks[name] = func() string {
			return object(t, d.repo, "commit", []byte(Commits(at("ledger^{tree}"), at("ledger"))[name]), known)
		}
	}
	served := 0
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		commit := attacks[name]()
		if _, err := env.Git(t.Context(), d.repo, "rev-list", "--objects", "--count", commit); err != nil {
			continue // what git itself cannot walk no server takes
		}
		served++
		d.bounded(name, func() {
			git(t, d.repo, "update-ref", "refs/heads/ledger", commit)
			d.push()
			d.decides(name)
		})
		if files := git(t, d.repo, "ls-tree", "-r", "--name-only", "ledger"); strings.Contains(files, "evil") {
			t.Errorf("%s: what another account wrote stands in the ledger:\n%.2000s", name, files)
		}
	}
	if served < 16 {
		t.Errorf("git serves %d of the commits", served)
	}
	r := runWithin(t, 4*maxCPU, "fleetbroker", "audit", "verify", "file://"+d.repo) // all of them at once
	if r.code == 0 || !strings.Contains(r.out+r.said, "by other accounts that the daemon has undone") {
		t.Errorf("audit verify: exit code %d: %.3000s%.3000s", r.code, r.out, r.said)
	}
	if len(r.out) > 256<<10 {
		t.Errorf("audit verify says %d bytes", len(r.out))
	}
	visible(t, "audit verify", r.out)
	cpu, peak := d.used()
	t.Logf("%d commits: %s, %d MiB; audit verify: %s, %d MiB", served, cpu, peak>>20, r.cpu, r.memory>>20)
}
