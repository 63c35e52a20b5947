package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit/sequence"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// numbers are the trailers that count a ledger's commits.
type numbers struct {
	sequence.Line
	fleet string
	// rules and renderer of its commits: a daemon of lower ones writes nothing.
	rules, renderer sequence.Number
}

// numbered holds a commit of ours to the trailers Ledger and Fleet: the sequence
// grows by one from the first commit that has it, and the fleet never changes. A
// daemon counts what the keys that it trusts have signed, so that another key
// than the last commit's may begin at 1; and what it let go of, so that the commit that
// states that may have a higher one.
func (v *verifier) numbered(s *state) {
	n := &v.numbers
	said := v.c.Trailer("Ledger")
	branch, text, _ := strings.Cut(said, " ")
	switch seq, err := strconv.ParseUint(text, 10, 64); {
	case said == "" && n.Begun && (s == nil || s.fleet.Policy.WriteBack.Mode != "pull-request"):
		v.fault("", "sequence", "has no trailer Ledger, and the one before is %d", n.Seq)
	case said == "": // before the first, or a decision that people merged
	case err != nil || branch == "" || seq == 0:
		v.fault("", "sequence", "Ledger is %q, want a branch and a number", said)
	default:
		if v.branch != "" && branch != v.branch {
			v.fault("", "sequence", "Ledger names branch %s, this is %s", branch, v.branch)
		}
		if fault := n.Next(seq, v.by, v.raises(branch), v.cut); fault != "" {
			v.fault("", "sequence", "%s", fault)
		}
	}
	fleet := v.c.Trailer("Fleet")
	switch {
	case fleet == "" && n.fleet != "" && said != "":
		v.fault("", "sequence", "has no trailer Fleet, and the ledger is that of %s", n.fleet)
	case fleet != "" && n.fleet != "" && fleet != n.fleet:
		v.fault("", "sequence", "Fleet is %s, the ledger is that of %s", fleet, n.fleet)
	case fleet != "" && n.fleet == "":
		if id := v.root.ID(); id != "" && fleet != id {
			v.fault("", "sequence", "Fleet is %s, the trust root is that of %s", fleet, id)
		}
		n.fleet = fleet
	}
}

// raises reports whether a commit of ours states that a head of a branch was let go of: by a key trusted before, or where nobody signs.
func (v *verifier) raises(branch string) bool {
	return slices.ContainsFunc(v.report.Dropped, func(d Dropped) bool { return d.Branch == branch && d.Commit == v.c.Hash.String() }) ||
		v.by == "" && slices.ContainsFunc(gitobj.Trailers(v.c.Message, gitrepo.DroppedTrailer), func(said string) bool { return strings.HasPrefix(said, branch+" ") })
}

// strict reports whether a signature by a key that is trusted is asked for.
func (v *verifier) strict() bool { return v.root.Signed() }

// revoked reports why a key signs nothing of what was made when a commit was, ""
// when it does: it had been revoked before.
func (v *verifier) revoked(ctx context.Context, by gitrepo.Key, commit tree.Hash) (why string, err error) {
	if !by.Revoked {
		return "", nil
	}
	if !by.After.IsZero() {
		if _, err := v.stored(by.After); err != nil {
			return fmt.Sprintf("the key of %s is revoked after %s, which is not in the repository", by.Principal, by.After.Short()), nil
		}
		if ok, err := v.graph.Holds(ctx, by.After, commit); err != nil || ok {
			return "", err
		}
	}
	return fmt.Sprintf("the key of %s is revoked, and this commit is none of those before", by.Principal), nil
}

// underRoot finds out whether from this commit on the inputs were held to the
// trust root: the daemon said under which one it acts, and a key of the root
// signed that.
func (v *verifier) underRoot(ctx context.Context) error {
	if v.c.Trailer(gitrepo.RootTrailer) == "" {
		return nil
	}
	v.in.said = true
	if !v.strict() {
		return nil
	}
	of := v.signers.ring
	if !v.signers.rooted {
		var err error
		if of, err = ringOf(v.root.Ledger(nil)); err != nil {
			return fmt.Errorf("trust root: %w", err)
		}
	}
	by, _, err := v.signer(ctx, of)
	if err == nil && by != nil {
		v.in.hold(v.root)
	}
	return err
}

// compared reports whether this program can say what the commit should have
// rendered, and notes it where it cannot.
func (v *verifier) compared() bool {
	said := v.c.Trailer("Renderer")
	if said == "" {
		return true
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 0 {
		v.fault("", "trailers", "Renderer is no number: %q", said)
		return true
	}
	if !manifests.Renders(n) {
		v.unknown("manifests rendered by %d, not compared: this program renders %d", n, manifests.Renderer)
		return false
	}
	return true
}

// facts are what the commit's manifests follow from, beside its contracts.
func (v *verifier) facts(s *state) *manifests.Facts {
	return &manifests.Facts{Clusters: s.fleet.Delivered(), Fleet: v.c.Trailer("Fleet"), Renderer: max(v.renderer(), 1)}
}

// renderer is the number of the commit's rendering, 0 from before numbering.
func (v *verifier) renderer() int {
	n, err := strconv.Atoi(v.c.Trailer("Renderer"))
	if err != nil {
		return 0
	}
	return n
}

// older reports whether a file is what the commit's rendering made of it, where
// this program's makes it another. A commit from before numbering may be of any.
func (v *verifier) older(s *state, path string, has tree.Hash) bool {
	was := v.facts(s).Older(path)
	return was != nil && tree.BlobHash(was) == has
}

// renewed brings manifests up to the commit's rendering, and changes nothing
// else.
func (v *verifier) renewed(s *state, changes []change) error {
	if _, err := v.take(v.reader, changes); err != nil {
		return err
	}
	if s == nil {
		return nil // said already: nobody knows what it acted on
	}
	compared := v.compared()
	facts := v.facts(s)
	want := map[string]map[string][]byte{}
	for _, ch := range changes {
		top, rest, _ := strings.Cut(ch.path, "/")
		consumer, _, _ := strings.Cut(rest, "/")
		if ch.path == setAsidePath {
			continue // listed
		}
		if top != manifests.Root {
			v.fault(ch.path, "trailers", "changed by a commit that only renders again")
			continue
		}
		if !compared {
			continue
		}
		if want[consumer] == nil {
			out, err := facts.Consumer(v.index, consumer)
			if err != nil {
				return err
			}
			want[consumer] = out.Files
		}
		v.asRendered(s, ch.path, want[consumer][ch.path], ch.after.Hash)
	}
	return nil
}
