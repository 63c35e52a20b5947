package fleet

import (
	"fmt"
	"path"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet/naming"
)

// dir is one directory of a tree with the files that were found in it. It is
// kept from read to read: an equal hash is an equal directory.
type dir struct {
	path    string
	hash    tree.Hash
	entries []tree.Entry
	subs    []*dir  // beside entries; nil for what is no directory
	files   []*file // beside entries; nil for what is not read
	refused []Diagnostic
	frozen  []model.Freeze
	// kust is the name of the kustomization in it, "" when it is plain.
	kust string
	// oversized: there is more in it than is read of one tenant, and nothing is.
	oversized bool
}

// scanner walks a new tree beside the old one and collects the files that must
// be parsed.
type scanner struct {
	store tree.Store
	aside asides
	parse []*file
}

// file is one that was found, set aside or to be parsed.
func (s *scanner) file(name string, h tree.Hash, sec section) *file {
	f := &file{path: name, hash: h, sec: sec}
	if len(s.aside) > 0 {
		if p := s.aside.of(name, h.String()); p != nil {
			f.isAside(*p)
		}
	}
	return f
}

// scan is the directory at a path. Within a kustomized directory no file is
// read by itself.
func (s *scanner) scan(prev *dir, p string, h tree.Hash, sec section, kustomized bool) (*dir, error) {
	if prev != nil && prev.hash == h && prev.path == p {
		return prev, nil
	}
	entries, err := s.store.Dir(h)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", p, err)
	}
	d := &dir{path: p, hash: h, entries: entries, subs: make([]*dir, len(entries)), files: make([]*file, len(entries))}
	if sec == secIntents {
		d.kust = kustomization(entries)
	}
	if d.kust != "" {
		kustomized = true
	}
	if prev != nil && (prev.kust != "") != (d.kust != "") {
		prev = nil
	}
	old := cursor{d: prev}
	for i, e := range entries {
		before := old.find(e)
		if !kustomized && before >= 0 && prev.files[before] != nil && prev.entries[before] == e { // the common case costs no path
			d.files[i] = prev.files[before]
			continue
		}
		if e.Kind == tree.Oversized {
			d.oversized = true
			continue
		}
		name := path.Join(p, e.Name)
		if why := naming.Refuse(name, e); why != "" {
			d.refuse(name, why)
			continue
		}
		switch {
		case e.Kind == tree.Dir && (sec == secClusters || sec == secTenants): // the file's name is the object's: two of one name could lie there
			d.refuse(name, fmt.Sprintf("directories are not read here; put the files directly under %s/", p))
		case e.Kind == tree.Dir:
			var prevSub *dir
			if before >= 0 {
				prevSub = prev.subs[before]
			}
			if d.subs[i], err = s.scan(prevSub, name, e.Hash, sec, kustomized); err != nil {
				return nil, err
			}
		case !kustomized && naming.Misnamed(e.Name) != "":
			d.refused = append(d.refused, Diagnostic{File: name, Line: 1, Column: 1, Severity: Warning, Code: "Misnamed", Message: fmt.Sprintf("the file is not read: documents are named *.yaml; rename it to %s", naming.Misnamed(e.Name))})
		case kustomized || !isYAML(e.Name):
		default:
			d.files[i] = s.file(name, e.Hash, sec)
			if sec != secIntents { // what tenants write is read once their limits are known
				s.parse = append(s.parse, d.files[i])
			}
		}
	}
	return d, nil
}

// refuse reports an entry that is not read. What it named last may have been a
// file or a directory: both are frozen.
func (d *dir) refuse(name, why string) {
	diag := Diagnostic{File: name, Line: 1, Column: 1, Message: why, Severity: Error, Code: "Refused"}
	d.refused = append(d.refused, diag)
	d.frozen = append(d.frozen, model.Freeze{Path: name, Why: diag.String()}, model.Freeze{Path: name + "/", Why: diag.String()})
}

func kustomization(entries []tree.Entry) string {
	for _, e := range entries {
		if kustomizations[e.Name] && (e.Kind == tree.File || e.Kind == tree.Executable) {
			return e.Name
		}
	}
	return ""
}

// walk calls fn for every directory, parents first, in git's order.
func (d *dir) walk(fn func(*dir)) {
	if d == nil {
		return
	}
	fn(d)
	for _, sub := range d.subs {
		sub.walk(fn)
	}
}

// cursor finds the old entry of a name while both lists are walked in git's
// order; sorted merging costs less than a map of 20,000 names.
type cursor struct {
	d  *dir
	at int
}

// find is the index of an entry of the same name and of the same sort (a
// directory or not), −1 when there is none.
func (c *cursor) find(e tree.Entry) int {
	if c.d == nil {
		return -1
	}
	key := e.Name
	if e.Kind == tree.Dir {
		key += "/"
	}
	for c.at < len(c.d.entries) {
		o := c.d.entries[c.at]
		sameSort := (o.Kind == tree.Dir) == (e.Kind == tree.Dir)
		if sameSort && o.Name == e.Name {
			c.at++
			return c.at - 1
		}
		if strings.Compare(sortKey(o), key) > 0 {
			return -1
		}
		c.at++
	}
	return -1
}

func sortKey(e tree.Entry) string {
	if e.Kind == tree.Dir {
		return e.Name + "/"
	}
	return e.Name
}
