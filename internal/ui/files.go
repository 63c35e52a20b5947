package ui

import (
	"path"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ui/changes"
)

// FileHistory is who changed a file or directory of the fleet repo, and when.
type FileHistory struct {
	Path    string           `json:"path"`
	Changes []changes.Change `json:"changes"`
	// Searched is among how many commits, Complete that there are no more.
	Searched int  `json:"commitsSearched"`
	Complete bool `json:"complete"`
}

// filesMoment is how long a page waits for the histories of its files.
const filesMoment = 20 * time.Millisecond

// kustomizations are files that say what of their directory counts.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// pullOf is the pull request that brought a commit, among the changes of some files; 0 for
// none that is known.
func pullOf(files []FileHistory, commit string) int {
	for i := range files {
		for _, k := range files[i].Changes {
			if commit != "" && (k.Hash == commit || k.MergeHash == commit) {
				return k.Pull
			}
		}
	}
	return 0
}

// filesOf are the histories of paths, without those that never had anything.
func (c *call) filesOf(paths ...string) []FileHistory {
	out := []FileHistory{}
	if c.ui.files == nil {
		return out
	}
	until := time.Now().Add(filesMoment)
	for _, p := range paths {
		if slices.Contains(kustomizations, path.Base(p)) {
			p = path.Dir(p)
		}
		head := c.model.Snapshot().Inputs
		if fleet.IsGenerated(p) {
			head = c.model.Snapshot().Ledger
		}
		h, err := c.ui.files.Of(head, p, time.Until(until))
		if err != nil {
			c.ui.opts.Log.Warn("the history of a file cannot be shown", "path", p, "error", err)
			continue // a page without it is better than none
		}
		if h.Complete && len(h.Changes) == 0 || h.Searched == 0 {
			continue
		}
		f := FileHistory{Path: p, Changes: []changes.Change{}, Searched: h.Searched, Complete: h.Complete}
		for _, k := range h.Changes[:min(len(h.Changes), recent)] {
			if !c.sight.All() {
				k.Merge, k.MergeHash = "", ""
				if c.sight.None() || !k.Alone {
					k.Pull = 0
				}
				switch {
				case c.sight.None(): // of no tenant: not what people write to each other
					k.Subject, k.Author = "changed", ""
				case !k.Alone: // its words may be about other tenants
					k.Subject, k.Author = "changes other files too", ""
				}
			}
			f.Changes = append(f.Changes, k)
		}
		out = append(out, f)
	}
	return out
}
