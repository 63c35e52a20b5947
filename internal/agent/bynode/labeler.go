package bynode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// again is when a label that could not be written is tried again, and how long one call
// may take.
const again = 10 * time.Second

// Labeler puts their hashes on nodes. Labels stay on nodes that leave the offer.
type Labeler struct {
	client client.Client
	log    *slog.Logger
	want   atomic.Pointer[map[string]string]
	news   chan struct{}
	said   string // the last error that was logged
	lacked atomic.Bool
}

// NewLabeler writes through a client.
func NewLabeler(c client.Client, log *slog.Logger) *Labeler {
	return &Labeler{client: c, log: log, news: make(chan struct{}, 1)}
}

// Want is the hashes that nodes do not bear yet, by node. It does not block.
func (l *Labeler) Want(hashes map[string]string) {
	l.want.Store(&hashes)
	select {
	case l.news <- struct{}{}:
	default: // Run looks at the newest anyway
	}
}

// Lacks reports that the account may not do what is needed, unless it could not be asked
// (err). It is logged once.
func (l *Labeler) Lacks(need authorizationv1.ResourceAttributes, err error) {
	if err == nil && !l.lacked.Swap(true) {
		l.log.Warn("nodes are not reported one by one: pools are sold, whose GPUs may lie on nodes that are too small for a pod",
			"missing", need.Verb+" "+need.Resource, "remedy", "apply install/agent, or set --report-nodes=false")
	}
}

// Run labels nodes until the context ends. What cannot be written is tried again.
func (l *Labeler) Run(ctx context.Context) {
	retry := time.NewTicker(again)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.news:
		case <-retry.C:
		}
		if want := l.want.Load(); want != nil && l.label(ctx, *want) {
			l.want.CompareAndSwap(want, nil)
		}
	}
}

// label writes all that is wanted, and reports whether it could.
func (l *Labeler) label(ctx context.Context, want map[string]string) bool {
	done, failed := 0, error(nil)
	for _, node := range slices.Sorted(maps.Keys(want)) {
		call, cancel := context.WithTimeout(ctx, again)
		err := l.write(call, node, want[node])
		cancel()
		switch {
		case ctx.Err() != nil:
			return false
		case errors.IsNotFound(err): // the node is gone
		case err != nil:
			failed = err
		default:
			done++
		}
	}
	if text := fmt.Sprint(failed); failed != nil && text != l.said {
		l.log.Warn("cannot label nodes; they are not offered one by one", "error", failed, "remedy", "let the agent patch nodes: install/agent")
		l.said = text
	}
	if done > 0 {
		l.said = ""
		l.log.Info("nodes labelled", "nodes", done)
	}
	return failed == nil
}

func (l *Labeler) write(ctx context.Context, node, hash string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{v1alpha1.LabelNode: hash}}})
	if err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	err = l.client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	return nil
}
