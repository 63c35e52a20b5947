package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// people are the teams and operators at the fleet repo: what they have written
// and what of it cannot be read.
type people struct {
	s       *sim
	inputs  string // branch
	ledger  string
	intents map[string]*intent // by tenant/name
	files   map[string]string  // as they stand on the inputs branch
	next    int
	// broken are other files that do not parse, with their good text.
	broken map[string]string
	// doubled is a second file that names an intent, by path.
	doubled map[string]string
	// emptied: a bad merge took all intents; what they were.
	emptied map[string]*intent
	// known is what each commit of the inputs says.
	known     map[tree.Hash]reading
	suspended bool // the fleet
	// closed says of a provider that it is cordoned, drained by some time, or gone.
	closed map[string]string
	// trash is what hostile people left, by path, and what kind it is; swept is
	// what of it was removed.
	trash map[string]string
	swept []string
	// dated is by how much the next commit is dated ahead.
	dated time.Duration
	// headBroken: git would refuse the tree of the inputs' head; wholeRoot is the
	// one before.
	headBroken bool
	wholeRoot  tree.Hash
}

// reading is what a commit of the inputs says, as far as invariants need it.
type reading struct {
	live map[string]bool // intents that can be read
	// unreadable are paths of intents that do not parse; frozen are intents
	// named twice.
	unreadable map[string]bool
	frozen     map[string]bool
	// shares is the kind of domain that intents' replicas must be in, by intent.
	shares map[string]string
}

func newPeople(s *sim) *people {
	p := &people{
		s: s, inputs: "main", ledger: "ledger",
		intents: map[string]*intent{}, files: map[string]string{}, broken: map[string]string{},
		doubled: map[string]string{}, known: map[tree.Hash]reading{}, closed: map[string]string{}, trash: map[string]string{},
	}
	if s.knobs.oneBranch {
		p.ledger = p.inputs
	}
	return p
}

