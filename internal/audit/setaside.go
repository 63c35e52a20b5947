package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

const setAsidePath = ledger.Root + "/" + ledger.SetAsideFile

// takeAside takes over what is set aside at a commit of the ledger, and the copies of
// sources: what is read then is what the daemon read.
func (in *inputs) takeAside(c *Commit) error {
	e, err := in.find(c.Tree, setAsidePath)
	if err != nil {
		return err
	}
	copies, err := in.find(c.Tree, v1alpha1.SourcesRoot)
	is := [2]tree.Hash{e.Hash, copies.Hash}
	if err != nil || is == in.aside {
		return err
	}
	in.copies = in.tree(c.Tree)
	list, err := fleet.Recorded(in.tree(c.Tree))
	if err != nil {
		return err
	}
	in.aside, in.list = is, list
	in.verifier.Without(list)
	return nil
}

// again reads the last inputs again if what is set aside of them has changed.
func (in *inputs) again(ctx context.Context) error {
	if in.last.aside == in.aside {
		return nil
	}
	c, err := in.commit(in.last.commit)
	if err != nil {
		return err
	}
	next, err := in.read(ctx, c, in.last.tree, in.last.key, []tree.Tree{in.last.tree})
	if err != nil {
		return err
	}
	next.clean, next.held = in.last.clean, in.last.held
	*in.last = *next
	return nil
}

// alone judges a commit that changes nothing but what lies at or below a path.
func (v *verifier) alone(changes []change, path, what string) error {
	for _, ch := range changes {
		if ch.path != path && !strings.HasPrefix(ch.path, path+"/") {
			v.fault(ch.path, "trailers", "changed by a commit that only brings %s up to date", what)
		}
	}
	_, err := v.take(v.reader, changes)
	return err
}

// listed checks that the Set-Aside trailers of a commit state just what it changes
// in the list. A proposed change has the list beside its decisions; an undo puts
// back what was stated already.
func (v *verifier) listed(changes []change) error {
	want, said := map[string]bool{}, map[string]bool{}
	for _, ch := range changes {
		if ch.path != setAsidePath || v.c.Trailer("Plan") == "undo" {
			continue
		}
		was, err := v.asideAt(ch.before)
		if err != nil {
			return err
		}
		is, err := v.asideAt(ch.after)
		if err != nil {
			return err
		}
		for path, p := range is {
			if was[path] != p {
				want[fmt.Sprintf("%s %s %s", escape.Field(path), p.Hash, p.Why)] = true
			}
		}
		for path := range was {
			if _, still := is[path]; !still {
				want[escape.Field(path)+" - lifted"] = true
			}
		}
	}
	for _, t := range gitobj.Trailers(v.c.Message, "Set-Aside") {
		said[t] = true
	}
	if !maps.Equal(said, want) {
		v.fault(setAsidePath, "trailers", "Set-Aside says %q, what it changes is %q", slices.Sorted(maps.Keys(said)), slices.Sorted(maps.Keys(want)))
	}
	return nil
}

func (v *verifier) asideAt(e tree.Entry) (map[string]v1alpha1.SetAsidePiece, error) {
	out := map[string]v1alpha1.SetAsidePiece{}
	if e.Hash.IsZero() {
		return out, nil
	}
	content, err := v.h.File(e.Hash, maxFile)
	if err != nil {
		return nil, err
	}
	var list v1alpha1.SetAside
	if err := ledger.Decode(content, &list); err != nil {
		v.fault(setAsidePath, "readable", "%s", err)
	}
	for _, p := range list.Pieces {
		out[p.Path] = p
	}
	return out, nil
}
