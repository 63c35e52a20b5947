package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pubkey"
)

// Root is a trust root. A nil Root, and one with Unsigned, asks for no
// signatures.
type Root struct {
	// Name of the file, for people; FleetID names the fleet in commits.
	Name, FleetID string
	// File is the file's name without its directory.
	File string
	// Unsigned asks for no signature.
	Unsigned bool

	policy, ledger []gitrepo.Key
	revoked        []revocation // after a commit
	accept         []letgo.Entry
}

// Accept are the rewritten heads that the file accepts. The caller does not change them.
func (r *Root) Accept() []letgo.Entry {
	if r == nil {
		return nil
	}
	return r.accept
}

// NoRoot is the root of --unsigned.
func NoRoot() *Root { return &Root{Unsigned: true} }

// ID is the fleet's id, empty without a trust root file.
func (r *Root) ID() string {
	if r == nil {
		return ""
	}
	return r.FleetID
}

// Signed reports whether signatures are asked for.
func (r *Root) Signed() bool { return r != nil && !r.Unsigned }

// Read reads a trust root file. Every mistake is named by file, line and column.
func Read(file string) (*Root, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator named the file
	if err != nil {
		return nil, fmt.Errorf("read the trust root: %w", err)
	}
	return Parse(file, text)
}

// Parse reads the text of a trust root file; name is for messages.
func Parse(name string, text []byte) (*Root, error) {
	sources, problems := strictyaml.Split(text)
	if len(problems) == 0 && len(sources) != 1 {
		problems = []strictyaml.Problem{{Line: 1, Column: 1, Message: fmt.Sprintf("the file holds %d documents; a trust root is one", len(sources))}}
	}
	if len(problems) > 0 {
		return nil, faults(name, problems)
	}
	doc, problems := strictyaml.Parse(sources[0])
	if len(problems) > 0 {
		return nil, faults(name, problems)
	}
	if v, k := doc.Text("apiVersion"), doc.Text("kind"); v != v1alpha1.APIVersion || k != v1alpha1.KindTrustRoot {
		line, column := doc.At("kind")
		return nil, faults(name, []strictyaml.Problem{{Line: line, Column: column, Message: fmt.Sprintf(
			"apiVersion is %q and kind %q; a trust root begins with apiVersion: %s and kind: %s", v, k, v1alpha1.APIVersion, v1alpha1.KindTrustRoot)}})
	}
	var root v1alpha1.TrustRoot
	if problems := doc.Decode(&root); len(problems) > 0 {
		return nil, faults(name, problems)
	}
	c := checker{doc: doc, seen: map[string]string{}}
	out := &Root{Name: root.Metadata.Name, File: filepath.Base(name), FleetID: root.Spec.FleetID, Unsigned: root.Spec.Unsigned}
	if !fleetID.MatchString(out.FleetID) {
		c.fault("%q is no fleet id; it is the ten letters and digits that `fleetbroker init` made", out.FleetID)("spec", "fleetID")
	}
	out.policy, out.ledger = c.keys("policy", root.Spec.Policy), c.keys("ledger", root.Spec.Ledger)
	out.revoked = c.revoked
	out.accept = c.accept(root.Spec.Accept)
	if !out.Unsigned && (len(out.policy) == 0 || len(out.ledger) == 0) {
		c.fault("a signed fleet needs keys of people in policy and of daemons in ledger; add them, or write unsigned: true")("spec")
	}
	if len(c.problems) > 0 {
		return nil, faults(name, c.problems)
	}
	return out, nil
}

var fleetID = regexp.MustCompile(`^[0-9a-v]{10}$`)

type checker struct {
	doc      *strictyaml.Document
	problems []strictyaml.Problem
	seen     map[string]string
	revoked  []revocation
}