// found lays down the fleet's files.
func (p *people) found() {
	k := &p.s.knobs
	puts := map[string]string{"fleet.yaml": p.fleetText()}
	for i := range k.providers {
		puts["clusters/"+providerName(i)+".yaml"] = p.providerText(i)
	}
	for i := range k.consumers {
		puts["clusters/"+consumerName(i)+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + consumerName(i) +
			"}\nspec: {roles: [consumer], location: {region: eu-west, country: IT}, reservations: {tenant: " + tenantName(i%k.tenants) + ", defaultDuration: 24h}}\n"
	}
	for i := range k.tenants {
		puts["tenants/"+tenantName(i)+".yaml"] = p.tenantText(i)
	}
	p.push("found the fleet", puts)
}

// warmPool is the fleet's warm pool, where it has one.
const warmPool = "ready"

// ofPool reports whether a contract is one of the fleet's warm slices.
func (s *sim) ofPool(k *v1alpha1.Contract) bool {
	return s.knobs.warm > 0 && k.Metadata.Namespace == v1alpha1.FleetTenant && k.Spec.Intent.Name == warmPool
}

func (p *people) fleetText() string {
	k := &p.s.knobs
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n")
	fmt.Fprintf(&b, "  defaults: {gracePeriod: %s}\n", k.grace)
	fmt.Fprintf(&b, "  writeBack: {mode: push, inputs: %s, branch: %s, author: {name: %s, email: %s}, statusInterval: %s}\n",
		p.inputs, p.ledger, brokerName, brokerEmail, k.statusInterval)
	fmt.Fprintf(&b, "  retention: {ended: %s, market: 720h}\n", k.retention)
	if k.maxEnds > 0 {
		fmt.Fprintf(&b, "  safety: {maxEnds: %d}\n", k.maxEnds)
	}
	if k.work > 0 {
		fmt.Fprintf(&b, "  limits: {work: %d}\n", k.work)
	}
	if k.consolidation != "off" {
		fmt.Fprintf(&b, "  consolidation: {mode: %s, threshold: \"0.1\", hold: 1m}\n", k.consolidation)
	}
	if k.warm > 0 {
		fmt.Fprintf(&b, "  warmPools: [{name: %s, consumer: %s, count: %d, maxPremium: \"2\", resources: {cpu: \"16\", memory: 64Gi, pods: \"10\", ephemeral-storage: 10Gi, gpu: {count: 1}}}]\n",
			warmPool, consumerName(0), k.warm)
	}
	if p.suspended {
		b.WriteString("  suspend: true\n")
	}
	return b.String()
}

func (p *people) providerText(i int) string {
	name := providerName(i)
	text := "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec:\n  roles: [provider]\n  location: {region: " + regions[i%len(regions)] + "}\n"
	return text + p.priceText(i) + p.closed[name]
}

func (p *people) tenantText(i int) string {
	r := p.s.rng
	var names []string
	for c := range p.s.knobs.consumers {
		names = append(names, consumerName(c))
	}
	text := "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: " + tenantName(i) + "}\nspec:\n  consumers: [" + strings.Join(names, ", ") + "]\n"
	switch r.IntN(4) {
	case 0:
		text += fmt.Sprintf("  quota: {gpu: %d}\n", 4+r.IntN(16))
	case 1:
		text += fmt.Sprintf("  budget: {hourly: \"%d\", currency: EUR}\n", 20+r.IntN(80))
	case 2:
		text += fmt.Sprintf("  quota: {cpu: \"%d\", memory: %dGi}\n", 32+r.IntN(64), 256+r.IntN(512))
	}
	return text
}

// push commits files to the inputs, "" removing one, and notes what the inputs
// say now.
func (p *people) push(why string, files map[string]string) {
	p.unbreak()
	ch := gitobj.Change{Puts: map[string][]byte{}}
	for path, text := range files {
		if text == "" {
			ch.Deletes = append(ch.Deletes, path)
			delete(p.files, path)
			continue
		}
		ch.Puts[path] = []byte(text)
		p.files[path] = text
	}
	slices.Sort(ch.Deletes)
	h, err := p.s.remote.Merge(p.inputs, p.person("Ada"), why+"\n", ch, p.s.rooted.signs(sortedKeys(files)))
	if err != nil {
		p.s.fail("sim", "push %s: %v", why, err)
		return
	}
	p.known[h] = p.reading()
	p.s.log("team %s %s", h.Short(), why)
}

func (p *people) person(name string) gitobj.Person {
	return gitobj.Person{Name: name, Email: strings.ToLower(name) + "@example.org", When: p.s.wall().Add(p.dated)}
}

func (p *people) reading() reading {
	r := reading{live: map[string]bool{}, unreadable: map[string]bool{}, frozen: map[string]bool{}, shares: map[string]string{}}
	for key, in := range p.intents {
		if in.broken {
			r.unreadable[in.path] = true
			continue
		}
		r.live[key] = true
		r.shares[key] = in.wish.shares()
		if in.renamedFrom != "" { // what it holds may still bear its former name
			r.live[in.tenant+"/"+in.renamedFrom] = true
		}
	}
	for _, key := range p.doubled {
		r.frozen[key] = true
	}
	return r
}

// readingOf is what the inputs say at a commit; on a branch shared with the
// ledger, at the newest commit of people at or before it.
func (p *people) readingOf(commit tree.Hash) (reading, bool) {
	if r, ok := p.known[commit]; ok {
		return r, true
	}
	for !commit.IsZero() {
		if r, ok := p.known[commit]; ok {
			return r, true
		}
		commit = p.s.parents[commit]
	}
	return reading{}, false
}

// act is one thing that somebody does to the inputs.
func (p *people) act() {
	r := p.s.rng
	switch n := r.IntN(100); {
	case n < 34 || len(p.intents) == 0:
		p.create()
	case n < 56:
		p.edit()
	case n < 68:
		p.remove()
	case n < 72:
		p.move()
	case n < 75:
		p.rename()
	case n < 82:
		p.breakIntent()
	case n < 85:
		p.breakOther()
	case n < 88:
		p.double()
	case n < 91:
		p.empty()
	case n < 94:
		p.close()
	case n < 95:
		p.suspended = !p.suspended
		delete(p.broken, "fleet.yaml")
		p.push("toggle fleet.suspend", map[string]string{"fleet.yaml": p.fleetText()})
	default:
		p.repair()
	}
}

func (p *people) any(is func(*intent) bool) *intent {
	paths := pathsOf(p.intents, is)
	if len(paths) == 0 {
		return nil
	}
	path := paths[p.s.rng.IntN(len(paths))]
	for _, in := range p.intents {
		if in.path == path {
			return in
		}
	}
	return nil
}

func whole(in *intent) bool { return !in.broken }

func (p *people) create() {
	if len(p.intents) >= 14 || p.emptied != nil {
		return
	}
	p.next++
	t := tenantName(p.s.rng.IntN(p.s.knobs.tenants))
	in := &intent{tenant: t, name: fmt.Sprintf("job%d", p.next), wish: drawWish(p.s.rng, &p.s.knobs, p.s.tl.now)}
	in.path = "intents/" + t + "/" + in.name + ".yaml"
	p.intents[in.key()] = in
	p.push("add "+in.key(), map[string]string{in.path: in.text()})
}

func (p *people) edit() {
	if in := p.any(whole); in != nil && p.doubledOf(in.key()) == "" {
		in.wish = in.wish.edited(p.s.rng, &p.s.knobs, p.s.tl.now)
		p.push("edit "+in.key(), map[string]string{in.path: in.text()})
	}
}

func (p *people) remove() {
	if in := p.any(whole); in != nil && p.doubledOf(in.key()) == "" {
		delete(p.intents, in.key())
		p.push("remove "+in.key(), map[string]string{in.path: ""})
	}
}

func (p *people) move() {
	if in := p.any(whole); in != nil && p.doubledOf(in.key()) == "" {
		old := in.path
		in.path = fmt.Sprintf("intents/%s/dir%d/%s.yaml", in.tenant, p.s.rng.IntN(3), in.name)
		if in.path != old {
			p.push("move "+in.key(), map[string]string{old: "", in.path: in.text()})
		}
	}
}

func (p *people) rename() {
	if in := p.any(whole); in != nil && p.doubledOf(in.key()) == "" {
		p.next++
		delete(p.intents, in.key())
		to := *in
		to.renamedFrom, to.name = in.name, fmt.Sprintf("job%d", p.next)
		to.path = "intents/" + to.tenant + "/" + to.name + ".yaml"
		p.intents[to.key()] = &to
		p.push("rename "+in.key()+" to "+to.name, map[string]string{in.path: "", to.path: to.text()})
	}
}

func (p *people) breakIntent() {
	if in := p.any(whole); in != nil && p.doubledOf(in.key()) == "" {
		in.broken = true
		p.push("break "+in.path, map[string]string{in.path: in.text()})
	}
}

// breakOther makes a tenant's, a cluster's or the fleet's file unreadable: its
// last good version holds.
func (p *people) breakOther() {
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		if !strings.HasPrefix(path, "intents/") && p.broken[path] == "" {
			paths = append(paths, path)
		}
	}
	if len(paths) > 0 {
		path := paths[p.s.rng.IntN(len(paths))]
		p.broken[path] = p.files[path]
		p.push("break "+path, map[string]string{path: "kind: [nonsense\n"})
	}
}

