package verify

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// closed are the paths of one commit at which it has a file, link or submodule
// that is held back, with why. Where a directory was, its files are missing only
// because of that entry: they stay in force with what was there, whoever may
// change them.
type closed map[string]verdict

// add notes what is held back at a path where the commit has an entry.
func (s *closed) add(path string, is tree.Entry, v verdict) {
	if is.Hash.IsZero() {
		return
	}
	if *s == nil {
		*s = closed{}
	}
	(*s)[path] = v
}

// over judges a path by the entry held back above it, if there is one, else as
// judge does.
func (s *closed) over(judge func(path string) verdict) func(path string) verdict {
	return func(path string) verdict {
		for i := range path {
			if path[i] != '/' {
				continue
			}
			if v, ok := (*s)[path[:i]]; ok {
				return v
			}
		}
		return judge(path)
	}
}

// withCovered are a commit's changes, and those that it makes by leaving out what
// its parent holds back below an entry that it changes, sorted.
func withCovered(changes []change, over holdings) []change {
	if over.Len() == 0 {
		return changes
	}
	own := map[string]bool{}
	for _, ch := range changes {
		own[ch.path] = true
	}
	out := slices.Clone(changes)
	for _, ch := range changes {
		if ch.was.Hash.IsZero() {
			continue
		}
		for path := range over.Under(ch.path + "/") {
			if !own[path] {
				own[path] = true
				out = append(out, change{path: path})
			}
		}
	}
	slices.SortFunc(out, func(a, b change) int { return cmp.Compare(a.path, b.path) })
	return out
}

// withoutIntents is what is held back besides intents. Intents below an entry
// that is held back are part of it.
func withoutIntents(over holdings) holdings {
	next := over.Edit()
	for path := range over.All() {
		tenant := tenantOf(path)
		if tenant == "" {
			continue
		}
		_, all := over.Get("intents")
		_, theirs := over.Get("intents/" + tenant)
		if !all && !theirs {
			next.Delete(path)
		}
	}
	return next.Done()
}
