package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Pull is the head of a pull request of a source, as far as it is taken.
type Pull struct {
	Commit tree.Hash
	// Acted is the commit of the copy on the ledger that it was looked at from, Base the
	// newest that both have in common; zero: none.
	Acted, Base tree.Hash
	// Files of the head, and of Base, by path in the source: those that an entry allows.
	Files, BaseFiles map[string][]byte
	// Ignored are paths of the head, below intents/, that are not taken.
	Ignored []string
	// Signed: heads of the source must be signed. Unsigned is why this one does not count
	// as that, "" when it does.
	Signed   bool
	Unsigned string
	// Refused is why it is not read though the source sent it, "" when it is: it is too
	// large, or git refuses it. Then nothing else but Commit is set.
	Refused string
}

// ErrNotCopied is returned by Pull while there is nothing on the ledger to compare with.
var ErrNotCopied = errors.New("nothing of the source is acted on yet")

// Pull reads the head of a pull request, by its ref in the source, and keeps nothing of
// it. A ref that is not there is fs.ErrNotExist. It waits for a read of the source that
// is under way.
func (k *Keeper) Pull(ctx context.Context, source, ref string, bounds gitrepo.SideBounds) (*Pull, error) {
	k.mu.Lock()
	s := k.all[source]
	if s == nil || !s.active || !s.copied.Of(&s.entry) {
		k.mu.Unlock()
		return nil, ErrNotCopied
	}
	if held := s.limit.err(k.opts.Now()); held != nil {
		k.mu.Unlock()
		return nil, fmt.Errorf("read a pull request of source %s: %w", source, held)
	}
	q := question{entry: s.entry, copied: s.copied, intents: k.intents}
	defer k.use(s)()
	k.mu.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	acted, err := tree.ParseHash(q.copied.Commit)
	if err != nil {
		return nil, fmt.Errorf("read a pull request of source %s: its copy on the ledger names no commit: %w", source, err)
	}
	dir := k.mirrorOf(&q.entry)
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for mirrors of sources: %w", err)
	}
	remote, err := k.dial(ctx, &q.entry, dir+".known_hosts")
	if err != nil {
		return nil, fmt.Errorf("read a pull request of source %s: %w", source, err)
	}
	m, err := k.openMirror(&q.entry)
	if err != nil {
		return nil, err
	}
	p, err := k.pull(ctx, &q, m, remote, ref, acted, bounds)
	if err = errors.Join(err, m.disk.Close()); err != nil {
		return nil, fmt.Errorf("read a pull request of source %s: %w", source, err)
	}
	return p, nil
}

func (k *Keeper) pull(ctx context.Context, q *question, m *mirror, remote gitrepo.Remote, ref string, acted tree.Hash, bounds gitrepo.SideBounds) (*Pull, error) {
	if !m.disk.Has(acted) {
		return nil, ErrNotCopied // the mirror was lost, and is read again beside this
	}
	var decoded error
	err := remote.Fetch(ctx, func(refs map[string]tree.Hash) (want, has []tree.Hash) {
		if q.head = refs[ref]; q.head.IsZero() || m.disk.Has(q.head) {
			return nil, nil
		}
		return []tree.Hash{q.head}, []tree.Hash{acted}
	}, func(pack io.Reader) error {
		return m.spooled(ctx, pack, func(spool io.ReadSeeker) error {
			m.beside, decoded = readPack(spool, bounds.Bytes)
			return decoded
		})
	})
	switch {
	case err != nil && decoded == nil:
		return nil, err
	case q.head.IsZero():
		return nil, fmt.Errorf("%s: %w", ref, fs.ErrNotExist)
	}
	p := &Pull{Commit: q.head, Acted: acted}
	if err == nil {
		err = k.compare(ctx, q, m, p)
	}
	var trouble *fs.PathError // of this machine
	if ctx.Err() != nil || errors.As(err, &trouble) {
		return nil, err
	}
	if err != nil { // what it sent
		return &Pull{Commit: q.head, Refused: escape.Reason(err.Error())}, nil
	}
	return p, nil
}

// compare takes what a head and the commit that it comes from have.
func (k *Keeper) compare(ctx context.Context, q *question, m *mirror, p *Pull) error {
	bases, err := m.graph.Bases(ctx, q.head, p.Acted)
	if err != nil {
		return err
	}
	head, err := contentOf(ctx, m, q.head, q.entry.Tenants)
	if err != nil {
		return err
	}
	p.Files, p.Ignored = head.files, head.ignored
	if len(bases) > 0 {
		p.Base = bases[0]
		base, err := contentOf(ctx, m, p.Base, q.entry.Tenants)
		if err != nil {
			return fmt.Errorf("the commit that it branches off: %w", err)
		}
		p.BaseFiles = base.files
	}
	p.Signed = q.intents || len(q.entry.Signers) > 0
	if _, err := k.signer(ctx, q, m); err != nil {
		p.Unsigned = escape.Reason(err.Error())
	}
	return nil
}

// Entry is what the fleet that is followed says of a source, nil when nothing.
func (k *Keeper) Entry(source string) *v1alpha1.IntentSource {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.all[source]; s != nil && s.active {
		e := s.entry
		return &e
	}
	return nil
}
