package reconciler

import (
	"strconv"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
)

// newRequest begins a request for a commit of which the trailers depend on nothing
// else. plan is the word of the trailer Plan, market the zero hash where the commit
// decides nothing.
func (r *Reconciler) newRequest(in *inputs, market tree.Hash, plan string, now v1alpha1.Time) gitrepo.Request {
	req := bareRequest(in, now)
	req.Trailers = r.trailers(in, market, plan, now)
	return req
}

// bareRequest begins each request for a commit: from the head that was read, and
// accepting no more of the inputs than what was verified of them.
func bareRequest(in *inputs, now v1alpha1.Time) gitrepo.Request {
	return gitrepo.Request{Base: in.heads.Ledger.Commit.Hash, Inputs: in.heads.Inputs.Commit.Hash, Verified: in.clean, When: now.Time}
}

// trailers are those that stand once in each commit, whatever it does. Those that
// depend on the parent (Ledger, Root) are added where it is known, in gitrepo.
func (r *Reconciler) trailers(in *inputs, market tree.Hash, plan string, now v1alpha1.Time) []string {
	out := []string{
		"Inputs: " + in.heads.Inputs.Commit.Hash.String(),
		"Market: " + market.String(),
		"Plan: " + plan,
		"Now: " + now.UTC().Format(time.RFC3339),
		writers.RendererTrailer + ": " + strconv.Itoa(manifests.Renderer),
		replay.RulesTrailer + ": " + strconv.Itoa(planner.Rules), writers.FormatLine,
	}
	if r.opts.Replica != "" {
		out = append(out, writers.ReplicaTrailer+": "+r.opts.Replica)
	}
	// A build that no release stamped has nothing that could be looked up.
	if v := version.Released(); v != "" {
		out = append(out, "Version: "+v)
	}
	// From there it can be verified again what was acted on.
	if !in.clean.IsZero() && in.clean != in.heads.Inputs.Commit.Hash {
		out = append(out, "Verified: "+in.clean.String())
	}
	if id := r.opts.Root.ID(); id != "" {
		out = append(out, gitrepo.FleetTrailer+": "+id)
	}
	return append(out, r.traced.Trailers()...)
}
