package reconciler

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/poison"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

const kdir = "intents/vision/k/"

// swelling are the files of a kustomization whose build runs out of memory, after
// an intent that it made before.
func swelling(bad bool) map[string]string {
	kust := "resources: [i.yaml]\n"
	if bad {
		kust += bounded.Bomb("ResourceIntent", "metadata")
	}
	return map[string]string{kdir + "kustomization.yaml": kust, kdir + "i.yaml": intentOf("made", "2")}
}

// record is the ledger's list, "" where there is none.
func (s *story) record() string {
	s.t.Helper()
	text, err := s.tree(s.ledger).ReadFile(ledger.Root+"/"+ledger.SetAsideFile, 1<<20)
	if err != nil {
		return ""
	}
	return string(text)
}

// A kustomization that ends its process twice is set aside on the ledger in the
// round that finds it. Others' intents are decided in that round, what it made
// stays, another daemon agrees without trying it, and a change lifts it.
func TestSetAside_OfAKustomizationIsOnTheLedger(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(swelling(false))
	s.rest()
	s.push(swelling(true))
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.r.Reread()
	out, err := s.r.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(out.Committed); n != 2 || out.Committed[1].Commit.Subject() != "1 placed, 1 frozen" {
		t.Fatalf("committed %d, want the list and what was decided", n)
	}
	head, err := s.r.opts.Repo.Info(s.remote.Head("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := s.r.opts.Repo.Info(head.Parents[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := listed.Subject(), "set aside "+kdir+", which twice ended the process that reads it (took more than 256 MiB of memory)"; got != want {
		t.Errorf("the commit before it is %q, want %q", got, want)
	}
	if got := listed.Trailer("Set-Aside"); !strings.HasPrefix(got, kdir+" sha256:") || !strings.HasSuffix(got, " took more than 256 MiB of memory") {
		t.Errorf("trailer %q", got)
	}
	if made := s.r.ledger.ByIntent("vision", "made"); len(made) != 1 || !made[0].Status.Phase.Held() || made[0].Status.Phase == "Releasing" {
		t.Errorf("what it made is not kept: %v", made)
	}
	s.rest()

	// Another daemon, and this one after a restart, with children that could build
	// nothing at all.
	before := child.Default()
	child.SetDefault(child.Bounds{Memory: 1 << 20, CPU: 1})
	s.start()
	s.expect(s.rest())
	child.SetDefault(before)
	if f := s.r.fleet; len(f.NotRead) != 1 || f.NotRead[0].Why != "took more than 256 MiB of memory" {
		t.Errorf("another daemon leaves out %v", f.NotRead)
	}

	s.push(swelling(false))
	if got := s.rest(); len(got) == 0 || got[0] != "read "+kdir+" again" || s.record() != "" {
		t.Errorf("after the change: committed %q; listed %q", got, s.record())
	}
}

// A remote that refuses the list stops nothing: the piece is left out all the same, and
// others' intents are decided.
func TestSetAside_RefusedByTheRemote(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(swelling(true))
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.remote.Hook = func(_ string, paths []string) error {
		if slices.Contains(paths, ledger.Root+"/"+ledger.SetAsideFile) {
			return errors.New("policy says no")
		}
		return nil
	}
	s.expect(s.rest(), placed, peering)
	if got := s.record(); got != "" || len(s.r.fleet.NotRead) != 1 {
		t.Errorf("listed %q, left out %v", got, s.r.fleet.NotRead)
	}
	s.lines.Wants(t, "FB1194")
}

// An operator lifts a piece: it is tried again, and set aside again where that
// ends the same way. A path that is not set aside is an error that names those
// that are.
func TestSetAside_IsLiftedByAnOperator(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(swelling(true))
	s.rest()
	was := s.record()
	s.start()
	s.r.suspected.lift = []string{"intents/vision/other/"}
	if _, err := s.r.Round(t.Context()); err == nil || !strings.Contains(err.Error(), "those that are: "+kdir) {
		t.Errorf("got %v", err)
	}
	s.start()
	s.r.suspected.lift = []string{kdir}
	got := s.rest()
	if len(got) != 2 || got[0] != "read "+kdir+" again" || !strings.HasPrefix(got[1], "set aside "+kdir) || s.record() == "" || s.record() == was {
		t.Errorf("committed %q, listed %s", got, s.record())
	}
	head, err := s.r.opts.Repo.Info(s.remote.Head("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	lifted, err := s.r.opts.Repo.Info(head.Parents[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := lifted.Trailer("Set-Aside"); got != kdir+" - lifted" {
		t.Errorf("trailer %q", got)
	}
}

// A list that another wrote is undone, and what it names is read.
func TestSetAside_ByAnotherHandIsUndone(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	e, err := s.tree("main").Find("intents/vision/train.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := "apiVersion: fleetbroker.io/v1alpha1\nkind: SetAside\npieces:\n- {path: intents/vision/train.yaml, hash: " + e.Hash.String() + ", why: crashed, at: \"2026-11-20T12:00:00Z\"}\n"
	if _, err := s.remote.Commit("ledger", eve, "Set aside", gitobj.Change{Puts: map[string][]byte{"contracts/_set-aside.yaml": []byte(list)}}); err != nil {
		t.Fatal(err)
	}
	if got := s.rest(); len(got) != 1 || !strings.HasPrefix(got[0], "undo edits of generated files by Eve") || s.record() != "" || len(s.r.fleet.NotRead) > 0 {
		t.Errorf("committed %q; left out %v", got, s.r.fleet.NotRead)
	}
}

// watched starts a daemon on a state directory with notes.
func (s *story) watched(dir string) {
	s.start()
	s.r.opts.Watch = poison.Open(dir, "test", s.at, s.r.opts.Log)
}

// A process that ended while it read convicts nobody: what it was reading is tried
// alone, and read like all else where the child survives.
func TestSetAside_DeathOfTheDaemonConvictsNobody(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	dir := t.TempDir()
	e, err := s.tree("main").Find("intents/vision")
	if err != nil {
		t.Fatal(err)
	}
	poison.Open(dir, "test", s.at, s.r.opts.Log).Begin(poison.Read, poison.Pieces{"intents/vision/": e.Hash.String()}) // killed here
	s.watched(dir)
	if got := s.rest(); len(got) == 0 || got[0] != placed || s.record() != "" {
		t.Errorf("committed %q, listed %q", got, s.record())
	}
	if left := poison.Open(dir, "test", s.at, s.r.opts.Log).Suspects(); len(left) > 0 {
		t.Errorf("still suspected: %v", left)
	}
}

// What ends the child, alone and twice, is set aside down to the file; the other
// tenant's intents are decided in the same round.
func TestSetAside_WhatEndsTheChildAloneIsSetAside(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"tenants/nlp.yaml": strings.ReplaceAll(ground, "vision", "nlp"), "intents/vision/train.yaml": "# " + strings.Repeat("long ", 150_000) + "\n" + intentOf("train", "4"),
		"intents/nlp/chat.yaml": strings.ReplaceAll(intentOf("chat", "1"), "vision", "nlp")})
	dir := t.TempDir()
	e, err := s.tree("main").Find("intents/vision")
	if err != nil {
		t.Fatal(err)
	}
	poison.Open(dir, "test", s.at, s.r.opts.Log).Begin(poison.Read, poison.Pieces{"intents/vision/": e.Hash.String()})
	before := child.Default()
	child.SetDefault(child.Bounds{Memory: 1 << 20, CPU: 1}) // nothing can be read in it
	defer child.SetDefault(before)
	s.watched(dir)
	s.r.Reread()
	out, err := s.r.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Committed) != 2 || !strings.HasPrefix(out.Committed[1].Commit.Subject(), "place nlp/chat ") {
		t.Errorf("committed %v", out.Committed)
	}
	s.lines.Wants(t, "FB1136")
	if got := s.record(); !strings.Contains(got, "path: intents/vision/train.yaml") || !strings.Contains(got, "why: ") {
		t.Errorf("listed %s", got)
	}
	if got := s.r.fleet.NotRead; len(got) != 1 || got[0].Path != "intents/vision/train.yaml" {
		t.Errorf("left out %v", got)
	}
	child.SetDefault(before)
	s.start()
	s.rest()
	if got := s.r.fleet.NotRead; len(got) != 1 {
		t.Errorf("another daemon leaves out %v", got)
	}
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "2")})
	if got := s.rest(); !slices.Contains(got, "read intents/vision/train.yaml again") {
		t.Errorf("after the change: %q", got)
	}
}

