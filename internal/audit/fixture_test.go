package audit_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// fleet is a story that can be audited and forged.
type fleet struct {
	*story.Story
	t testing.TB
}

func lived(t testing.TB, branch string, signer gitrepo.Signer, public string) *fleet {
	t.Helper()
	return &fleet{story.Lived(t, branch, signer, public), t}
}

func (s *fleet) options() audit.Options {
	return audit.Options{Ledger: s.Remote.Head(s.Ledger), Inputs: s.Remote.Head("main"), All: true}
}

func (s *fleet) verify() audit.Report {
	s.t.Helper()
	rep, err := audit.Verify(s.t.Context(), s.Remote.Objects(), s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	return rep
}

// forged is a commit that somebody with the daemon's name makes: right in
// everything, until a test makes one thing wrong.
type forged struct {
	changes          ledger.Changes
	puts             map[string][]byte
	deletes          []string
	trailers         map[string]string
	contracts        []string // trailers
	line             string   // of the message; "": what the changes are
	who              gitobj.Person
	now              time.Time
	withoutManifests bool
	withoutContracts bool
	signer           gitrepo.Signer
}

// forge commits it.
func (s *fleet) forge(f forged) {
	s.t.Helper()
	head := s.Remote.Head(s.Ledger)
	root, err := s.Remote.Tree(head)
	if err != nil {
		s.t.Fatal(err)
	}
	if f.now.IsZero() {
		s.At = s.At.Add(time.Minute)
		f.now = s.At
	}
	if f.who.Name == "" {
		f.who = gitobj.Person{Name: "fleetbroker", Email: "broker@example.org", When: f.now}
	}
	puts, deletes, err := f.changes.Files()
	if err != nil {
		s.t.Fatal(err)
	}
	if f.puts == nil {
		f.puts = map[string][]byte{}
	}
	var moved []model.Change
	for _, c := range f.changes.Contracts {
		moved = append(moved, c)
		if c.After != nil && !f.withoutContracts {
			old := "-"
			if c.Before != nil {
				old = string(c.Before.Status.Phase)
			}
			f.contracts = append(f.contracts, fmt.Sprintf("Contract: %s %s -> %s", c.After.Metadata.Name, old, c.After.Status.Phase))
		}
	}
	if !f.withoutManifests && len(moved) > 0 {
		rome := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}}
		paris := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "paris"}}
		index := manifests.NewIndex(slices.Collect(s.Read().Contracts())).With(moved)
		out, err := manifests.Update(index, map[string]*v1alpha1.Cluster{"rome": rome, "paris": paris}, moved)
		if err != nil {
			s.t.Fatal(err)
		}
		for name, content := range out.Files {
			switch e, err := root.Find(name); {
			case content != nil:
				puts[name] = content
			case err == nil && !e.Hash.IsZero():
				deletes = append(deletes, name)
			}
		}
	}
	maps.Copy(puts, f.puts)
	f.puts, f.deletes = puts, append(f.deletes, deletes...)
	digests := map[string]tree.Hash{}
	for name, content := range f.puts {
		if e, err := root.Find(name); err != nil || e.Hash != tree.BlobHash(content) {
			digests[name] = tree.BlobHash(content)
		}
	}
	for _, name := range f.deletes {
		digests[name] = tree.Hash{}
	}
	last, err := s.Remote.Log(s.Ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	ours := slices.IndexFunc(last, func(l memremote.Logged) bool { return len(gitobj.Trailers(l.Message, "Plan")) > 0 })
	trailers := map[string]string{
		"Inputs": s.Remote.Head("main").String(), "Market": gitobj.Trailers(last[ours].Message, "Market")[0],
		"Plan": ledger.Digest(digests), "Now": f.now.UTC().Format(time.RFC3339),
	}
	if n, branch := seq(last); n > 0 {
		trailers["Ledger"] = fmt.Sprintf("%s %d", branch, n+1)
	}
	keep := []string{"Fleet", "Renderer", "Rules"}
	line := "note what was seen"
	if len(f.changes.Contracts) > 0 {
		keep = append(keep, "Round")
		of := cmp.Or(f.changes.Contracts[0].After, f.changes.Contracts[0].Before)
		line = "update " + of.Metadata.Namespace + "/" + of.Spec.Intent.Name
	}
	for _, k := range keep {
		if v := gitobj.Trailers(last[ours].Message, k); len(v) > 0 {
			trailers[k] = v[0]
		}
	}
	maps.Copy(trailers, f.trailers)
	lines := slices.Clone(f.contracts)
	for _, k := range []string{"Inputs", "Market", "Plan", "Now", "Round", "Ledger", "Fleet", "Root", "Dropped", "Renderer", "Rules", "Set-Aside", "Verified"} {
		if trailers[k] != "" {
			lines = append(lines, k+": "+trailers[k])
		}
	}
	message := gitrepo.Message("", []string{cmp.Or(f.line, line)}, lines)
	if _, err := s.Remote.Merge(s.Ledger, f.who, message, gitobj.Change{Puts: f.puts, Deletes: f.deletes}, f.signer); err != nil {
		s.t.Fatal(err)
	}
}

// seq is the number and branch of the newest commit that has one, 0 where none
// has.
func seq(log []memremote.Logged) (n int, branch string) {
	for _, l := range log {
		if v := gitobj.Trailers(l.Message, "Ledger"); len(v) > 0 {
			if _, err := fmt.Sscanf(v[0], "%s %d", &branch, &n); err == nil {
				return n, branch
			}
		}
	}
	return 0, ""
}

func changed(before, after *v1alpha1.Contract) ledger.Changes {
	return ledger.Changes{Contracts: []model.Change{{Before: before, After: after}}}
}
