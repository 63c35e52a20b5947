package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// How the API server is asked whether it is there. Watches alone do not tell:
// one that hears nothing looks like a cluster in which nothing happens.
const (
	sightInterval = 5 * time.Second
	sightTimeout  = 3 * time.Second
	// sightMisses in a row are an outage: nothing new is sold of a cluster of
	// which nobody knows what runs there, and which could not grant a slice.
	sightMisses = 2
)

// sight knows whether the agent still sees its cluster.
type sight struct {
	ask   func(context.Context) error
	log   *slog.Logger
	blind atomic.Bool
}

// newSight asks /readyz of the cluster's API server.
func newSight(config *rest.Config, log *slog.Logger) (*sight, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &sight{log: log, ask: func(ctx context.Context) error {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	}}, nil
}

// lost reports whether the cluster is out of sight.
func (s *sight) lost() bool { return s.blind.Load() }

// watch asks again and again until the context ends, and calls changed when
// sight is lost or comes back.
func (s *sight) watch(ctx context.Context, changed func()) {
	ticker := time.NewTicker(sightInterval)
	defer ticker.Stop()
	misses := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			misses = 0
		} else {
			misses++
		}
		blind := misses >= sightMisses
		if s.blind.Swap(blind) == blind {
			continue
		}
		if blind {
			s.log.Warn("the cluster is out of sight: its flavors are cordoned", "error", err)
		} else {
			s.log.Info("the cluster is in sight again")
		}
		changed()
	}
}

// once asks within its own time, which a server that hangs would not keep.
func (s *sight) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sightTimeout, errNoAnswer)
	defer cancel()
	err := s.ask(ctx)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("ask the API server whether it is ready: %w", err)
}

var errNoAnswer = fmt.Errorf("no answer within %s", sightTimeout)