// Damaged notes are set aside and named, and the daemon starts.
func TestSetAside_DamagedNotes(t *testing.T) {
	for name, text := range map[string]string{"cut": "{", "empty": "", "zeroed": strings.Repeat("\x00", 100), "another form": `{"version":9}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, poison.File), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newStory(t, "ledger")
		s.watched(dir)
		s.rest()
		kept, _ := filepath.Glob(filepath.Join(dir, poison.File+".damaged-*"))
		if len(kept) != 1 || len(s.r.opts.Watch.Suspects()) > 0 {
			t.Errorf("%s: kept %v", name, kept)
		}
		if again := poison.Open(dir, "test", s.at, s.r.opts.Log); len(again.Suspects()) > 0 {
			t.Errorf("%s: suspects %v", name, again.Suspects())
		}
	}
}

// What an operator lifts beside a running daemon that set it aside stays lifted: the
// daemon tries it alone and reads it.
func TestSetAside_LiftBesideARunningDaemonHolds(t *testing.T) {
	const file = "intents/vision/train.yaml"
	s := newStory(t, "ledger")
	s.push(map[string]string{file: "# " + strings.Repeat("long ", 150_000) + "\n" + intentOf("train", "4")})
	dir := t.TempDir()
	e, err := s.tree("main").Find("intents/vision")
	if err != nil {
		t.Fatal(err)
	}
	poison.Open(dir, "test", s.at, s.r.opts.Log).Begin(poison.Read, poison.Pieces{"intents/vision/": e.Hash.String()})
	before := child.Default()
	child.SetDefault(child.Bounds{Memory: 1 << 20, CPU: 1}) // nothing can be read in it
	defer child.SetDefault(before)
	s.watched(dir)
	s.rest()
	if got := s.record(); !strings.Contains(got, "path: "+file) {
		t.Fatalf("listed %s", got)
	}
	child.SetDefault(before)
	daemon := s.r
	s.start()
	s.r.suspected.lift = []string{file}
	if got := s.rest(); !slices.Contains(got, "read "+file+" again") || s.record() != "" {
		t.Fatalf("lifted: committed %q, listed %s", got, s.record())
	}
	s.r = daemon
	if got := s.rest(); len(got) > 0 || s.record() != "" || len(s.r.fleet.NotRead) > 0 {
		t.Errorf("the daemon committed %q, lists %s, leaves out %v", got, s.record(), s.r.fleet.NotRead)
	}
}
