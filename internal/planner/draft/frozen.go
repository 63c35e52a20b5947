package draft

import (
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// freezes answers which intents and paths are frozen, and why.
type freezes struct {
	paths   map[string]string
	dirs    []model.Freeze
	intents map[[2]string]string
	// clusters have a file that cannot be read, and no version of it that could be.
	clusters map[string]string
	Any      bool
}

// NewFreezes sorts what is frozen by how it is asked for.
func NewFreezes(list []model.Freeze) freezes {
	f := freezes{paths: map[string]string{}, intents: map[[2]string]string{}, clusters: map[string]string{}, Any: len(list) > 0}
	for _, x := range list {
		switch {
		case x.Path == "/" || strings.HasSuffix(x.Path, "/"):
			f.dirs = append(f.dirs, x)
		case x.Path != "":
			f.paths[x.Path] = x.Why
		}
		if x.Cluster != "" {
			f.clusters[x.Cluster] = x.Why
		}
		if x.Tenant != "" {
			f.intents[[2]string{x.Tenant, x.Intent}] = x.Why
		}
	}
	return f
}

// Cluster is why the file of a cluster cannot be read, "" where it can or there is none.
func (f *freezes) Cluster(id string) string { return f.clusters[id] }

// Why is why an intent, or what came from any of paths, is frozen.
func (f *freezes) Why(tenant, intent string, paths ...string) (string, bool) {
	if !f.Any {
		return "", false
	}
	for _, k := range [...][2]string{{tenant, intent}, {tenant, ""}} {
		if why, ok := f.intents[k]; ok {
			return why, true
		}
	}
	for _, p := range paths {
		if why, ok := f.paths[p]; ok && p != "" {
			return why, true
		}
		for _, d := range f.dirs {
			if d.Path == "/" || (p != "" && strings.HasPrefix(p, d.Path)) {
				return d.Why, true
			}
		}
	}
	return "", false
}

// FrozenFor is how long what is frozen counts as usual.
func (f *Facts) FrozenFor() time.Duration {
	return f.Fleet.Safety.Ages()
}

// FrozenSince is since when an intent is frozen, as the ledger remembers it.
func (f *Moment) FrozenSince(j *Job) v1alpha1.Time { return lifecycle.FrozenSince(j.State, f.Now) }

// frozenContract reports whether a contract's intent is frozen, and why.
func (r *Draft) frozenContract(c *v1alpha1.Contract) (string, bool) {
	tenant, name := c.Metadata.Namespace, c.Spec.Intent.Name
	paths := []string{c.Spec.Intent.Path}
	if in := r.Find(tenant, name); in != nil {
		paths = append(paths, in.Path)
	}
	return r.Frozen.Why(tenant, name, paths...)
}

// IsFrozenContract reports whether a contract's intent is frozen.
func (r *Draft) IsFrozenContract(c *v1alpha1.Contract) bool {
	_, is := r.frozenContract(c)
	return is
}

// Aged reports whether a contract has no end and its intent could not be read
// for longer than safety.frozenFor.
func (r *Draft) Aged(c *v1alpha1.Contract) bool {
	if !c.Spec.Term.End.IsZero() || !r.Frozen.Any {
		return false
	}
	s := r.W.Ledger.State(c.Metadata.Namespace, c.Spec.Intent.Name)
	if s == nil || s.Status.Frozen == nil || s.Status.Frozen.Since.Add(r.FrozenFor()).After(r.Now.Time) {
		return false
	}
	return r.IsFrozenContract(c)
}
