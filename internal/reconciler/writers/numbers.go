package writers

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

// FormatLine is the trailer with the format of what this program writes.
var FormatLine = ledger.FormatTrailer + ": " + strconv.Itoa(ledger.Format)

// RendererTrailer numbers the rendering of a commit's manifests.
const RendererTrailer = "Renderer"

// Numbers are those of a ledger, as of the newest commit of ours that renders: 0
// before numbering. Merges count as what they bring. The zero value has read nothing.
type Numbers struct {
	Renderer, Rules int

	at     tree.Hash
	format error // why the ledger's format is not known
}

// Read takes over a head of the ledger. Commits whose Plan is one of passed render and
// decide nothing.
func (n *Numbers) Read(repo Repo, head tree.Hash, passed ...string) error {
	if n.at == head && !head.IsZero() {
		return nil
	}
	next := Numbers{at: head}
	err := walk(repo, head, func(c gitrepo.Commit, ours bool) bool {
		if !ours || slices.Contains(passed, c.Trailer("Plan")) {
			return true
		}
		next.Renderer = max(next.Renderer, number(c, RendererTrailer))
		next.Rules = max(next.Rules, number(c, replay.RulesTrailer))
		return false
	})
	if err != nil {
		return fmt.Errorf("look for the ledger's rendering: %w", err)
	}
	next.format = Known(repo, head)
	*n = next
	return nil
}

// Known is an error where a head of the ledger has a format that this program does not
// know, by the newest commit of ours that decides or renders: what cannot be read of such
// a ledger is not damaged.
func Known(repo Repo, head tree.Hash) error {
	var unknown error
	err := walk(repo, head, func(c gitrepo.Commit, ours bool) bool {
		said := c.Trailer(ledger.FormatTrailer)
		if !ours || said == "" && c.Trailer("Plan") == "" { // a merge
			return true
		}
		unknown = ledger.KnownFormat(said)
		return false
	})
	if err != nil {
		return fmt.Errorf("look for the ledger's format: %w", err)
	}
	return unknown
}

func number(c gitrepo.Commit, trailer string) int {
	n, err := strconv.Atoi(c.Trailer(trailer))
	if err != nil {
		return 0
	}
	return n
}

// Newer says that this program may not act on a ledger, nil when it may: another one
// renders its manifests otherwise, or decides by rules that this one does not know,
// and the two would undo each other's work.
func (n *Numbers) Newer() error {
	const remedy = "nothing is planned or delivered; start the version of fleetbroker that wrote %s, or a newer one"
	switch {
	case n.format != nil:
		return n.format
	case n.Renderer > manifests.Renderer:
		return fmt.Errorf("the ledger's manifests are of rendering %d, and this program knows up to %d: "+remedy, n.Renderer, manifests.Renderer, "them")
	case n.Rules > planner.Rules:
		return fmt.Errorf("the ledger was decided by rules %d, and this program knows up to %d: "+remedy, n.Rules, planner.Rules, "it")
	}
	return nil
}
