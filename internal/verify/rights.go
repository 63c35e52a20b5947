package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// rights are who may sign for what.
type rights struct {
	// signed: signatures are asked for at all; intents: on intents too.
	signed, intents bool

	fleet   *ring
	tenants map[string]*team
}

// team are a tenant's own signers. Without approvers each of them approves.
type team struct {
	ring      *ring
	approvers []string
}

// ring is a list of keys with whose they are.
type ring struct {
	keys  gitrepo.Keys
	names []string
}

// ringOf are keys without those that cannot be read: nobody signs with them.
func ringOf(list []gitrepo.Key) *ring {
	list = slices.DeleteFunc(slices.Clone(list), func(k gitrepo.Key) bool {
		_, err := gitrepo.NewKeys([]gitrepo.Key{k})
		return err != nil
	})
	r := &ring{}
	for _, k := range list {
		r.names = append(r.names, k.Principal)
	}
	r.keys, _ = gitrepo.NewKeys(list) // each was read already
	return r
}

// signed is a commit with what it takes to judge its signature.
type signed struct {
	hash     tree.Hash
	raw      []byte
	now      time.Time
	ancestor gitrepo.Ancestor
}

// signer is whose key signed a commit.
func (r *ring) signer(c signed) (string, error) {
	key, err := r.keys.SignedCommit(c.hash, c.raw, c.now, c.ancestor)
	return key.Principal, err
}

func (t *team) approves(who string) bool {
	return len(t.approvers) == 0 || slices.ContainsFunc(t.approvers, func(a string) bool { return strings.EqualFold(a, who) })
}

// reader reads rights from trees, and keeps the last good version of a broken
// file as the reader of fleets does.
type reader struct {
	fleet *fleet.Reader
	last  *fleet.Fleet
	root  *trust.Root
	aside []fleet.Unread
}

// errNobodyKnown is a commit with no readable version of fleet.yaml, its own
// history included.
var errNobodyKnown = errors.New("no version of fleet.yaml can be read, so nobody knows who may sign")

// rightsFiles are what rights are read from.
var rightsFiles = []string{"fleet.yaml", "tenants"}

func (r *reader) read(ctx context.Context, t tree.Tree, older []tree.Tree) (*rights, error) {
	only, err := pick(t, rightsFiles)
	if err != nil {
		return nil, err
	}
	f, err := r.fleet.ReadAll(ctx, fleet.Sources{Inputs: only, Last: r.last, Older: older, Aside: r.aside})
	if err != nil {
		return nil, fmt.Errorf("read who may sign: %w", err)
	}
	if slices.ContainsFunc(f.Frozen, func(z model.Freeze) bool { return z.Path == "/" }) {
		if r.root.Signed() { // the root always knows somebody
			return &rights{signed: true, fleet: ringOf(r.root.Policy(nil, nil))}, nil
		}
		return nil, errNobodyKnown
	}
	r.last = f
	v := f.Policy.Verification
	asked := v.Mode == "signed"
	out := &rights{signed: asked, intents: asked, tenants: map[string]*team{}}
	if r.root.Signed() {
		out.signed, out.intents = true, asked || v.Intents == "signed"
		out.fleet = ringOf(r.root.Policy(v.Signers, f.Policy.WriteBack.Signers))
	} else {
		signers := v.Signers
		if len(signers) == 0 {
			signers = f.Policy.WriteBack.Signers
		}
		out.fleet = ringOf(r.root.Others(signers))
	}
	for name, t := range f.Tenants {
		out.tenants[name] = &team{ringOf(r.root.Others(t.Spec.Signers)), t.Spec.Approvers}
	}
	return out, nil
}

// pick is a tree with only some of its names.
func pick(t tree.Tree, names []string) (tree.Tree, error) {
	entries, err := t.Entries()
	if err != nil {
		return tree.Tree{}, fmt.Errorf("read who may sign: %w", err)
	}
	drop := map[string]tree.Entry{}
	for _, e := range entries {
		if !slices.Contains(names, e.Name) {
			drop[e.Name] = tree.Entry{}
		}
	}
	return tree.With(t, drop)
}

// verdict is what a commit's signature is worth for a path.
type verdict struct {
	// why it does not count, "" when it does.
	why string
	// unapproved: signed by one who may, and not approved.
	unapproved bool
}

// judge says whether a commit may change a path.
func (r *rights) judge(c signed, path string) verdict {
	if !r.intents && tenantOf(path) != "" {
		return verdict{} // it gives no rights, and nobody asks
	}
	if _, err := r.fleet.signer(c); err == nil {
		return verdict{}
	} else if t := r.tenants[tenantOf(path)]; t == nil || t.ring.keys.Empty() {
		return verdict{why: err.Error() + "; " + r.who(path)}
	}
	t := r.tenants[tenantOf(path)]
	who, err := t.ring.signer(c)
	switch {
	case err != nil:
		return verdict{why: err.Error() + "; " + r.who(path)}
	case !t.approves(who):
		return verdict{unapproved: true, why: fmt.Sprintf("it is signed by %s, who is not among the approvers of tenant %s (%s)",
			who, tenantOf(path), strings.Join(t.approvers, ", "))}
	}
	return verdict{}
}

// who may sign for a path, for people.
func (r *rights) who(path string) string {
	names := map[string]bool{}
	for _, n := range r.fleet.names {
		names[n] = true
	}
	if t := r.tenants[tenantOf(path)]; t != nil {
		for _, n := range t.ring.names {
			if t.approves(n) {
				names[n] = true
			}
		}
	}
	if len(names) == 0 {
		return "nobody may sign for this path: name keys under spec.verification.signers of fleet.yaml"
	}
	return "this path may be changed by " + strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// tenantOf is the tenant that a path's intents belong to, "" when it is the
// fleet's.
func tenantOf(path string) string {
	parts := strings.SplitN(path, "/", 3)
	if len(parts) < 3 || parts[0] != "intents" {
		return ""
	}
	return parts[1]
}
