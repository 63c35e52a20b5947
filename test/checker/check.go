package checker

import (
	"fmt"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// legal are the phase changes that may happen in one commit. "-" is absence.
var legal = map[string][]string{
	"-":         {"Reserved", "Booked"},
	"Booked":    {"Reserved", "Released", "Expired", "Failed"},
	"Reserved":  {"Peering", "Active", "Degraded", "Releasing"},
	"Peering":   {"Active", "Degraded", "Releasing", "Reserved"},
	"Active":    {"Degraded", "Releasing", "Peering", "Reserved"},
	"Degraded":  {"Active", "Peering", "Reserved", "Releasing"},
	"Releasing": {"Released", "Expired", "Preempted", "Failed"},
	"Released":  {"-"}, "Expired": {"-"}, "Preempted": {"-"}, "Failed": {"-"},
}

// Result is what a walk over the history found.
type Result struct {
	Violations []Violation
	// Commits walked, and how many of them placed or enlarged something.
	Commits, Placing int
	// Held contracts at the head, by name, with their phase.
	Held map[string]string
	// Ended contracts still in the tree at the head, by name, with their phase.
	Ended map[string]string
	// Slices at the head, by name.
	Slices map[string]bool
}

// Check walks the ledger branch in st (short name, such as "main") and
// verifies every commit. An error means that the history could not be read at
// all.
func Check(st storer.Storer, branch string) (*Result, error) {
	return CheckSigned(st, branch, func(plumbing.Hash) bool { return true })
}

// accepts reports whether a commit says by its trailers alone what an operator let
// go of.
func accepts(c *object.Commit) bool {
	return strings.Contains(c.Message, "\nDropped: ") && strings.Contains(c.Message, "\nPlan: accept\n")
}

// CheckSigned is Check of a signed fleet, where a commit is the daemon's only if
// its signature says so too.
func CheckSigned(st storer.Storer, branch string, signed func(plumbing.Hash) bool) (*Result, error) {
	isOurs := func(c *object.Commit) bool { return isOurs(c) && signed(c.Hash) }
	commits, bad, err := history(st, plumbing.NewBranchReferenceName(branch), isOurs)
	if err != nil {
		return nil, err
	}
	w := &walker{st: st, res: &Result{Violations: bad, Held: map[string]string{}, Ended: map[string]string{}, Slices: map[string]bool{}}}
	cur := &state{map[string]*contract{}, map[string]*slice{}}
	var parentTree, oursTree plumbing.Hash
	for _, c := range commits {
		if isOurs(c) {
			if c.TreeHash == parentTree && !accepts(c) {
				w.fault(c, "the commit changes nothing")
			}
			// Compared with our last commit, not with the parent: what others
			// wrote in between must have been undone, and then shows nowhere.
			next, err := w.step(c, oursTree, cur)
			if err != nil {
				return nil, err
			}
			cur, oursTree = next, c.TreeHash
		}
		parentTree = c.TreeHash
	}
	w.res.Commits = len(commits)
	for _, c := range cur.contracts {
		if c.held() {
			w.res.Held[c.Metadata.Name] = c.Status.Phase
		} else {
			w.res.Ended[c.Metadata.Name] = c.Status.Phase
		}
	}
	for _, s := range cur.slices {
		w.res.Slices[s.Metadata.Name] = true
	}
	return w.res, nil
}

type walker struct {
	st  storer.Storer
	res *Result
}

func (w *walker) fault(c *object.Commit, format string, args ...any) {
	w.res.Violations = append(w.res.Violations, Violation{c.Hash.String(), fmt.Sprintf(format, args...)})
}

// step verifies one commit of ours against the state of the last one and
// returns its own.
func (w *walker) step(c *object.Commit, oursTree plumbing.Hash, before *state) (*state, error) {
	var changes []change
	if err := diff(w.st, oursTree, c.TreeHash, "", &changes); err != nil {
		return nil, err
	}
	after := before.clone()
	var touched []string
	for _, ch := range changes {
		if err := w.apply(c, after, ch, &touched); err != nil {
			return nil, err
		}
	}
	w.checkTransitions(c, before, after, touched)
	w.checkManifests(c, after)
	w.checkUnique(c, after)
	if err := w.checkCapacity(c, before, after, touched); err != nil {
		return nil, err
	}
	return after, nil
}

func (w *walker) apply(c *object.Commit, s *state, ch change, touched *[]string) error {
	switch {
	case isContractPath(ch.path):
		*touched = append(*touched, ch.path)
		if ch.to.IsZero() {
			delete(s.contracts, ch.path)
			return nil
		}
		b, err := readBlob(w.st, ch.to)
		if err != nil {
			return err
		}
		parsed, err := parseContract(ch.path, b)
		if err != nil {
			w.fault(c, "contract cannot be read: %v", err)
			return nil
		}
		s.contracts[ch.path] = parsed
	case strings.HasPrefix(ch.path, "manifests/"):
		delete(s.slices, ch.path)
		if ch.to.IsZero() {
			return nil
		}
		b, err := readBlob(w.st, ch.to)
		if err != nil {
			return err
		}
		var sl slice
		if err := yaml.Unmarshal(b, &sl); err == nil && sl.Kind == "ResourceSlice" {
			s.slices[ch.path] = &sl
		}
	}
	return nil
}

// checkTransitions verifies that phases move along legal edges and that the
// message's trailers say exactly what the files say.
func (w *walker) checkTransitions(c *object.Commit, before, after *state, touched []string) {
	said := map[string]string{}
	for _, t := range trailers(c.Message, "Contract") {
		name, edge, ok := strings.Cut(t, " ")
		if !ok {
			w.fault(c, "trailer %q is not `<name> <old> -> <new>`", t)
		}
		said[name] = edge
	}
	was, is := byName(before, touched), byName(after, touched)
	seen := map[string]bool{}
	for _, p := range touched {
		name := strings.TrimSuffix(p[strings.LastIndexByte(p, '/')+1:], ".yaml")
		if seen[name] {
			continue // it moved with its intent's name
		}
		seen[name] = true
		old, now := phase(was[name]), phase(is[name])
		if old != now && !contains(legal[old], now) && !claimed(was[name], is[name], after, before) {
			w.fault(c, "contract %s goes from %s to %s", name, old, now)
		}
		if now == "-" {
			continue // retention: the contract has left the tree
		}
		if edge, ok := said[name]; !ok {
			w.fault(c, "contract %s changes (%s -> %s) without a trailer", name, old, now)
		} else if edge != old+" -> "+now {
			w.fault(c, "contract %s: the trailer says %q, the files say %s -> %s", name, edge, old, now)
		}
		if b, a := was[name], is[name]; b != nil && a != nil {
			if b.flavor() != a.flavor() || b.Spec.Consumer != a.Spec.Consumer || b.Spec.Slice != a.Spec.Slice {
				w.fault(c, "contract %s changes its flavor, consumer or slice", name)
			}
		}
	}
	for name := range said {
		if !seen[name] {
			w.fault(c, "a trailer names contract %s, which does not change", name)
		}
	}
	for _, key := range []string{"Inputs", "Market", "Plan", "Now"} {
		if n := len(trailers(c.Message, key)); n != 1 {
			w.fault(c, "trailer %s stands %d times", key, n)
		}
	}
}

// claimed reports whether a warm contract ended because, in the same commit,
// another one appeared on its very slice, with the same flavor, consumer and
// resources: capacity is held without a gap, by the one or the other.
func claimed(was, is *contract, after, before *state) bool {
	if was == nil || is == nil || is.Status.Phase != "Released" || was.Status.Phase == "Releasing" || !was.held() {
		return false
	}
	for path, other := range after.contracts {
		if other.Spec.Slice == was.Spec.Slice && other.Metadata.Name != was.Metadata.Name && before.contracts[path] == nil &&
			other.held() && other.flavor() == was.flavor() && other.Spec.Consumer == was.Spec.Consumer &&
			!larger(other.Spec.Resources, was.Spec.Resources) && !larger(was.Spec.Resources, other.Spec.Resources) {
			return true
		}
	}
	return false
}

// byName are the contracts at some paths. A contract has one path at a time;
// renaming its intent moves it to another.
func byName(s *state, paths []string) map[string]*contract {
	out := map[string]*contract{}
	for _, p := range paths {
		if c := s.contracts[p]; c != nil {
			out[c.Metadata.Name] = c
		}
	}
	return out
}

func (w *walker) checkUnique(c *object.Commit, s *state) {
	names := map[string]string{}
	for p, ct := range s.contracts {
		if other, ok := names[ct.Metadata.Name]; ok && ct.held() {
			w.fault(c, "contract %s stands in %s and %s", ct.Metadata.Name, p, other)
		}
		names[ct.Metadata.Name] = p
	}
}

// checkManifests verifies invariant 1's second half: manifests ride in the
// contract's own commit.
func (w *walker) checkManifests(c *object.Commit, s *state) {
	slices := map[string]*slice{}
	for p, sl := range s.slices {
		if slices[sl.Metadata.Name] != nil {
			w.fault(c, "slice %s is rendered twice, again in %s", sl.Metadata.Name, p)
		}
		slices[sl.Metadata.Name] = sl
	}
	used := map[string]bool{}
	for _, ct := range s.contracts {
		sl := slices[ct.Spec.Slice]
		used[ct.Spec.Slice] = true
		switch {
		case ct.wantsSlice() && sl == nil:
			w.fault(c, "contract %s (%s) has no slice among the manifests", ct.Metadata.Name, ct.Status.Phase)
		case !ct.wantsSlice() && sl != nil && sl.Metadata.Labels["fleetbroker.io/contract"] == ct.Metadata.Name:
			w.fault(c, "contract %s (%s) still has a slice among the manifests", ct.Metadata.Name, ct.Status.Phase)
		case ct.wantsSlice():
			w.checkSlice(c, ct, sl)
		}
	}
	for name := range slices {
		if !used[name] {
			w.fault(c, "slice %s belongs to no contract", name)
		}
	}
}

func (w *walker) checkSlice(c *object.Commit, ct *contract, sl *slice) {
	for name, want := range ct.Spec.Resources {
		got, ok := sl.Spec.Resources[name]
		if !ok || got != want {
			w.fault(c, "slice %s has %s %q, its contract %q", sl.Metadata.Name, name, got, want)
		}
	}
	want := "true"
	if vn := ct.Spec.VirtualNode; ct.Status.Phase == "Releasing" || len(vn.Shares)+len(ct.Spec.Nodes) > 0 || vn.KubeconfigSecretRef.Name != "" {
		want = "false"
	}
	if got := sl.Metadata.Annotations["liqo.io/create-virtual-node"]; got != want {
		w.fault(c, "slice %s of a %s contract says create-virtual-node %q, want %q", sl.Metadata.Name, ct.Status.Phase, got, want)
	}
}

// checkCapacity verifies invariant 2 from history alone.
func (w *walker) checkCapacity(c *object.Commit, before, after *state, touched []string) error {
	was := byName(before, touched)
	grown := map[string]string{} // flavor -> market tree
	for _, p := range touched {
		now := after.contracts[p]
		if now == nil || !now.held() {
			continue
		}
		old := was[now.Metadata.Name]
		if old != nil && old.held() && !larger(now.Spec.Resources, old.Spec.Resources) {
			continue
		}
		grown[now.flavor()] = now.Decision.Market
	}
	if len(grown) > 0 {
		w.res.Placing++
	}
	for _, ref := range sortedKeys(grown) {
		f, err := w.marketFlavor(grown[ref], ref)
		if err != nil {
			w.fault(c, "market %s named by a contract on %s: %v", grown[ref], ref, err)
			continue
		}
		w.checkFlavor(c, f, ref, after)
	}
	return nil
}

// checkFlavor adds up what is held on one flavor.
func (w *walker) checkFlavor(c *object.Commit, f *flavor, ref string, s *state) {
	gpuName := "nvidia.com/gpu"
	if f.Spec.GPU != nil && f.Spec.GPU.ResourceName != "" {
		gpuName = f.Spec.GPU.ResourceName
	}
	asSold := func(name string) string {
		if name == gpuName {
			return "gpu"
		}
		return name
	}
	sum := map[string]*resource.Quantity{}
	add := func(name string, q resource.Quantity) {
		if sum[name] == nil {
			sum[name] = &resource.Quantity{}
		}
		sum[name].Add(q)
	}
	for name, v := range f.Spec.Used {
		if q, err := quantity(v); err == nil {
			add(name, q)
		}
	}
	counted := map[string]bool{}
	for _, ct := range s.contracts {
		if ct.flavor() != ref || !ct.held() {
			continue
		}
		counted[ct.Metadata.Name], counted[ct.Spec.Slice] = true, true
		own := map[string]resource.Quantity{}
		for name, v := range ct.Spec.Resources {
			q, err := quantity(v)
			if err != nil {
				w.fault(c, "contract %s: %s %q: %v", ct.Metadata.Name, name, v, err)
			}
			own[asSold(name)] = q
		}
		reported := f.Spec.Held[ct.Metadata.Name]
		if reported == nil {
			reported = f.Spec.Held[ct.Spec.Slice] // claimed warm
		}
		for name, v := range reported {
			q, err := quantity(v)
			if mine := own[asSold(name)]; err == nil && q.Cmp(mine) > 0 {
				own[asSold(name)] = q
			}
		}
		for name, q := range own {
			add(name, q)
		}
	}
	for who, res := range f.Spec.Held {
		if counted[who] {
			continue
		}
		for name, v := range res {
			if q, err := quantity(v); err == nil {
				add(asSold(name), q)
			}
		}
	}
	for name, q := range sum {
		capacity, limited := f.Spec.Capacity[name]
		if !limited && (name == "pods" || name == "ephemeral-storage") {
			continue
		}
		limit, err := quantity(capacity)
		if err != nil {
			w.fault(c, "flavor %s: capacity of %s: %v", ref, name, err)
			continue
		}
		ratio, err := quantity(f.Spec.Overcommit[name])
		if err == nil && !ratio.IsZero() {
			limit = *resource.NewMilliQuantity(limit.MilliValue()/1000*ratio.MilliValue(), resource.DecimalSI)
		}
		if could, err := quantity(f.Spec.ScalableTo[name]); err == nil && could.Cmp(limit) > 0 {
			limit = could // sold on the word of an autoscaler
		}
		if q.Cmp(limit) > 0 && !q.IsZero() {
			w.fault(c, "OVERSOLD %s: %s held and used %s, capacity %s", ref, name, q.String(), limit.String())
		}
	}
}

// marketFlavor finds a flavor in the market snapshot of a tree hash.
func (w *walker) marketFlavor(tree, ref string) (*flavor, error) {
	provider, name, _ := strings.Cut(ref, "/")
	es, err := entries(w.st, plumbing.NewHash(tree))
	if err != nil {
		return nil, err
	}
	for file, e := range es {
		if strings.TrimSuffix(file, ".yaml") != provider {
			continue
		}
		b, err := readBlob(w.st, e.Hash)
		if err != nil {
			return nil, err
		}
		for _, doc := range strings.Split(string(b), "\n---\n") {
			var f flavor
			if err := yaml.Unmarshal([]byte(doc), &f); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if f.Metadata.Name == name {
				return &f, nil
			}
		}
	}
	return nil, fmt.Errorf("no flavor %s in it", ref)
}

func larger(now, old map[string]string) bool {
	for name, v := range now {
		a, err1 := quantity(v)
		b, err2 := quantity(anyOf(old, name))
		if err1 != nil || err2 != nil || a.Cmp(b) > 0 {
			return true
		}
	}
	return false
}

func anyOf(m map[string]string, k string) any {
	if v, ok := m[k]; ok {
		return v
	}
	return nil
}

func phase(c *contract) string {
	if c == nil {
		return "-"
	}
	return c.Status.Phase
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
