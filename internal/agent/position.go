package agent

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// leaseName is the Lease by which one of several agents speaks for the cluster.
const leaseName = "fleet-agent"

// annotationLedger, on that Lease, is the highest number of the ledger that the agents
// of the cluster were told: whoever speaks next does not go back behind it.
const annotationLedger = "fleetbroker.io/ledger-seq"

const (
	// keepEvery is how often the number is written at most.
	keepEvery = 2 * time.Second
	// keepTimeout bounds each call: an API server that hangs must not keep the agent
	// from hearing the brokers.
	keepTimeout = 5 * time.Second
)

// leases is what position needs of the API.
type leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// position keeps how far along the ledger the agent was told, over its restarts. What
// was told in the last keepEvery before a crash may be lost; the ledger's own words make
// up for it within a poll.
type position struct {
	leases  leases // nil keeps nothing: there is no Lease
	hearing *hearing
	now     func() time.Time
	log     *slog.Logger

	kept   uint64 // as it stands in the Lease
	failed bool   // and that was said
}

func newPosition(config *rest.Config, namespace string, h *hearing, log *slog.Logger) (*position, error) {
	p := &position{hearing: h, now: time.Now, log: log}
	if namespace == "" {
		return p, nil
	}
	config = rest.CopyConfig(config)
	config.Timeout = keepTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("keep the ledger's number: %w", err)
	}
	p.leases = client.CoordinationV1().Leases(namespace)
	return p, nil
}

// read takes over what an agent before this one was told. What cannot be read is not
// known: it is no reason not to begin.
func (p *position) read(ctx context.Context) {
	if p.leases == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	lease, err := p.leases.Get(ctx, leaseName, metav1.GetOptions{})
	switch {
	case errors.IsNotFound(err):
		return
	case err != nil:
		p.log.Warn("cannot read how far along the ledger the agent before was", "error", err)
		return
	}
	text := lease.Annotations[annotationLedger]
	if text == "" {
		return
	}
	seq, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		p.log.Warn("annotation of the Lease is no number of the ledger", "annotation", annotationLedger, "value", fmt.Sprintf("%.40q", text))
		return
	}
	p.kept = seq
	p.hearing.resume(seq, p.now())
}

// run writes the number after it has changed, until the context ends.
func (p *position) run(ctx context.Context) {
	if p.leases == nil {
		return
	}
	for ctx.Err() == nil {
		pause(ctx, keepEvery)
		if err := p.write(ctx); err != nil && ctx.Err() == nil {
			if !p.failed {
				p.log.Warn("cannot note how far along the ledger this agent is", "error", err)
			}
			p.failed = true
			continue
		}
		p.failed = false
	}
}

// write notes the number, if it is another.
func (p *position) write(ctx context.Context) error {
	seq := p.hearing.after()
	if p.leases == nil || seq == p.kept {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	lease, err := p.leases.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[annotationLedger] = strconv.FormatUint(seq, 10)
	if _, err := p.leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		if errors.IsConflict(err) { // the Lease was renewed just then: next time
			return nil
		}
		return err
	}
	p.kept = seq
	return nil
}
