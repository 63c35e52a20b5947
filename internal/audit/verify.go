package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit/copied"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Options say what Verify looks at.
type Options struct {
	// Ledger and Inputs are the heads of both branches; they may be one.
	Ledger, Inputs tree.Hash
	// Offers are commits of ours that people may have merged by squash or rebase:
	// the heads of our pull requests. Without them such a merge is a foreign edit.
	Offers []tree.Hash
	// From is a commit that is taken as it stands; zero: the first.
	From tree.Hash
	// Root is what is trusted before anything is read; nil: what the repository
	// says of itself.
	Root *trust.Root
	// Branch of the ledger, as its commits name it; "": not compared.
	Branch string
	// Known are commits of the ledger that have stood, and Witness is one that
	// somebody kept (nil: nobody): the ledger holds each of them.
	Known   []Known
	Witness *Witness
	// AcceptRewrite are commits that an operator has accepted: of the inputs, though
	// they do not descend from what was acted on before; of the ledger, though it
	// does not hold them any more.
	AcceptRewrite []tree.Hash
	// Bounds of a commit's tree, as the daemon holds them. Default: tree.DefaultBounds.
	Bounds tree.Bounds
	// All goes on after the first violation.
	All bool
	// Progress is told how many commits are done of how many; may be nil.
	Progress func(done, all int)
}

// Violation is a rule that a commit breaks.
type Violation struct {
	// Commit that breaks it.
	Commit string `json:"commit"`
	// Path of the file; empty when it is the commit's own.
	Path string `json:"path,omitempty"`
	// Rule by its name in the package comment.
	Rule string `json:"rule"`
	// Message says what is wrong, with figures.
	Message string `json:"message"`
	// Undone is the daemon's commit that put back what another account's commit had
	// changed, all of it; empty: none has.
	Undone string `json:"undone,omitempty"`
}

// String is a violation in one line.
func (v Violation) String() string {
	where := v.Commit
	if v.Path != "" {
		where += " " + v.Path
	}
	return where + ": " + v.Rule + ": " + v.Message
}

