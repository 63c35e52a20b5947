package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fleetbroker/fleetbroker/internal/reconciler/clock"
)

// speakerLease is the Lease of the daemon that speaks to people.
const speakerLease = "fleetbroker-speaker"

// speaker elects the one of several daemons in a cluster that speaks to people:
// that tells tenants, and posts on pull requests. All else is done by each of
// them. Outside of a cluster there is nobody to ask, and every daemon speaks.
type speaker struct {
	config    *rest.Config
	namespace string
	identity  string
	log       *slog.Logger
	leads     atomic.Bool
}

// newSpeaker makes one for the pod that this process runs in; nil outside of a
// cluster.
func newSpeaker(identity string, log *slog.Logger) (*speaker, error) {
	config, namespace, err := ownCluster()
	if err != nil || config == nil {
		return nil, err
	}
	return &speaker{config: config, namespace: namespace, identity: identity, log: log}, nil
}

// speaks reports whether this daemon is the one. Safe for any goroutine.
func (s *speaker) speaks() bool { return s == nil || s.leads.Load() }

// run takes part in the election until the context ends.
// A daemon whose clock is wrong gives the Lease up.
func (s *speaker) run(ctx context.Context, check *clock.Check) error {
	config := rest.CopyConfig(s.config)
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("elect who speaks to people: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: speakerLease, Namespace: s.namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: s.identity},
		},
		// The library's own.
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Name:            speakerLease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) {
				s.leads.Store(term.Err() == nil)
				s.log.Info("speaks to people: notifications and pull requests")
			},
			OnStoppedLeading: func() { s.leads.Store(false) },
			OnNewLeader: func(who string) {
				if who != s.identity {
					s.log.Info("another daemon speaks to people", "daemon", who)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("elect who speaks to people: %w", err)
	}
	for ctx.Err() == nil { // it ends when the Lease is lost
		if err := check.Err(); err != nil {
			s.log.Warn("does not stand for the Lease of who speaks to people", "error", err)
			wait(ctx, clockEvery)
			continue
		}
		term, end := context.WithCancel(ctx)
		go func() {
			for term.Err() == nil && check.Err() == nil {
				wait(term, time.Second)
			}
			end()
		}()
		elector.Run(term)
		end()
	}
	return nil
}

// wait lets time pass, or the context end.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// namespaceFile is where Kubernetes tells a pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownCluster is the cluster and the namespace that this process runs in; nil
// outside of one.
func ownCluster() (*rest.Config, string, error) {
	config, err := rest.InClusterConfig()
	// A pod without a mounted token has no way to ask either.
	if errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("use this pod's ServiceAccount: %w", err)
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil, "", fmt.Errorf("find this pod's namespace: %w", err)
	}
	return config, strings.TrimSpace(string(namespace)), nil
}
