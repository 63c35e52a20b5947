package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/cli/findings"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/trust"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// acceptedRef is where the daemon notes up to which commit it has acted on the
// inputs.
const acceptedRef = "refs/fleetbroker/accepted/inputs"

// commits reads the history of a source for verify.
type commits struct{ *source }

// RawCommit implements verify.History.
func (c commits) RawCommit(h tree.Hash) ([]byte, error) {
	return c.objects.read(plumbing.CommitObject, h, 0)
}

// Tree implements verify.History.
func (c commits) Tree(h tree.Hash) (tree.Tree, error) {
	if h.IsZero() {
		return tree.Tree{}, nil
	}
	return c.tree(h)
}

// verified is what of the inputs the daemon would act on, and what not. That
// somebody who may has signed it is looked at where it is known what the daemon
// has accepted: with a URL, and in a clone that fetched refs/fleetbroker/*; with a
// trust root, from its first signed commit on. Files that are not committed are
// taken as they are.
func (s *source) verified(ctx context.Context) (tree.Tree, []fleet.Diagnostic, error) {
	if s.repo == nil || s.changed || s.commit.IsZero() {
		return s.inputs, nil, nil
	}
	v := verify.New(commits{s}, time.Now).Trust(s.root)
	var state *verify.State
	if s.root.Signed() { // what refs say is anybody's word
		base, err := v.Base(ctx, s.commit)
		if errors.As(err, new(*verify.NoBaseError)) { // said by sayUnverified
			defer func(root *trust.Root) { s.root = root }(s.root)
			s.baseless, s.root = err.Error(), nil
			return s.verified(ctx)
		}
		if err == nil {
			state, err = v.Verify(ctx, base, s.commit, nil)
		}
		if err != nil {
			return tree.Tree{}, nil, err
		}
		if len(state.Findings) == 0 && len(state.Broken) == 0 {
			return s.inputs, nil, nil
		}
		return state.Tree, notActedOn(state), nil
	}
	ref, err := s.repo.Reference(acceptedRef, true)
	switch {
	case err == nil:
		state, err = v.Verify(ctx, tree.Hash(ref.Hash()), s.commit, nil)
	case !errors.Is(err, plumbing.ErrReferenceNotFound):
		return tree.Tree{}, nil, fmt.Errorf("read %s: %w", acceptedRef, err)
	}
	if state == nil && (errors.Is(err, plumbing.ErrReferenceNotFound) || errors.Is(err, verify.ErrNoDescendant)) { // or an older checkout
		state, err = v.AsItStands(s.commit)
	}
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound): // a shallow one
		return s.inputs, nil, nil
	case err != nil:
		return tree.Tree{}, nil, err
	case len(state.Findings) == 0 && len(state.Broken) == 0:
		return s.inputs, nil, nil
	}
	return state.Tree, notActedOn(state), nil
}

// unverified is why what is shown of the ledger is nobody's signed word, "" when it
// is somebody's, or when there is no ledger in git.
func (s *source) unverified(ctx context.Context, f *fleet.Fleet) (string, error) {
	if s.repo == nil {
		return "", nil
	}
	head, found := s.branchHead(f.Policy.WriteBack.Branch)
	switch {
	case !found:
		return "", nil
	case s.root == nil:
		return "whose signatures count is not known: name the fleet's trust root with --trust-root FILE or in FLEETBROKER_TRUST_ROOT", nil
	case !s.root.Signed():
		return "the trust root asks for no signatures: whoever may push to the ledger wrote it", nil
	}
	if s.baseless != "" {
		return s.baseless, nil
	}
	_, why, err := audit.Vouched(ctx, s.objects, head, s.root, f.Policy.WriteBack.Signers)
	return why, err
}

// signatures is what the signatures of the inputs were held to, in a line.
func (g *gathered) signatures() string {
	s, none := g.src, "nothing was verified: "
	switch {
	case s.repo == nil, s.commit.IsZero():
		return none + "the files are no commit"
	case s.changed:
		return none + "files differ from the commit"
	case s.baseless != "":
		return none + s.baseless
	case s.root != nil:
		return s.root.Shown().State()
	case g.fleet.Policy.Verification.Mode == "signed":
		return "held to the keys that the repository names; no trust root was given (--trust-root FILE)"
	}
	return none + "no trust root was given (--trust-root FILE)"
}

// sayUnverified says on standard error that what is shown is nobody's signed word.
func (s *source) sayUnverified(ctx context.Context, f *fleet.Fleet, streams Streams) error {
	why, err := s.unverified(ctx, f)
	if err == nil && why != "" {
		fmt.Fprintf(streams.Err, "fleetbroker: unverified: %s\n", escape.Line(why))
	}
	return err
}

// notActedOn is what of a state does not count.
func notActedOn(state *verify.State) (out []fleet.Diagnostic) {
	for _, b := range state.Broken {
		out = append(out, b.Diagnostic())
	}
	for _, f := range state.Findings {
		out = append(out, f.Diagnostic())
	}
	return out
}

// unsigned finds commits since base that no authorised account has signed, by what
// base says of signers.
func (s *source) unsigned(ctx context.Context, base string) ([]findings.Finding, error) {
	h, err := s.revision(base)
	if err != nil {
		return nil, err
	}
	state, err := verify.New(commits{s}, time.Now).Trust(s.root).Branch(ctx, h, s.commit)
	if err != nil {
		return nil, fmt.Errorf("verify what is new since %s: %w", base, err)
	}
	var out []findings.Finding
	for _, d := range notActedOn(state) {
		out = append(out, findings.Of(d))
	}
	return out, nil
}
