package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/audit/hands"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// ring is a list of keys with whose they are.
type ring struct {
	keys gitrepo.Keys
	list []gitrepo.Key
}

func ringOf(list []gitrepo.Key) (ring, error) {
	keys, err := gitrepo.NewKeys(list)
	return ring{keys, list}, err
}

// signers are whose signature makes a commit the daemon's: those that were
// trusted before it. What a commit's own inputs say counts from the next on, and
// only where one of them signed it.
type signers struct {
	ring
	begun bool
	// rooted: a key of the trust root has signed a commit. What stands before the
	// first such commit is as old as the ledger's first form, and judged as that was.
	rooted bool
}

// Signed is a key of which signatures were found.
type Signed struct {
	// Principal and Key as the fleet or the trust root names them.
	Principal string `json:"principal"`
	Key       string `json:"key"`
	// Commits that it signed.
	Commits int `json:"commits"`
}

// ours reports whether one of us made the commit. sound: s may be acted on.
func (v *verifier) ours(ctx context.Context, s *state, sound bool) (bool, error) {
	if !sound {
		s = nil // nothing of it is believed
	}
	claims := v.c.Trailer("Plan") != "" && strings.EqualFold(v.c.Committer.Email, v.email(s))
	if why := hands.Twice(v.c.Message); why != "" {
		list := slices.Concat(v.ever, v.signers.ring.list)
		if v.strict() {
			list = append(list, v.root.Ledger(nil)...)
		}
		raw, err := v.h.Commit(v.c.proof())
		if claims || err == nil && hands.Signed(raw, v.c.Committer.When, list) { // what others write into messages of their own is theirs
			v.fault("", "trailers", "%s", why)
		}
		return false, nil
	}
	if v.strict() && !v.signers.rooted {
		of, err := ringOf(v.root.Ledger(nil))
		if err != nil {
			return false, fmt.Errorf("trust root: %w", err)
		}
		if by, _, err := v.signer(ctx, of); err != nil {
			return false, err
		} else if by != nil {
			v.signers.rooted, v.signers.ring, v.signers.begun = true, of, true
			v.report.BeforeRoot = v.report.Decisions - 1
		}
	}
	by, why, err := v.signer(ctx, v.signers.ring)
	if err != nil {
		return false, err
	}
	switch {
	case by != nil:
		v.signed(by)
		return true, v.follow(s)
	case !v.signers.keys.Empty():
		held := v.in.root != nil // a person of the root signed whom the inputs let in
		if s != nil {
			of := s.keys
			if held {
				if of, err = ringOf(v.root.Ledger(s.fleet.Policy.WriteBack.Signers)); err != nil {
					return false, fmt.Errorf("trust root: %w", err)
				}
			}
			if by, _, err = v.signer(ctx, of); err != nil {
				return false, err
			}
		}
		if by != nil && held {
			v.signed(by)
			return true, v.follow(s)
		}
		if by != nil {
			v.fault("", "signature", "signed by %s, whom inputs %s let in, but no commit by a key that was trusted before acted on them: the first after a rotation is signed by an old key", by.Principal, s.commit.Short())
		} else if claims {
			v.fault("", "signature", "%s", hands.Claimed(v.c.Committer.String(), hands.Asked(v.signers.rooted), why))
		}
		return false, nil
	}
	if s != nil && !s.keys.keys.Empty() {
		if by, why, err = v.signer(ctx, s.keys); err != nil {
			return false, err
		}
		if by != nil {
			v.signed(by)
			return true, v.follow(s)
		}
		if claims && !v.signers.begun {
			v.fault("", "signature", "%s", hands.Claimed(v.c.Committer.String(), hands.Asked(v.signers.rooted), why))
			return false, nil
		}
	}
	if claims {
		if v.c.Signature != "" {
			v.report.NotJudged++
		} else {
			v.report.Unsigned++
		}
		return true, v.follow(s)
	}
	return false, nil
}

// email is the address of the daemon's commits.
func (v *verifier) email(s *state) string {
	if s == nil {
		s = v.in.last
	}
	if s == nil {
		return ""
	}
	return s.email
}

// signer is whose key of a ring signed the commit, or why none's did.
func (v *verifier) signer(ctx context.Context, of ring) (by *gitrepo.Key, why string, err error) {
	if why = hands.Twice(v.c.Message); of.keys.Empty() || why != "" {
		return nil, why, nil
	}
	raw, err := v.h.Commit(v.c.proof())
	if err != nil {
		return nil, "", fmt.Errorf("read commit %s: %w", v.c.proof().Short(), err)
	}
	i, cause := of.keys.SignerOf(raw, v.c.Committer.When)
	if cause != nil {
		return nil, cause.Error(), nil
	}
	if why, err = v.revoked(ctx, of.list[i], v.c.proof()); err != nil || why != "" {
		return nil, why, err
	}
	return &of.list[i], "", nil
}

// follow takes the signers that the commit's inputs name, beside those of the
// trust root.
func (v *verifier) follow(s *state) (err error) {
	if s == nil {
		return nil
	}
	v.signers.begun = true
	if !v.signers.rooted {
		v.signers.ring = s.keys
		return nil
	}
	v.signers.ring, err = ringOf(v.root.Ledger(s.fleet.Policy.WriteBack.Signers))
	return err
}

func (v *verifier) signed(by *gitrepo.Key) {
	v.by = by.Text
	v.ever = hands.Merged(v.ever, []gitrepo.Key{*by})
	for i := range v.report.Signers {
		if s := &v.report.Signers[i]; s.Key == by.Text && s.Principal == by.Principal {
			s.Commits++
			return
		}
	}
	v.report.Signers = append(v.report.Signers, Signed{by.Principal, by.Text, 1})
}
