package audit

import (
	"reflect"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit/firstdiff"
	"github.com/fleetbroker/fleetbroker/internal/audit/sequence"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// contract judges one contract's step.
func (v *verifier) contract(s *state, at v1alpha1.Time, p pair) error {
	if p.After == nil {
		if !ledger.Ended(p.Before.Status.Phase) {
			v.fault(p.path, "phases", "deleted while %s: a contract leaves the tree only after its end", p.Before.Status.Phase)
		} else if keep := s.fleet.Policy.Retention.Ended.Duration; at.Sub(p.Before.Status.Since.Time) < keep {
			v.fault(p.path, "phases", "deleted %s after its end, retention.ended is %s", at.Sub(p.Before.Status.Since.Time), keep)
		}
		return nil
	}
	v.phases(at, p)
	v.agreed(p)
	v.accrued(s, at, p)
	was, is := p.Before, p.After.Spec.Intent
	if strings.HasPrefix(is.Path, ledger.RequestsRoot+"/") {
		return nil
	}
	if was == nil || was.Spec.Intent.Digest != is.Digest || was.Spec.Intent.Path != is.Path || was.Spec.Intent.Name != is.Name {
		fault, _, err := v.in.traced(s, p.After.Metadata.Namespace, is)
		if err != nil {
			return err
		}
		if fault != "" {
			v.fault(p.path, "intent", "%s", fault)
		}
		if is.Commit != v.c.Trailer("Inputs") {
			v.fault(p.path, "intent", "the contract acts on inputs %.7s, the commit on %.7s", is.Commit, v.c.Trailer("Inputs"))
		}
	}
	return nil
}

// phases judges the steps that a contract's history grew by.
func (v *verifier) phases(at v1alpha1.Time, p pair) {
	is := p.After.Status
	phase, grown := v1alpha1.Phase(""), is.History
	if p.Before != nil {
		was := p.Before.Status
		phase = was.Phase
		n := sequence.Common(was.History, is.History)
		if n < 0 {
			v.fault(p.path, "phases", "its history was rewritten: what stood there does not begin it any more")
			return
		}
		grown = is.History[n:]
	}
	for _, h := range grown {
		if !ledger.Legal(phase, h.Phase) && !v.claimed(p, phase, h.Phase) {
			v.fault(p.path, "phases", "goes from %s to %s, which the phase table does not have", orNone(phase), h.Phase)
		}
		if h.At.After(at.Time) {
			v.fault(p.path, "phases", "is %s at %s, after the round's time %s", h.Phase, stamp(h.At.Time), stamp(at.Time))
		}
		phase = h.Phase
	}
	if phase != is.Phase {
		v.fault(p.path, "phases", "is %s, its history says %s", is.Phase, orNone(phase))
	}
	if ledger.Ended(is.Phase) && is.Phase != v1alpha1.PhaseFailed && is.Target != is.Phase {
		v.fault(p.path, "phases", "ended %s, but was to be %s", is.Phase, orNone(is.Target))
	}
}

// claimed reports whether a warm contract ended because another took its slice
// over in this commit.
func (v *verifier) claimed(p pair, from, to v1alpha1.Phase) bool {
	if to != v1alpha1.PhaseReleased || !from.Charged() || p.After.Status.Reason != ledger.ReasonClaimed {
		return false
	}
	for _, c := range v.held[flavorOf(p.After)] {
		if c.Spec.Slice == p.After.Spec.Slice && c.Metadata.Name != p.After.Metadata.Name {
			return true
		}
	}
	return false
}

// agreed judges what of a contract may not change, or not without a decision.
func (v *verifier) agreed(p pair) {
	is := p.After
	if is.Metadata.Name != p.name() {
		v.fault(p.path, "contract", "is called %s", is.Metadata.Name)
	}
	market := v.c.Trailer("Market")
	if p.Before == nil {
		if is.Decision.Market != market {
			v.fault(p.path, "contract", "was decided on market %.7s, the commit on %.7s", is.Decision.Market, market)
		}
		return
	}
	was := p.Before
	fixed := []struct {
		what    string
		was, is any
	}{
		{"consumer", was.Spec.Consumer, is.Spec.Consumer}, {"provider", was.Spec.Provider, is.Spec.Provider}, {"flavor", was.Spec.Flavor, is.Spec.Flavor},
		{"slice", was.Spec.Slice, is.Spec.Slice}, {"class", was.Spec.Class, is.Spec.Class}, {"term.start", was.Spec.Term.Start, is.Spec.Term.Start},
		{"replica", was.Spec.Intent.Replica, is.Spec.Intent.Replica}, {"part", was.Spec.Intent.Part, is.Spec.Intent.Part},
		{"ordinal", was.Spec.Intent.Ordinal, is.Spec.Intent.Ordinal},
	}
	for _, f := range fixed {
		if !reflect.DeepEqual(f.was, f.is) {
			v.fault(p.path, "contract", "%s was %v and is %v: it never changes", f.what, f.was, f.is)
		}
	}
	if is.Decision.Market == market {
		return // decided anew, or perhaps: the market was the same
	}
	if is.Decision.Market != was.Decision.Market {
		v.fault(p.path, "contract", "was decided on market %.7s, the commit on %.7s", is.Decision.Market, market)
		return
	}
	for _, name := range is.Spec.Resources.Max(was.Spec.Resources).Names() {
		if a, b := was.Spec.Resources[name], is.Spec.Resources[name]; a != b {
			v.fault(p.path, "contract", "%s was %s and is %s, without a new decision", name, a.Canonical(name), b.Canonical(name))
		}
	}
	for _, f := range []struct {
		what    string
		was, is any
	}{
		{"gpus", was.Spec.GPUs, is.Spec.GPUs}, {"price.windows", was.Spec.Price.Windows, is.Spec.Price.Windows},
		{"decision.offer", was.Decision.Offer, is.Decision.Offer}, {"decision.rejected", was.Decision.Rejected, is.Decision.Rejected},
		{"decision.dearest", was.Decision.Dearest, is.Decision.Dearest},
		{"decision.runnersUp", was.Decision.RunnersUp, is.Decision.RunnersUp},
	} {
		if !reflect.DeepEqual(f.was, f.is) {
			v.fault(p.path, "contract", "%s changed without a new decision", f.what)
		}
	}
	if a, b := was.Spec.Price, is.Spec.Price; a.Hourly.Cmp(b.Hourly) != 0 || a.List.Cmp(b.List) != 0 || a.Currency != b.Currency || a.Class != b.Class {
		v.fault(p.path, "contract", "its price was %s %s/h (list %s, %s) and is %s %s/h (list %s, %s), without a new decision",
			a.Hourly, a.Currency, a.List, a.Class, b.Hourly, b.Currency, b.List, b.Class)
	}
}

func (p pair) name() string {
	base := p.path[strings.LastIndexByte(p.path, '/')+1:]
	return strings.TrimSuffix(base, ".yaml")
}

// rendered judges the manifests: just what the changed contracts render to.
func (v *verifier) rendered(s *state, changes []change, d *delta) error {
	var moved []model.Change
	for _, p := range d.contracts {
		moved = append(moved, p.Change)
	}
	if !v.compared() {
		return nil
	}
	out := manifests.Output{}
	if slices.ContainsFunc(moved, func(c model.Change) bool { return manifests.Rendered(c.Before) || manifests.Rendered(c.After) }) {
		var err error
		if out, err = v.facts(s).Update(v.index, moved); err != nil {
			return err
		}
	}
	for _, path := range sortedKeys(out.Files) {
		v.asRendered(s, path, out.Files[path], v.files[path])
	}
	for _, ch := range changes {
		if _, known := out.Files[ch.path]; !known && strings.HasPrefix(ch.path, manifests.Root+"/") {
			v.fault(ch.path, "manifests", "changed, but no contract of the commit has to do with it")
		}
	}
	return nil
}

// asRendered judges one file of the manifests: has is what is there (zero: nothing),
// content what its contracts render to (nil: nothing).
func (v *verifier) asRendered(s *state, path string, content []byte, has tree.Hash) {
	switch {
	case content == nil && !has.IsZero():
		v.fault(path, "manifests", "exists, but no contract renders to it")
	case content != nil && has.IsZero():
		v.fault(path, "manifests", "is missing: the contracts render to %d bytes", len(content))
	case content != nil && tree.BlobHash(content) != has && !v.older(s, path, has):
		v.fault(path, "manifests", "differs from what the contracts render to: %s", v.difference(has, content))
	}
}

// difference is the first line in which a file differs from what it should be.
func (v *verifier) difference(has tree.Hash, want []byte) string {
	got, err := v.h.File(has, maxFile)
	if err != nil {
		return err.Error()
	}
	return firstdiff.Of(got, want)
}

func orNone(p v1alpha1.Phase) string {
	if p == "" {
		return "none"
	}
	return string(p)
}
