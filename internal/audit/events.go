package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Event is one thing that was decided, or seen, of one contract.
type Event struct {
	// At is the round's time, Commit the ledger's commit.
	At     v1alpha1.Time `json:"at"`
	Commit string        `json:"commit"`
	// What happened: a phase, `resized`, `left` (the tree) or `sla` (was broken).
	What     string `json:"what"`
	Tenant   string `json:"tenant"`
	Intent   string `json:"intent"`
	Contract string `json:"contract"`
	// Provider and Flavor that give, Consumer where it appears.
	Provider string `json:"provider"`
	Flavor   string `json:"flavor"`
	Consumer string `json:"consumer"`
	// AskedBy is the author of the intent, Inputs the commit that was acted on,
	// Change the one that last changed the intent's file, MergedBy its committer
	// where that is another person, ApprovedBy its approvals' trailers.
	AskedBy    string   `json:"askedBy,omitempty"`
	Inputs     string   `json:"inputs,omitempty"`
	Change     string   `json:"change,omitempty"`
	MergedBy   string   `json:"mergedBy,omitempty"`
	ApprovedBy []string `json:"approvedBy,omitempty"`
	// Why in words.
	Why string `json:"why,omitempty"`
	// Hourly price now, Cost since it was reserved, both in Currency.
	Hourly   v1alpha1.Decimal `json:"hourly"`
	Cost     v1alpha1.Decimal `json:"cost"`
	Currency string           `json:"currency"`
}

// people are the trailers by which approvals are told.
var people = []string{"Approved-by", "Reviewed-by", "Acked-by"}

// recorder walks a ledger's line without judging it.
type recorder struct {
	*reader
	in   *inputs
	root *trust.Root
	books
	state  *state
	labels map[string]map[string]string // of intents, by directory
	fn     func(c *Commit, at v1alpha1.Time, d *delta) error
}

// record calls fn for each commit that changes the ledger, oldest first, foreign
// ones too: what they wrote is what the next stands on.
func (r *recorder) record(ctx context.Context, o Options) error {
	var err error
	r.root = o.Root
	if err = r.takeOffers(o.Offers); err != nil {
		return err
	}
	if r.in, err = newInputs(ctx, r.reader, &o); err != nil {
		return err
	}
	line, err := newGraph(r.reader).line(ctx, o.Ledger, o.From)
	if err != nil {
		return err
	}
	for i, c := range line {
		if o.Progress != nil {
			o.Progress(i, len(line))
		}
		var from tree.Hash
		if i > 0 {
			from = line[i-1].Tree
		} else if !c.From.IsZero() {
			parent, err := r.commit(c.From)
			if err != nil {
				return err
			}
			from = parent.Tree
			before, err := r.changes(tree.Hash{}, from)
			if err != nil {
				return err
			}
			if _, err := r.take(r.reader, before); err != nil {
				return err
			}
		}
		if err := r.step(ctx, c, from); err != nil {
			return fmt.Errorf("read commit %s: %w", c.Hash.Short(), err)
		}
	}
	return nil
}

func (r *recorder) step(ctx context.Context, c *Commit, from tree.Hash) error {
	changes, err := r.changes(from, c.Tree)
	if err != nil || len(changes) == 0 {
		return err
	}
	if c, err = r.asOffered(c, from); err != nil {
		return err
	}
	if r.root.Signed() && c.Trailer(gitrepo.RootTrailer) != "" {
		if err := r.underRoot(c); err != nil {
			return err
		}
	}
	s, _, err := r.in.acted(ctx, c)
	if err != nil {
		return err
	}
	if c.Trailer("Inputs") != "" {
		r.state = s
	}
	d, err := r.take(r.reader, changes)
	if err != nil || r.state == nil {
		return err
	}
	at := v1alpha1.TimeOf(c.Committer.When)
	if now, err := time.Parse(time.RFC3339, c.Trailer("Now")); err == nil {
		at = v1alpha1.TimeOf(now)
	}
	return r.fn(c, at, d)
}

// underRoot holds the inputs to the trust root from a commit on that says so and
// that a key of the root signed.
func (r *recorder) underRoot(c *Commit) error {
	of, err := ringOf(r.root.Ledger(nil))
	if err != nil {
		return fmt.Errorf("trust root: %w", err)
	}
	raw, err := r.h.Commit(c.proof())
	if err != nil {
		return fmt.Errorf("read commit %s: %w", c.Hash.Short(), err)
	}
	if _, err := of.keys.SignerOf(raw, c.Committer.When); err == nil {
		r.in.hold(r.root)
	}
	return nil
}

