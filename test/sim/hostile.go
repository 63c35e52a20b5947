package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// evilStep is something that somebody does on purpose, now and then: every other
// seed has such people. They draw from a source of their own.
func (s *sim) evilStep() {
	if s.healed {
		return
	}
	p := s.providers[s.evil.IntN(len(s.providers))]
	switch s.evil.IntN(12) {
	case 0, 1, 2, 3:
		s.attackLedger()
	case 4:
		s.bomb()
	case 5:
		s.takeover()
	case 6:
		s.flood()
	case 7:
		s.unsignedRights()
	case 8:
		s.people.dated = span(s.evil, time.Hour, 400*24*time.Hour)
		s.people.create()
		s.people.dated = 0
		s.tried("future-dated commit", true) // checkClock holds each commit of ours
	case 9:
		s.brokenTree()
	case 10:
		p.forge()
	default:
		s.jump(s.daemons[s.evil.IntN(len(s.daemons))])
	}
	s.after(span(s.evil, 5*time.Second, 2*time.Minute), s.evilStep)
}

// evilName begins the names of intents that must never be placed.
const evilName = "evil"

// litter pushes files that nobody needs, until the next repair.
func (s *sim) litter(kind, why string, files map[string]string) {
	for path := range files {
		s.people.trash[path] = kind
	}
	s.people.push(why, files)
}

func (s *sim) evilPath() (tenant, name, path string) {
	s.evils++
	tenant = tenantName(s.evil.IntN(s.knobs.tenants))
	name = fmt.Sprintf("%s%d", evilName, s.evils)
	return tenant, name, "intents/" + tenant + "/" + name + ".yaml"
}

// bomb is a file whose aliases unfold to 10^9 values.
func (s *sim) bomb() {
	tenant, name, path := s.evilPath()
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: %s}\nspec:\n  a0: &a0 [x, x]\n", name, tenant)
	for i := range 9 {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	s.litter("bomb of aliases", "add a bomb", map[string]string{path: b.String()})
}

// takeover asks for the namespace of the system or of another tenant.
func (s *sim) takeover() {
	tenant, name, path := s.evilPath()
	target := "kube-system"
	if other := tenantName(s.evil.IntN(s.knobs.tenants)); other != tenant {
		target = other
	}
	text := fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: %s}\nspec:\n"+
		"  resources: {cpu: \"1\", memory: 1Gi, pods: \"10\", ephemeral-storage: 1Gi}\n"+
		"  offload: {namespaces: [{name: %s, namespaceMappingStrategy: SelectedName, remoteNamespaceName: %s}]}\n", name, tenant, tenant, target)
	s.litter("takeover of a namespace", "take "+target, map[string]string{path: text})
}

// flood is many intents at once that nothing fits.
func (s *sim) flood() {
	if s.flooded {
		return
	}
	s.flooded = true
	files := map[string]string{}
	for range 60 {
		tenant, name, path := s.evilPath()
		files[path] = fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: %s}\nspec:\n"+
			"  resources: {cpu: \"1\", memory: 1Gi, pods: \"10\", ephemeral-storage: 1Gi}\n  placement: {regions: [atlantis]}\n", name, tenant)
	}
	s.litter("flood of intents", "flood", files)
}

// unsignedRights is a cluster that somebody without the right adds to a signed
// fleet.
func (s *sim) unsignedRights() {
	if s.rooted == nil || s.people.headBroken {
		return
	}
	h, err := s.remote.Commit(s.people.inputs, s.people.person("Mallory"), "add a cluster\n", gitobj.Change{Puts: map[string][]byte{
		evilCluster: []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: evil}\nspec: {roles: [consumer]}\n"),
	}})
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	s.people.known[h] = s.people.reading()
	s.people.trash[evilCluster] = "unsigned rights"
	s.log("attack unsigned rights: %s", h.Short())
}

const evilCluster = "clusters/evil.yaml"