func (p *people) double() {
	if in := p.any(whole); in != nil && p.doubledOf(in.key()) == "" {
		path := "intents/" + in.tenant + "/again-" + in.name + ".yaml"
		p.doubled[path] = in.key()
		p.push("name "+in.key()+" twice", map[string]string{path: in.text()})
	}
}

func (p *people) doubledOf(key string) string {
	for _, path := range slices.Sorted(maps.Keys(p.doubled)) {
		if p.doubled[path] == key {
			return path
		}
	}
	return ""
}

// empty is a bad merge: all intents are gone until somebody notices.
func (p *people) empty() {
	if p.emptied != nil || len(p.intents) == 0 || len(p.doubled) > 0 {
		return
	}
	files := map[string]string{}
	for _, in := range p.intents {
		files[in.path] = ""
	}
	p.emptied, p.intents = p.intents, map[string]*intent{}
	p.push("a bad merge empties intents", files)
	p.s.after(span(p.s.rng, 20*time.Second, 5*time.Minute), p.restore)
}

func (p *people) restore() {
	if p.emptied == nil {
		return
	}
	files := map[string]string{}
	for key, in := range p.emptied {
		if p.intents[key] == nil {
			p.intents[key] = in
			files[in.path] = in.text()
		}
	}
	p.emptied = nil
	p.push("revert the bad merge", files)
}

// close takes a provider out of the market, or opens it again: cordoned,
// drained by some time, or its file removed.
func (p *people) close() {
	i := p.s.rng.IntN(p.s.knobs.providers)
	name := providerName(i)
	path := "clusters/" + name + ".yaml"
	if p.broken[path] != "" {
		return
	}
	if p.closed[name] != "" {
		delete(p.closed, name)
		p.push("open "+name, map[string]string{path: p.providerText(i)})
		return
	}
	switch p.s.rng.IntN(3) {
	case 0:
		p.closed[name] = "  cordon: true\n"
	case 1:
		p.closed[name] = "  drain: " + p.s.wall().Add(span(p.s.rng, 10*time.Second, 5*time.Minute)).Format(time.RFC3339) + "\n"
	default:
		p.closed[name] = "gone"
		p.push("remove cluster "+name, map[string]string{path: ""})
		return
	}
	p.push("close "+name+": "+strings.TrimSpace(p.closed[name]), map[string]string{path: p.providerText(i)})
}

// repair mends everything that is broken.
func (p *people) repair() {
	files := map[string]string{}
	for _, in := range p.intents {
		if in.broken {
			in.broken = false
			files[in.path] = in.text()
		}
	}
	for path := range p.doubled {
		files[path] = ""
	}
	p.sweep(files)
	maps.Copy(files, p.broken)
	p.broken, p.doubled = map[string]string{}, map[string]string{}
	if len(files) > 0 {
		p.push("repair", files)
	}
}