// Report is what Verify found.
type Report struct {
	// Head is the ledger's commit up to which was looked.
	Head string `json:"head"`
	// Commits of the ledger's line, Decisions those of them that changed the ledger.
	Commits   int `json:"commits"`
	Decisions int `json:"decisions"`
	// Contracts that were ever made.
	Contracts int `json:"contracts"`
	// Fleet and Seq by the newest commit that says so.
	Fleet string `json:"fleet,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
	// From is the commit that was taken as it stands.
	From string `json:"from,omitempty"`
	// BeforeRoot are decisions from before the first one that a key of the trust
	// root signed: they are judged by what the repository said of itself then.
	BeforeRoot int `json:"beforeRoot,omitempty"`
	// Rooted: a trust root was given, and one of its keys has signed.
	Rooted bool `json:"rooted"`
	// Dropped are heads that an operator let go of, as signed commits say.
	Dropped []Dropped `json:"dropped,omitempty"`
	// Notes are what was not judged, and why.
	Notes []Note `json:"notes,omitempty"`
	// Signers whose signature made commits the daemon's, Unsigned the commits that
	// are taken for the daemon's by the committer's address alone. So are those
	// NotJudged, which have a signature: no key is known to judge them by.
	Signers   []Signed  `json:"signers"`
	Unsigned  int       `json:"unsigned"`
	NotJudged int       `json:"notJudged,omitempty"`
	last      tree.Hash // the newest commit of ours
	// Incidents are commits of other accounts that the daemon has undone since. What
	// they broke is among the violations.
	Incidents []Incident `json:"incidents,omitempty"`
	// Violations in the order of history; without All those that were undone, and at
	// most those of one commit more.
	Violations []Violation `json:"violations"`
}

// Note is something that was not judged.
type Note struct {
	// Commit is the first of so many that it is about: none of the trust root's.
	Commit  string `json:"commit"`
	Commits int    `json:"commits"`
	// Message says what, and why not.
	Message string `json:"message"`
	// Unknown: decisions or manifests are of a number that this program does not
	// know, so that part of the commit was not judged.
	Unknown bool `json:"unknown,omitempty"`
}

// verifier walks the line.
type verifier struct {
	*reader
	graph   *graph
	root    *trust.Root
	branch  string
	numbers numbers
	// cut: the line begins somewhere, and not with the first commit.
	cut    bool
	in     *inputs
	report Report
	// The ledger as it stands at the commit before.
	books
	// signers in force, and all who ever were.
	signers signers
	// by is the key that signed the commit being judged, empty for none.
	by   string
	ever []gitrepo.Key
	// made is when the newest commit of ours was made, now the latest time of a
	// round; recorded: one of them had a record.
	made, now time.Time
	recorded  bool
	// edited is what was in files before others changed them, by path; edits are the
	// commits that did, to which so many (covered) of the violations belong.
	edited  map[string]tree.Entry
	edits   []*edit
	covered int
	c       *Commit
	// gone are commits that acted on inputs which are not on their branch. One that
	// follows may name these as let go of.
	gone []gone
	// came is the round of the newest commit, with what its commits so far have
	// changed.
	came round
}

// Verify derives every commit of a ledger's history again. The error is one of
// reading; what is wrong with the history is in the report.
func Verify(ctx context.Context, h History, o Options) (Report, error) {
	r := newReader(h)
	if o.Bounds != (tree.Bounds{}) {
		r.vetter = tree.NewVetter(o.Bounds)
	}
	v := &verifier{
		reader: r, graph: newGraph(r), root: o.Root, branch: o.Branch, edited: map[string]tree.Entry{}, books: newBooks(),
	}
	v.report = Report{Head: o.Ledger.String(), Signers: []Signed{}, Violations: []Violation{}}
	var err error
	if err = r.takeOffers(o.Offers); err != nil {
		return v.report, err
	}
	if v.in, err = newInputs(ctx, r, &o); err != nil {
		return v.report, err
	}
	line, err := v.graph.line(ctx, o.Ledger, o.From)
	if err != nil {
		return v.report, err
	}
	if !o.From.IsZero() {
		v.cut, v.report.From = true, o.From.String()
		if err := v.begin(ctx, o.From); err != nil {
			return v.report, err
		}
	}
	for i, c := range line {
		if err := ctx.Err(); err != nil {
			return v.report, err
		}
		if o.Progress != nil {
			o.Progress(i, len(line))
		}
		v.report.Commits++
		if err := v.step(ctx, c); err != nil {
			return v.report, fmt.Errorf("verify commit %s: %w", c.Hash.Short(), err)
		}
		if len(v.report.Violations) > v.covered && !o.All {
			break
		}
	}
	if !o.All {
		v.report.first()
	}
	err = v.end(ctx, o, v.report.Commits == len(line))
	return v.report, err
}

// end says what held, and whether the ledger is all of what is known to have
// stood. whole: each commit was judged.
func (v *verifier) end(ctx context.Context, o Options, whole bool) error {
	v.report.Fleet, v.report.Seq, v.report.Rooted = v.numbers.fleet, v.numbers.Seq, v.signers.rooted
	v.c = &Commit{Hash: o.Ledger}
	for _, u := range v.root.Unknown(func(h tree.Hash) bool { _, err := v.stored(h); return err == nil }, false) {
		v.report.Notes = append(v.report.Notes, Note{Commit: o.Ledger.String(), Message: v.root.File + ":" + u.String()})
	}
	for _, g := range v.gone {
		if let, err := v.in.letGo(ctx, g.inputs, o.Inputs); err != nil {
			return err
		} else if !let {
			v.report.Violations = append(v.report.Violations, g.Violation)
		}
	}
	if v.strict() && whole && !v.signers.rooted {
		v.fault("", "signature", "no commit is signed by a key of the trust root")
	}
	return v.known(ctx, o, whole)
}

// note counts a commit to what was not judged.
func (v *verifier) note(format string, args ...any) {
	said := fmt.Sprintf(format, args...)
	for i := range v.report.Notes {
		if v.report.Notes[i].Message == said {
			v.report.Notes[i].Commits++
			return
		}
	}
	v.report.Notes = append(v.report.Notes, Note{Commit: v.c.Hash.String(), Commits: 1, Message: said})
}

// unknown notes a commit of which a part could not be judged.
func (v *verifier) unknown(format string, args ...any) {
	v.note(format, args...)
	said := fmt.Sprintf(format, args...)
	for i := range v.report.Notes {
		v.report.Notes[i].Unknown = v.report.Notes[i].Unknown || v.report.Notes[i].Message == said
	}
}

// Unjudged are the notes of commits of which a part was made by numbers that this
// program does not know: whatever else holds, those parts were not judged.
func (r *Report) Unjudged() []Note {
	return slices.DeleteFunc(slices.Clone(r.Notes), func(n Note) bool { return !n.Unknown })
}

func (v *verifier) fault(path, rule, format string, args ...any) {
	v.report.Violations = append(v.report.Violations, Violation{v.c.Hash.String(), path, rule, fmt.Sprintf(format, args...), ""})
}

// step judges one commit.
func (v *verifier) step(ctx context.Context, c *Commit) error {
	v.c, v.by = c, ""
	begin := len(v.report.Violations)
	parent := &Commit{}
	if !c.From.IsZero() {
		var err error
		if parent, err = v.commit(c.From); err != nil {
			return err
		}
	}
	if b := c.Broken; b != nil {
		v.fault(b.Path, "tree", "its tree is broken: %s; what stood before stays in force", b.Why)
	}
	changes, err := v.changes(parent.Tree, c.Tree)
	if err != nil || len(changes) == 0 && len(c.dropped) == 0 && c.Trailer("Ledger") == "" {
		v.edit(begin, nil)
		return err
	}
	v.report.Decisions++
	if v.c, err = v.asOffered(c, parent.Tree); err != nil {
		return err
	}
	if err := v.underRoot(ctx); err != nil {
		return err
	}
	if err := v.letGo(ctx); err != nil {
		return err
	}
	before := v.in.last
	s, sound, err := v.acted(ctx)
	if err != nil {
		return err
	}
	own, err := v.ours(ctx, s, sound)
	if err != nil {
		return err
	}
	if !own {
		v.in.disbelieve(before)
		return v.foreign(begin, changes)
	}
	v.numbered(s)
	v.ruled()
	v.report.last = c.Hash
	if is := v.c.Committer.When; is.Before(v.made) {
		v.fault("", "trailers", "made %s, before the daemon's commit that it follows (%s)", stamp(is), stamp(v.made))
	} else {
		v.made = is
	}
	if err := v.listed(changes); err != nil {
		return err
	}
	plan := c.Trailer("Plan")
	if plan == "undo" {
		defer v.settle()
	} else if err := v.sourcesOf(s, changes); err != nil {
		return err
	}
	if len(changes) == 0 || notDecided[plan] {
		v.plain(s != nil)
	}
	switch {
	case len(changes) == 0:
		return nil
	case plan == "undo":
		return v.undone(changes)
	case plan == "sweep":
		return v.swept(changes)
	case plan == "policies":
		return v.admitted(s, changes)
	case plan == "render":
		return v.renewed(s, changes)
	case plan == "set-aside":
		return v.alone(changes, setAsidePath, "the list of what is set aside")
	case plan == "sources":
		return v.alone(changes, v1alpha1.SourcesRoot, "copies of sources")
	}
	return v.decided(s, changes)
}

// acted is the state of the inputs that a commit names, nil when it names none
// that can be, and whether it may be acted on.
func (v *verifier) acted(ctx context.Context) (s *state, sound bool, err error) {
	s, fault, err := v.in.acted(ctx, v.c)
	if h, herr := tree.ParseHash(v.c.Trailer("Inputs")); herr == nil && fault == v.in.offBranch(h) {
		v.gone = append(v.gone, gone{Violation{v.c.Hash.String(), "", "inputs", fault, ""}, h})
	} else if fault != "" {
		v.fault("", "inputs", "%s", fault)
	}
	return s, fault == "", err
}

// sourcesOf judges what a commit does to the copies of sources.
func (v *verifier) sourcesOf(s *state, changes []change) error {
	c := copied.Commit{After: v.tree(v.c.Tree), Said: gitobj.Trailers(v.c.Message, sourced.Trailer)}
	for _, ch := range changes {
		c.Changed = append(c.Changed, ch.path)
	}
	if s != nil {
		c.Policy = s.fleet.Policy
	}
	faults, err := copied.Judge(c)
	for _, f := range faults {
		v.fault(f.Path, "source", "%s", f.Why)
	}
	return err
}

// swept takes requests out, and nothing else.
func (v *verifier) swept(changes []change) error {
	for _, ch := range changes {
		if !strings.HasPrefix(ch.path, ledger.RequestsRoot+"/") || !ch.after.Hash.IsZero() {
			v.fault(ch.path, "trailers", "changed by a commit that only takes requests out")
		}
	}
	_, err := v.take(v.reader, changes)
	return err
}

// admitted makes policies what a Cluster file of the inputs says, and nothing
// else.
func (v *verifier) admitted(s *state, changes []change) error {
	want := map[string][]byte{}
	if s != nil {
		for name, c := range s.fleet.Clusters {
			maps.Copy(want, manifests.Policies(name, c, v.c.Trailer("Fleet")))
		}
	}
	compared := v.compared()
	for _, ch := range changes {
		content, known := want[ch.path]
		switch {
		case s == nil: // said already: nobody knows what it acted on
		case !known || ch.before.Hash.IsZero():
			v.fault(ch.path, "trailers", "changed by a commit that only brings policies up to date")
		case !compared: // noted
		case tree.BlobHash(content) != ch.after.Hash && !v.older(s, ch.path, ch.after.Hash):
			v.fault(ch.path, "manifests", "differs from what the Cluster file renders to: %s", v.difference(ch.after.Hash, content))
		}
	}
	_, err := v.take(v.reader, changes)
	return err
}

// decided judges a commit that carries decisions.
func (v *verifier) decided(s *state, changes []change) error {
	digests := map[string]tree.Hash{}
	for _, ch := range changes {
		if strings.HasPrefix(ch.path, ledger.Root+"/") {
			digests[ch.path] = ch.after.Hash
		}
		delete(v.edited, ch.path)
	}
	if plan, is := v.c.Trailer("Plan"), ledger.Digest(digests); plan != is {
		v.fault("", "plan", "Plan says %s, what it writes is %s", plan, is)
	}
	at := v.trailers(s != nil)
	d, err := v.take(v.reader, changes)
	if err != nil {
		return err
	}
	for _, bad := range d.unreadable {
		v.fault(bad.path, "readable", "%s", bad.err)
	}
	v.lines(d)
	v.round(d)
	v.said(changes, d)
	if s == nil {
		return nil
	}
	for _, p := range d.contracts {
		if p.Before == nil {
			v.report.Contracts++
		}
		if err := v.contract(s, at, p); err != nil {
			return err
		}
	}
	if err := v.requested(d); err != nil {
		return err
	}
	v.sold(at, d)
	v.retired(s, d)
	return v.rendered(s, changes, d)
}

// lines checks that the Contract trailers say just what the files do.
func (v *verifier) lines(d *delta) {
	said := map[string]string{}
	for _, line := range gitobj.Trailers(v.c.Message, "Contract") {
		name, step, _ := strings.Cut(line, " ")
		said[name] = step
	}
	for _, p := range d.contracts {
		if p.After == nil {
			continue
		}
		old := "-"
		if p.Before != nil {
			old = string(p.Before.Status.Phase)
		}
		step := fmt.Sprintf("%s -> %s", old, p.After.Status.Phase)
		if told := said[p.After.Metadata.Name]; told != step {
			v.fault(p.path, "trailers", "the contract goes %s, the commit's Contract line says %q", step, told)
		}
		delete(said, p.After.Metadata.Name)
	}
	for _, name := range sortedKeys(said) {
		_, to, _ := strings.Cut(said[name], "-> ")
		if c := v.byName[name]; c == nil || string(c.Status.Phase) != to {
			v.fault("", "trailers", "a Contract line says %s %s, and no file of the commit does", name, said[name])
		}
	}
}

// requested checks that contracts of the API's intents have their request.
func (v *verifier) requested(d *delta) error {
	for _, p := range d.contracts {
		if p.Before != nil || !strings.HasPrefix(p.After.Spec.Intent.Path, ledger.RequestsRoot+"/") {
			continue
		}
		e, err := v.find(v.c.Tree, p.After.Spec.Intent.Path)
		if err != nil {
			return err
		}
		if e.Hash.IsZero() {
			v.fault(p.path, "intent", "its request %s is not in the commit", p.After.Spec.Intent.Path)
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func short(h tree.Hash) string {
	if h.IsZero() {
		return "nothing"
	}
	return h.Short()
}