// Log tells what was decided of every contract, oldest first.
func Log(ctx context.Context, h History, o Options, fn func(Event) error) error {
	rd := newReader(h)
	r := &recorder{reader: rd, books: newBooks()}
	up := map[string]*uptime{}
	r.fn = func(c *Commit, at v1alpha1.Time, d *delta) error {
		for _, p := range d.contracts {
			for _, e := range r.events(c, at, p, up) {
				if err := fn(e); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return r.record(ctx, o)
}

// events are what a commit tells of one contract.
func (r *recorder) events(c *Commit, at v1alpha1.Time, p pair, up map[string]*uptime) []Event {
	is := p.After
	if is == nil {
		is = p.Before
	}
	e := Event{
		At: at, Commit: c.Hash.String(), Tenant: is.Metadata.Namespace, Intent: is.Spec.Intent.Name, Contract: is.Metadata.Name,
		Provider: is.Spec.Provider, Flavor: is.Spec.Flavor, Consumer: is.Spec.Consumer, AskedBy: is.Spec.Intent.Author, Inputs: is.Spec.Intent.Commit,
		Hourly: is.Spec.Price.Hourly, Cost: r.state.books.Accrued(is, at), Currency: is.Spec.Price.Currency,
	}
	if by := r.in.authors[is.Spec.Intent.Path]; by != nil {
		e.Change = by.Hash.String()
		if e.AskedBy == "" {
			e.AskedBy = by.Author.String()
		}
		if by.Committer.String() != by.Author.String() {
			e.MergedBy = by.Committer.String()
		}
		for _, key := range people {
			e.ApprovedBy = append(e.ApprovedBy, gitobj.Trailers(by.Message, key)...)
		}
	}
	var out []Event
	tell := func(what, why string) {
		one := e
		one.What, one.Why = what, why
		out = append(out, one)
	}
	switch {
	case p.After == nil:
		tell("left", "ended "+stamp(is.Status.Since.Time)+", kept for retention.ended")
	case p.Before == nil:
		tell(string(is.Status.Phase), placed(is))
	case p.Before.Status.Phase != is.Status.Phase || ledger.ReasonOf(p.Before) != ledger.ReasonOf(is):
		tell(string(is.Status.Phase), is.Status.Why())
	case !p.Before.Spec.Resources.Equal(is.Spec.Resources):
		tell("resized", "the intent changed")
	}
	if why := r.broken(at, p, up); why != "" {
		tell("sla", why)
	}
	return out
}

// placed says why a contract is where it is.
func placed(c *v1alpha1.Contract) string {
	d := c.Decision
	parts := []string{fmt.Sprintf("score %.2f of %d offers", d.Score, d.Considered)}
	if len(d.Rejected) > 0 {
		var all []string
		for _, name := range sortedKeys(d.Rejected) {
			all = append(all, fmt.Sprintf("%d %s", d.Rejected[name], name))
		}
		parts = append(parts, "rejected: "+strings.Join(all, ", "))
	}
	if len(d.RunnersUp) > 0 {
		n := d.RunnersUp[0]
		parts = append(parts, fmt.Sprintf("before %s (%.2f, %s/h)", n.Flavor, n.Score, n.Hourly))
	}
	if d.Dearest != nil && d.Dearest.Hourly.Cmp(c.Spec.Price.Hourly) > 0 {
		parts = append(parts, fmt.Sprintf("the most expensive that fitted: %s (%s/h)", d.Dearest.Flavor, d.Dearest.Hourly))
	}
	if len(d.Displaced) > 0 {
		parts = append(parts, "displaces "+strings.Join(d.Displaced, ", "))
	}
	return strings.Join(parts, "; ")
}

// uptime is how long a contract was usable, and whether its sla was told broken.
type uptime struct {
	ledger.Uptime
	told bool
}

// broken is how a contract breaks its intent's sla with this step, "" when it
// does not, or did before. Usable is Active; time as Degraded counts against
// availability, and until it is usable against maxTimeToActive.
func (r *recorder) broken(at v1alpha1.Time, p pair, up map[string]*uptime) string {
	if p.After == nil {
		return ""
	}
	name := p.After.Metadata.Name
	u := up[name]
	if u == nil {
		u = &uptime{}
		up[name] = u
	}
	phase := p.After.Status.Phase
	first := u.Step(phase, at)
	it := r.state.fleet.Intent(p.After.Metadata.Namespace, p.After.Spec.Intent.Name)
	if it == nil || it.Spec.SLA == nil || u.told {
		return ""
	}
	sla := it.Spec.SLA
	took := at.Sub(p.After.Spec.Term.Start.Time)
	if most := sla.MaxTimeToActive.Duration; most > 0 && took > most && (first || u.Since.IsZero() && (phase.Charged() || ledger.Ended(phase))) {
		u.told = true
		return fmt.Sprintf("SLABroken: not usable within %s: it took %s", most, took)
	}
	why := u.Short(sla)
	u.told = why != ""
	return why
}
