package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// question is one read of a source.
type question struct {
	entry  v1alpha1.IntentSource
	number int
	// copied is what the ledger has of it, last the commit that this process took last.
	copied *v1alpha1.SourceCopy
	last   tree.Hash
	// accept is a head that an operator accepts whatever came before.
	accept tree.Hash
	// intents must be signed.
	intents bool

	// head is the branch's, once the remote has answered; ignored what is not taken.
	head    tree.Hash
	ignored []string
	// judged is how long the head was looked at.
	judged time.Duration
}

// RewrittenError says that the head of a source does not descend from what is acted on.
type RewrittenError struct {
	Source, Branch string
	// Acted is the commit that is acted on, Head the branch's.
	Acted, Head tree.Hash
}

// Error implements error.
func (e *RewrittenError) Error() string {
	return fmt.Sprintf("its history was rewritten: %s, which is acted on, is no ancestor of %s, the head of %s; look at what changed, then accept it with `fleetbroker accept --source %s=%s`",
		e.Acted.Short(), e.Head.Short(), e.Branch, e.Source, e.Head)
}

// look reads a source.
func (k *Keeper) look(ctx context.Context, q *question) (*snapshot, error) {
	e := &q.entry
	dir := k.mirrorOf(e)
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for mirrors of sources: %w", err)
	}
	remote, err := k.dial(ctx, e, dir+".known_hosts")
	if err != nil {
		return nil, err
	}
	m, err := k.openMirror(e)
	if err != nil {
		return nil, err
	}
	found, err := k.judge(ctx, q, m, remote)
	if errors.Is(err, packs.ErrNotFound) { // it was sent a part, and would never get the rest
		err = errors.Join(fmt.Errorf("it does not send all that its head reaches: %w", err), m.reset())
	}
	return found, errors.Join(err, m.disk.Close())
}

// judge fetches a source, and looks at its head for no longer than Options.Judging.
func (k *Keeper) judge(ctx context.Context, q *question, m *mirror, remote gitrepo.Remote) (*snapshot, error) {
	e := &q.entry
	acted := tree.Hash{} // by the ledger
	if q.copied.Of(e) {
		var err error
		if acted, err = tree.ParseHash(q.copied.Commit); err != nil {
			return nil, fmt.Errorf("its copy on the ledger names no commit: %w", err)
		}
	}
	head, err := m.fetch(ctx, remote, e.Ref(), []tree.Hash{acted, q.last})
	if err != nil {
		return nil, fmt.Errorf("cannot read it: %w", err)
	}
	if head.IsZero() {
		return nil, fmt.Errorf("cannot read it: it has no branch %s", e.Ref())
	}
	q.head = head
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, k.opts.Judging)
	defer cancel()
	n, err := k.judgeHead(within, q, m, acted)
	q.judged = time.Since(began)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("its head %s is not read within %s: have the team make it smaller, and its history plainer", head.Short(), k.opts.Judging)
	}
	return n, err
}

// judgeHead looks at the head of a source, which the mirror has.
func (k *Keeper) judgeHead(ctx context.Context, q *question, m *mirror, acted tree.Hash) (*snapshot, error) {
	e, head := &q.entry, q.head
	rewritten := false
	for _, was := range []tree.Hash{acted, q.last} {
		if was.IsZero() || was == head {
			continue
		}
		holds, err := m.contains(ctx, head, was)
		if err != nil {
			return nil, err
		}
		if !holds && q.accept != head {
			return nil, &RewrittenError{Source: e.Name, Branch: e.Ref(), Acted: was, Head: head}
		}
		rewritten = rewritten || !holds
	}
	signer, err := k.signer(ctx, q, m)
	if err != nil {
		return nil, err
	}
	known := q.copied
	if rewritten || !known.Of(e) {
		known = nil
	}
	taken, err := takeOf(ctx, m, head, e.Tenants, known)
	if err != nil {
		return nil, fmt.Errorf("its head %s is not read: %w", head.Short(), err)
	}
	q.ignored = taken.ignored
	if taken.cut {
		k.opts.Log.Info("source has too long a history to find who changed each file; the oldest commit that was looked at stands for those before it", "source", e.Name, "commit", head.Short())
	}
	n := &snapshot{commit: head, number: q.number, record: &v1alpha1.SourceCopy{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSourceCopy}, Metadata: v1alpha1.Metadata{Name: e.Name},
		URL: e.URL, Branch: e.Ref(), Commit: head.String(), Signer: signer, ReadAt: v1alpha1.TimeOf(k.opts.Now()), Files: taken.list,
	}}
	if known != nil {
		n.base = known.Commit
		if sameFiles(known.Files, taken.list) {
			return n, nil // what it says is what the copy says
		}
	} else if !acted.IsZero() {
		n.base = acted.String()
	}
	text, err := weigh(n.record, q.copied, taken.files, head, q.accept == head)
	if err != nil {
		return nil, err
	}
	n.files = taken.files
	n.files[v1alpha1.SourceFile] = text
	return n, nil
}

// signer is whose key signed the head: of those that the entry names, "" where it
// names none.
func (k *Keeper) signer(ctx context.Context, q *question, m *mirror) (string, error) {
	if len(q.entry.Signers) == 0 {
		if q.intents {
			return "", errors.New("intents must be signed in this fleet, and its entry in fleet.yaml names no signers: add them")
		}
		return "", nil
	}
	keys, err := gitrepo.NewKeys(k.opts.Root.Others(q.entry.Signers))
	if err != nil {
		return "", fmt.Errorf("its signers in fleet.yaml: %w", err)
	}
	raw, err := m.rawCommit(q.head)
	if err != nil {
		return "", err
	}
	key, err := keys.SignedCommit(q.head, raw, k.opts.Now(), func(a, b tree.Hash) (bool, error) { return m.contains(ctx, b, a) })
	if err != nil {
		return "", fmt.Errorf("its head %s is not signed by one of its signers: %w; a signed commit on top of it will do", q.head.Short(), err)
	}
	return key.Principal, nil
}
