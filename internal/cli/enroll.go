package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

const (
	// proposalsAnHour bounds the branches that agents make us create. A fleet
	// that grows faster merges clusters/ by hand.
	proposalsAnHour = 20
	// proposalRest is how long an agent that was proposed is not looked at
	// again: who deleted the branch has said no.
	proposalRest = 24 * time.Hour
	// Waits after a proposal that failed.
	proposalRetry, proposalRetryMax = time.Minute, time.Hour
	// proposalQueue bounds who waits to be proposed; the others ask again.
	proposalQueue = 16
)

// enroller proposes the files of clusters whose agents hold a certificate and
// are not in the fleet, where `enrollment: open` lets it. Admit only notes who
// asks; run, one at a time, writes.
type enroller struct {
	// open says whether the fleet wants proposals; why not, otherwise.
	open func() (bool, string)
	// propose makes the branch; gitrepo.Repo.Propose.
	propose func(context.Context, gitrepo.Proposal) (bool, error)
	now     func() time.Time
	log     *slog.Logger
	queue   chan knock
	pace    *rate.Limiter

	mu       sync.Mutex
	clusters map[string]*candidate
}

// knock is a cluster at the door, and what it is by what it sent.
type knock struct{ cluster, role string }

// candidate is a cluster that asked to be enrolled.
type candidate struct {
	proposed bool      // its branch exists
	waiting  bool      // in the queue
	failures int       // in a row
	next     time.Time // not to be proposed before
}

func newEnroller(open func() (bool, string), propose func(context.Context, gitrepo.Proposal) (bool, error), now func() time.Time, log *slog.Logger) *enroller {
	return &enroller{
		open: open, propose: propose, now: now, log: log,
		queue: make(chan knock, proposalQueue), pace: rate.NewLimiter(rate.Every(time.Hour/proposalsAnHour), proposalsAnHour),
		clusters: map[string]*candidate{},
	}
}

// enrollBranch is where a cluster is proposed.
func enrollBranch(cluster string) string { return "enroll/" + cluster }

// admit is asked about a cluster that is not in the fleet and says what
// becomes of it. It never lets one in: that is for who merges the branch. A
// cluster whose role is not known yet waits until it has reported.
func (e *enroller) admit(cluster, role string) *wire.Refusal {
	path := "clusters/" + cluster + ".yaml"
	if open, why := e.open(); !open {
		return refusal("NotEnrolled", "cluster %s is not in the fleet: %s", cluster, strings.ReplaceAll(why, "{file}", path))
	}
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.clusters[cluster]
	if c == nil {
		c = &candidate{}
		e.clusters[cluster] = c
	}
	if role != "" && !c.waiting && !now.Before(c.next) {
		select {
		case e.queue <- knock{cluster, role}:
			c.waiting = true
		default: // many at once; it asks again
		}
	}
	if c.proposed {
		return refusal("EnrollmentProposed", "cluster %s is not in the fleet yet: it is proposed as %s on branch %s, for a person to merge", cluster, path, enrollBranch(cluster))
	}
	return refusal("EnrollmentPending", "cluster %s is not in the fleet yet: it will be proposed as %s on branch %s, for a person to merge", cluster, path, enrollBranch(cluster))
}

func refusal(reason, format string, args ...any) *wire.Refusal {
	return &wire.Refusal{Status: http.StatusForbidden, Body: wire.Error{Error: fmt.Sprintf(format, args...), Reason: reason}}
}

// run proposes until the context ends.
func (e *enroller) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case k := <-e.queue:
			e.handle(ctx, k)
		}
	}
}

func (e *enroller) handle(ctx context.Context, k knock) {
	cluster, now := k.cluster, e.now()
	if !e.pace.AllowN(now, 1) {
		e.settle(cluster, func(c *candidate) { c.next = now.Add(proposalRetry) })
		e.log.Warn("too many clusters ask to be enrolled; this one waits", "cluster", cluster, "mostPerHour", proposalsAnHour)
		return
	}
	made, err := e.propose(ctx, gitrepo.Proposal{
		Branch:  enrollBranch(cluster),
		Puts:    map[string][]byte{"clusters/" + cluster + ".yaml": clusterFile(k)},
		Message: gitrepo.Message("", []string{"Enroll cluster " + cluster}, []string{"Enrollment: " + cluster}),
		When:    now,
	})
	if err != nil {
		e.settle(cluster, func(c *candidate) {
			c.next = now.Add(min(proposalRetry<<min(c.failures, 10), proposalRetryMax))
			c.failures++
		})
		e.log.Warn("a cluster could not be proposed; it is tried again", "cluster", cluster, "error", err)
		return
	}
	e.settle(cluster, func(c *candidate) { c.proposed, c.failures, c.next = true, 0, now.Add(proposalRest) })
	if made {
		e.log.Info("a cluster asks to be enrolled: look at its branch and merge it", "cluster", cluster, "branch", enrollBranch(cluster))
	}
}

func (e *enroller) settle(cluster string, change func(*candidate)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.clusters[cluster]
	c.waiting = false
	change(c)
}

// clusterFile is what is proposed: as little as makes the cluster what its
// agent reports, because nothing that the agent says of itself is known to be
// true. One that reports no flavor has nothing to sell: it consumes.
func clusterFile(k knock) []byte {
	then := "merging lets it sell."
	if k.role == v1alpha1.RoleConsumer {
		then = "it reports no\n# flavor, so that merging lets it consume, once it is reachable (access) and\n" +
			"# tenants name it. If it shall sell, label its nodes and add the role provider."
	}
	return fmt.Appendf(nil, `# An agent with a certificate of this fleet reports for this cluster, which is
# not in the fleet. Check its roles, Liqo's cluster id, where it is and what it
# costs; %s
# To keep it out, delete the branch, and revoke its certificate: fleetbroker pki
# revoke.
apiVersion: %s
kind: Cluster
metadata: {name: %q}
spec:
  roles: [%s]
  liqo: {clusterID: %q}
`, then, v1alpha1.APIVersion, k.cluster, k.role, k.cluster)
}

// enrollment is what the fleet says of clusters that are not in it.
func (d *daemon) enrollment() (open bool, why string) {
	v := d.loop.View()
	switch {
	case v.Fleet == nil:
		return false, "the fleet repo has not been read yet; try again"
	case v.Fleet.Policy.Enrollment != "open":
		return false, "add {file} to the fleet repo, or set enrollment: open in fleet.yaml to have it proposed"
	case d.shadow || v.Fleet.Policy.WriteBack.Mode == "none":
		return false, "this daemon writes nothing; add {file} to the fleet repo"
	}
	return true, ""
}
