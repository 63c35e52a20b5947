//go:build e2e

package hostile

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fleetbroker/fleetbroker/test/env"
)

var update = flag.Bool("update", false, "rewrite testdata/reasons.txt; read what changes")

// finding is one of validate's.
type finding struct {
	File, Message, Severity string
	Line, Column            int
}

// all are the inputs that do not touch each other and lie in one repository.
func all() []Input {
	return slices.Concat(Documents(), Specs(), Kustomizations(), Others(), Forms())
}

// TestFiles_AreRefusedWithTheirReason: 530 hostile files in one repository.
// Each is refused with the reason in testdata/reasons.txt, one line of bounded
// length, at a place in the file; those that do no harm are taken; the good
// intents beside them are placed by plan and by reconcile; and all of them
// together stay within the bounds of one, where they are read once.
func TestFiles_AreRefusedWithTheirReason(t *testing.T) {
	inputs := all()
	if len(inputs) < 520 {
		t.Fatalf("the corpus has %d inputs", len(inputs))
	}
	dir := t.TempDir()
	put(t, dir, Fleet())
	names := map[string]bool{}
	for _, in := range inputs {
		if names[in.Name] {
			t.Fatalf("two inputs are called %s", in.Name)
		}
		names[in.Name] = true
		put(t, dir, in.Files)
	}
	r := run(t, "fleetbroker", "validate", "-o", "json", dir)
	t.Logf("validate of %d inputs: %s, %d MiB", len(inputs), r.cpu, r.memory>>20)
	var told struct{ Findings []finding }
	if err := json.Unmarshal([]byte(r.out), &told); err != nil || r.code != 1 {
		t.Fatalf("exit code %d, %v: %.500s", r.code, err, r.out)
	}
	judge(t, inputs, told.Findings)

	for _, args := range [][]string{{"plan", "-o", "json", dir}} {
		r := run(t, "fleetbroker", args...)
		t.Logf("plan: %s, %d MiB", r.cpu, r.memory>>20)
		for _, good := range []string{"vision/good", "nlp/good"} {
			if !strings.Contains(r.out, good) {
				t.Errorf("%v says nothing of %s: exit code %d: %.1000s", args, good, r.code, r.said)
			}
		}
		visible(t, "the plan", r.out)
	}
	reconcile(t, dir)
}

// judge compares what was found with the corpus, and with what was found
// before.
func judge(t *testing.T, inputs []Input, found []finding) {
	t.Helper()
	by := map[string][]finding{}
	for _, f := range found {
		by[f.File] = append(by[f.File], f)
		if f.Line < 1 || f.Column < 1 || f.Message == "" || len(f.Message) > 1000 || strings.ContainsFunc(f.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: no place, or no line of printable characters: %.300q", f.File, f.Message)
		}
	}
	var got strings.Builder
	for _, in := range inputs {
		list := by[in.Place()]
		errs := slices.IndexFunc(list, func(f finding) bool { return f.Severity == "error" })
		switch {
		case in.Fine && errs >= 0:
			t.Errorf("%s is refused: %s", in.Name, list[errs].Message)
		case !in.Fine && errs < 0:
			t.Errorf("%s is taken", in.Name)
		}
		for i, f := range list {
			if i == 3 {
				fmt.Fprintf(&got, "%s: and %d more\n", in.Name, len(list)-i)
				break
			}
			fmt.Fprintf(&got, "%s: %d:%d: %s: %s\n", in.Name, f.Line, f.Column, f.Severity, f.Message)
		}
	}
	const golden = "testdata/reasons.txt"
	if *update {
		put(t, ".", map[string]string{golden: got.String()})
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(string(want), "\n")
	for line := range strings.SplitSeq(got.String(), "\n") {
		if !slices.Contains(was, line) {
			t.Errorf("not in %s: %s", golden, line)
		}
	}
	if len(was) != strings.Count(got.String(), "\n")+1 {
		t.Errorf("%s has %d lines, want %d", golden, len(was), strings.Count(got.String(), "\n")+1)
	}
}

// reconcile makes one round over a directory as a repository and demands that
// the good intents are reserved on the ledger.
func reconcile(t *testing.T, dir string) {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "fleet.git")
	git(t, "", "init", "-q", "--bare", "-b", "main", repo)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A", "-f"}, {"commit", "-q", "-m", "hostile"}, {"push", "-q", repo, "main"}} {
		git(t, dir, args...)
	}
	r := runWithin(t, 4*maxCPU, "fleetbroker", "reconcile", "--once", "--unsigned", "--repo", repo, "--ledger", "ledger")
	t.Logf("reconcile: %s, %d MiB", r.cpu, r.memory>>20)
	reserved(t, repo, r)
	r = runWithin(t, 4*maxCPU, "fleetbroker", "audit", "verify", "file://"+repo)
	if r.code != 0 {
		t.Errorf("audit verify: exit code %d: %s%s", r.code, r.out, r.said)
	}
}

// reserved demands that a ledger holds the good intents' contracts.
func reserved(t *testing.T, repo string, r ran) {
	t.Helper()
	files, err := env.Git(t.Context(), repo, "ls-tree", "-r", "--name-only", "ledger")
	if err != nil {
		t.Fatalf("reconcile ended with %d:\n%.3000s%.3000s%v", r.code, r.out, r.said, err)
	}
	for _, good := range []string{"contracts/vision/", "contracts/nlp/"} {
		if !strings.Contains(files, good) {
			t.Errorf("nothing below %s; reconcile ended with %d:\n%.3000s%.3000s", good, r.code, r.out, r.said)
		}
	}
}

// git runs the native client.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := env.Git(t.Context(), dir, append([]string{"-c", "user.name=Ada L.", "-c", "user.email=ada@example.org"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFiles_CostlyAlone: inputs that would cost much, and those that touch what
// everybody shares, each in a repository and a process of its own. Validation
// names them, a plan still has the other tenant's intent.
func TestFiles_CostlyAlone(t *testing.T) {
	for _, in := range Costly() {
		t.Run(in.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := Fleet()
			maps.Copy(files, in.Files)
			put(t, dir, files)
			r := run(t, "fleetbroker", "validate", "-o", "json", dir)
			var told struct{ Findings []finding }
			if err := json.Unmarshal([]byte(r.out), &told); err != nil {
				t.Fatalf("%v: %.500s%.500s", err, r.out, r.said)
			}
			errs := 0
			for _, f := range told.Findings {
				if len(f.Message) > 1000 || strings.ContainsFunc(f.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("no line of printable characters: %.300q", f.Message)
				}
				if f.Severity == "error" && strings.Contains(f.File+": "+f.Message, in.At) {
					errs++
				}
			}
			if !in.Fine && errs == 0 || in.Fine && r.code != 0 {
				t.Errorf("exit code %d, want a reason with %q among %.2000s", r.code, in.At, r.out)
			}
			p := run(t, "fleetbroker", "plan", "-o", "json", dir)
			t.Logf("validate: %s, %d MiB; plan: %s, %d MiB", r.cpu, r.memory>>20, p.cpu, p.memory>>20)
			if !in.Stops && !strings.Contains(p.out, "nlp/good") {
				t.Errorf("the plan has no nlp/good: exit code %d: %.1000s", p.code, p.said)
			}
		})
	}
}