// brokenTree is a commit on the inputs that git fsck refuses. Whoever pushes next
// puts it right.
func (s *sim) brokenTree() {
	p := s.people
	if p.headBroken || p.inputs == p.ledger || s.stopped != nil {
		return
	}
	whole, err := s.remote.Tree(s.remote.Head(p.inputs))
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	entries, err := whole.Store.Dir(whole.Root)
	if err != nil || len(entries) == 0 {
		return
	}
	twice := append(slices.Clone(entries), entries[len(entries)-1]) // a name that stands twice
	set := gitobj.Set{}
	root := set.Add(gitobj.Tree, tree.EncodeDir(twice))
	h, err := s.remote.CommitTree(p.inputs, p.person("Mallory"), "a broken tree\n", set, root, nil)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	p.headBroken, p.wholeRoot = true, whole.Root
	p.known[h] = p.reading()
	s.log("attack broken tree: %s", h.Short())
	s.after(span(s.evil, 5*time.Second, time.Minute), p.unbreak)
}

// unbreak puts the last whole tree back.
func (p *people) unbreak() {
	if !p.headBroken {
		return
	}
	p.headBroken = false
	h, err := p.s.remote.CommitTree(p.inputs, p.person("Grace"), "put the tree right\n", gitobj.Set{}, p.wholeRoot, p.s.rooted.signs([]string{"fleet.yaml"}))
	if err != nil {
		p.s.fail("sim", "%v", err)
		return
	}
	p.known[h] = p.reading()
	p.s.log("team %s puts the tree right", h.Short())
	p.s.tried("broken tree", true) // what its commit said nothing of went on: checkCommit
}

// forge sends reports that no honest agent makes; each must be refused whole.
func (p *provider) forge() {
	s := p.s
	list := p.list()
	other := s.providers[s.evil.IntN(len(s.providers))]
	gen := wire.Generation{Epoch: p.epoch, N: p.n + 1}
	kind := "forged report"
	switch s.evil.IntN(5) {
	case 0:
		if other == p {
			return
		}
		list[0].Metadata.Namespace = other.name
	case 1:
		list[0].Spec.Capacity[v1alpha1.CPU] = v1alpha1.AmountOf(-1)
	case 2:
		list = append(list, list[0])
	case 3:
		list[0].Metadata.Name = "../" + list[0].Metadata.Name
	default:
		gen.Epoch = 1 << 63
	}
	for _, d := range s.daemons {
		if d.up {
			err := d.market.Report(p.name, gen, list, true)
			s.tried(kind, err != nil)
			if err == nil {
				s.fail("market", "%s takes a forged report of %s", d.name, p.name)
			}
		}
	}
}

// jump sets a daemon's clock a day ahead or back for a while.
func (s *sim) jump(d *daemon) {
	if d.jumped || !d.up {
		return
	}
	by := 24 * time.Hour
	if s.evil.IntN(2) == 0 {
		by = -by
	}
	d.jumped = true
	d.reset(by)
	s.log("%s: the clock jumps by %s", d.name, by)
	s.after(span(s.evil, 10*time.Second, 5*time.Minute), func() { d.unjump(by) })
}

func (d *daemon) unjump(by time.Duration) {
	if d.jumped {
		d.jumped = false
		d.reset(-by)
		d.s.log("%s: the clock is right again", d.name)
		d.s.tried("clock jump", true) // checkClock holds each commit meanwhile
	}
}

// reset sets a daemon's clock. A real one has readings that are monotonic, by
// which its market measures ages; here it is told when the clock is set.
func (d *daemon) reset(by time.Duration) {
	d.market.Snapshot()
	d.skew += by
	d.market.Snapshot()
}

// checkEvil holds that nothing hostile is placed, and that lies are not believed.
func (s *sim) checkEvil(c string, changes []change) {
	for _, ch := range changes {
		if ch.before == nil && strings.HasPrefix(ch.after.Spec.Intent.Name, evilName) {
			s.fail("hostile", "commit %s places %s of intent %s", c, ch.after.Metadata.Name, ch.after.Spec.Intent.Name)
		}
	}
}

// checkStranger holds after each round that a cluster which nobody signed is not
// the fleet's.
func (s *sim) checkStranger(d *daemon) {
	if v := d.loop.View(); v.Fleet != nil && v.Fleet.Clusters["evil"] != nil {
		s.fail("hostile", "%s takes cluster evil for the fleet's", d.name)
	}
}

// judgeHostile counts what became of hostile files.
func (s *sim) judgeHostile() {
	for _, kind := range s.people.swept {
		s.tried(kind, true) // none of it was acted on: checkEvil, checkStranger
	}
}

// sweep removes what hostile people left.
func (p *people) sweep(files map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(p.trash)) {
		files[path] = ""
		p.swept = append(p.swept, p.trash[path])
	}
	p.trash = map[string]string{}
}
