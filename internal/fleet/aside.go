package fleet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// recordFile is the ledger's list of what is set aside.
const recordFile = "contracts/" + v1alpha1.SetAsideFile

// maxRecord bounds it, in bytes.
const maxRecord = 8 << 20

// Codes of diagnostics of pieces that are not read.
const (
	// CodeSetAside: its process ended twice, and it is not tried again.
	CodeSetAside = "SetAside"
	// CodeNotRead: its process ended for a reason that says nothing of it.
	CodeNotRead = "NotRead"
)

// Unread is a piece of the inputs that a read left out.
type Unread struct {
	v1alpha1.SetAsidePiece
	// Again: this is no verdict, and the next read tries the piece again.
	Again bool `json:"again,omitempty"`
	// Rest: there was more than is read at once; with Again.
	Rest bool `json:"rest,omitempty"`
}

// restOf is a tenant's directory of which a part is still to be read.
func restOf(d *dir) Unread {
	return Unread{SetAsidePiece: v1alpha1.SetAsidePiece{Path: d.path + "/", Hash: d.hash.String(), Why: "it is read in parts"}, Again: true, Rest: true}
}

// asides are pieces that are not read, by path.
type asides map[string]Unread

// of is why a piece of this content is not read, nil when it is.
func (a asides) of(path, hash string) *Unread {
	if p, ok := a[path]; ok && p.Hash == hash {
		return &p
	}
	return nil
}

// Recorded are the pieces that a ledger's tree lists. A list that cannot be read
// lists nothing: the ledger's reader refuses such a ledger.
func Recorded(ledger tree.Tree) ([]Unread, error) {
	if ledger.IsZero() {
		return nil, nil
	}
	content, err := ledger.ReadFile(recordFile, maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, tree.ErrTooLarge):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", recordFile, err)
	}
	var list v1alpha1.SetAside
	if genyaml.UnmarshalStrict(content, &list) != nil {
		return nil, nil
	}
	out := make([]Unread, len(list.Pieces))
	for i, p := range list.Pieces {
		out[i] = Unread{SetAsidePiece: p}
	}
	return out, nil
}

// follow takes over what is not to be read. Of pieces that were set aside and
// are not any more, or the other way round, what is cached is forgotten.
func (r *Reader) follow(src Sources) error {
	pieces, err := Recorded(src.Ledger)
	if err != nil {
		return err
	}
	next := asides{}
	for _, p := range append(pieces, src.Aside...) {
		next[p.Path] = p
	}
	for _, list := range []asides{r.aside, next} {
		for _, p := range list {
			if was, is := r.aside[p.Path], next[p.Path]; was != is {
				r.forget(p.Path)
			}
		}
	}
	for path, p := range r.aside {
		if _, still := next[path]; !still {
			delete(r.deaths.count, p.Hash) // lifted: it has two tries again
		}
	}
	r.aside = next
	return nil
}

// forget makes the next read open a path again, whatever its hash.
func (r *Reader) forget(path string) {
	if path == fleetFile {
		r.prev.fleetFile = nil
		return
	}
	name, rest, _ := strings.Cut(path, "/")
	d := r.prev.requests
	if name != requestsDir {
		d = r.prev.groups[sections[name]]
	}
	for d != nil {
		d.hash = tree.Hash{}
		name, rest, _ = strings.Cut(rest, "/")
		i := slices.IndexFunc(d.entries, func(e tree.Entry) bool { return e.Name == name })
		if i < 0 {
			return
		}
		d.entries = slices.Clone(d.entries) // those of a tree's store
		d.entries[i].Hash = tree.Hash{}
		d = d.subs[i]
	}
}

// isAside breaks a file that is not read.
func (f *file) isAside(u Unread) {
	f.aside = &u
	code, text := u.text()
	f.fails(code, "%s", text)
}

// text says that a piece is not read, and why.
func (u Unread) text() (code, text string) {
	if u.Rest {
		return CodeNotRead, "more files of this tenant changed than are read at once; what it last said stays in force until the rest is read, within seconds"
	}
	if u.Again {
		return CodeNotRead, fmt.Sprintf("this was not read this time, because its process %s; what it last said stays in force, and it is tried again", u.Why)
	}
	return CodeSetAside, fmt.Sprintf("the process that reads it ended twice (%s), so it is set aside and what it last said stays in force: change it, or have an operator try it again with `fleetbroker reconcile --once --lift %s`", u.Why, u.Path)
}

// asideHash names what a kustomization reads.
func asideHash(key string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key))) }

// unreadOf are the pieces that this read left out, by path.
func (now *reading) unreadOf(aside asides) []Unread {
	var out []Unread
	add := func(f *file) {
		if f != nil && f.aside != nil {
			out = append(out, *f.aside)
		}
	}
	add(now.fleetFile)
	for _, d := range now.groups {
		if d != now.intents && len(aside) > 0 {
			d.walk(func(d *dir) {
				for _, f := range d.files {
					add(f)
				}
			})
		}
	}
	for _, t := range now.tenants {
		out = append(out, t.unread...)
	}
	slices.SortFunc(out, func(a, b Unread) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(out, func(a, b Unread) bool { return a.Path == b.Path })
}