func (c *checker) fault(format string, args ...any) func(path ...any) {
	return func(path ...any) {
		line, column := c.doc.At(path...)
		c.problems = append(c.problems, strictyaml.Problem{Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
	}
}

func (c *checker) keys(list string, keys []v1alpha1.RootKey) []gitrepo.Key {
	var out []gitrepo.Key
	for i, k := range keys {
		id, err := pubkey.ID(k.PublicKey)
		if err != nil {
			c.fault("%v", err)("spec", list, i, "publicKey")
			continue
		}
		if other := c.seen[id]; other != "" {
			c.fault("the same key is in %s already; people and daemons never share one", other)("spec", list, i, "publicKey")
		}
		c.seen[id] = list
		key := gitrepo.Key{Principal: k.Principal, Text: k.PublicKey, Revoked: k.Revoked != nil}
		if k.Revoked != nil && k.Revoked.After != "" {
			if key.After, err = tree.ParseHash(k.Revoked.After); err != nil {
				c.fault("%q is no commit; write its 40 hexadecimal digits", k.Revoked.After)("spec", list, i, "revoked", "after")
			}
			line, column := c.doc.At("spec", list, i, "revoked", "after")
			c.revoked = append(c.revoked, revocation{list, k.Principal, key.After, line, column})
		}
		out = append(out, key)
	}
	return out
}

func (c *checker) accept(list []v1alpha1.AcceptedHead) []letgo.Entry {
	var out []letgo.Entry
	for i, a := range list {
		var e letgo.Entry
		if a.Branch != "" {
			e.Branch = gitrepo.Branch(a.Branch)
		}
		for _, f := range []struct {
			name, text string
			to         *tree.Hash
		}{{"commit", a.Commit, &e.Commit}, {"drops", a.Drops, &e.Drops}} {
			var err error
			if f.text == "" && f.name == "drops" {
				continue
			}
			if *f.to, err = tree.ParseHash(f.text); err != nil {
				c.fault("%q is no commit; write its 40 hexadecimal digits", f.text)("spec", "accept", i, f.name)
			}
		}
		if e.Commit == e.Drops {
			c.fault("commit and drops are the same; commit is the head that is accepted, drops the one that had been")("spec", "accept", i, "drops")
		}
		out = append(out, e)
	}
	return out
}

func faults(name string, problems []strictyaml.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s:%s", name, p))
	}
	return fmt.Errorf("read the trust root: %w", errors.Join(errs...))
}

// Policy are the keys in force for what gives rights, with those that
// verification.signers of fleet.yaml (chain) adds and drops. A key that
// writeBack.signers (daemons) adds as well is a daemon's, and gives no rights.
func (r *Root) Policy(chain, daemons []v1alpha1.Signer) []gitrepo.Key {
	return inForce(r.policy, r.ledger, apart(chain, daemons))
}

// apart are the people's keys without those that the daemons' list adds too.
func apart(people, daemons []v1alpha1.Signer) []v1alpha1.Signer {
	ids := map[string]bool{}
	for _, s := range daemons {
		if id, err := pubkey.ID(s.PublicKey); err == nil && !s.Dropped {
			ids[id] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(people), func(s v1alpha1.Signer) bool {
		id, err := pubkey.ID(s.PublicKey)
		return err == nil && !s.Dropped && ids[id]
	})
}

// Ledger are the keys in force for ledger commits, with those that
// writeBack.signers of fleet.yaml adds and drops.
func (r *Root) Ledger(chain []v1alpha1.Signer) []gitrepo.Key {
	return inForce(r.ledger, r.policy, chain)
}

// Others are keys that fleet files list for less than the fleet, a tenant's, and
// without a trust root any. What the root says of a key holds for them too: one
// of a daemon is not taken, and a revoked one stays revoked.
func (r *Root) Others(list []v1alpha1.Signer) []gitrepo.Key {
	if r == nil {
		r = NoRoot()
	}
	out := inForce(nil, r.ledger, list)
	for i, k := range out {
		id, _ := pubkey.ID(k.Text) // inForce has read it
		for _, own := range r.policy {
			if of, _ := pubkey.ID(own.Text); of == id && own.Revoked {
				out[i].Revoked, out[i].After = true, own.After
			}
		}
	}
	return out
}

// LedgerAlone are the keys that writeBack.signers of fleet.yaml names, without
// those of the root: who was trusted before there was one. What the root revokes
// stays revoked.
func (r *Root) LedgerAlone(list []v1alpha1.Signer) []gitrepo.Key {
	out := inForce(nil, nil, list)
	if !r.Signed() {
		return out
	}
	for i, k := range out {
		id, _ := pubkey.ID(k.Text) // inForce has read it
		for _, own := range r.ledger {
			if of, _ := pubkey.ID(own.Text); of == id && own.Revoked {
				out[i].Principal, out[i].Revoked, out[i].After = own.Principal, true, own.After
			}
		}
	}
	return out
}

// inForce is (own ∪ chain) − dropped, with the root's revocations. A key of the
// other list is not taken from the chain, nor is one that cannot be read.
func inForce(own, other []gitrepo.Key, chain []v1alpha1.Signer) []gitrepo.Key {
	dropped := map[string]bool{}
	known := map[string]bool{}
	for _, s := range chain {
		if id, err := pubkey.ID(s.PublicKey); err == nil && s.Dropped {
			dropped[id] = true
		}
	}
	for _, k := range other {
		if id, err := pubkey.ID(k.Text); err == nil {
			known[id] = true
		}
	}
	var out []gitrepo.Key
	take := func(k gitrepo.Key) {
		id, err := pubkey.ID(k.Text)
		if err != nil || dropped[id] || known[id] {
			return
		}
		known[id] = true
		out = append(out, k)
	}
	for _, k := range own {
		take(k)
	}
	for _, s := range chain {
		if !s.Dropped {
			take(gitrepo.Key{Principal: s.Principal, Text: s.PublicKey})
		}
	}
	return out
}

// Shown is the root as `status`, `plan` and /readyz show it.
func (r *Root) Shown() wire.Trust {
	out := wire.Trust{Unsigned: !r.Signed(), Fleet: r.ID(), Keys: r.Digest()}
	if r == nil {
		return out
	}
	out.Root, out.File = r.Name, r.File
	out.Policy, out.Ledger = shortIDs(r.policy), shortIDs(r.ledger)
	return out
}

// shortIDs are the keys in force.
func shortIDs(keys []gitrepo.Key) []string {
	var out []string
	for _, k := range keys {
		if id, _ := pubkey.ID(k.Text); !k.Revoked { // Parse has read it
			kind, digits, _ := strings.Cut(id, ":")
			out = append(out, kind+":"+digits[:min(8, len(digits))])
		}
	}
	return out
}

// Digest names the root's keys, with what revokes them: the `Root` trailer.
func (r *Root) Digest() string {
	if r == nil || r.FleetID == "" {
		return ""
	}
	var lines []string
	for list, keys := range map[string][]gitrepo.Key{"policy": r.policy, "ledger": r.ledger} {
		for _, k := range keys {
			id, _ := pubkey.ID(k.Text)
			lines = append(lines, fmt.Sprintf("%s %s %t %s", list, id, k.Revoked, k.After))
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(fmt.Sprintf("%t\n%s\n", r.Unsigned, strings.Join(lines, "\n")))))
}
