package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/cli/observing"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
)

// awayError says that the remote could not be read at the start, and that the
// local copy does not know enough to go on.
type awayError struct{ err error }

func (e *awayError) Error() string { return e.err.Error() }
func (e *awayError) Unwrap() error { return e.err }

// firstPause and longestPause bound how long a start waits before it asks the
// remote again.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// patience is how long a start may ask the remote before its port is served.
const patience = 2 * time.Second

// awaitRepo waits until it is known which branch is the ledger. As long as the
// remote cannot be read, the operators' port says so: the daemon is alive and not
// ready. What the local copy knows is enough; then the loop itself waits.
func (o *runOptions) awaitRepo(ctx context.Context, log *slog.Logger) (err error) {
	if o.ledger != "" || o.url == "" {
		return nil
	}
	remote, err := gitrepo.Dial(o.url, o.auth)
	if err != nil {
		return err
	}
	var why atomic.Pointer[error]
	began := o.streams.Now()
	var stop func() error
	serve := func() error {
		if stop != nil {
			return nil
		}
		var err error
		stop, err = o.serveWaiting(ctx, log, func() error {
			if err := why.Load(); err != nil {
				return *err
			}
			return fmt.Errorf("starting: the fleet repo has not answered for %s", o.streams.Now().Sub(began).Round(time.Second))
		})
		return err
	}
	defer func() {
		if stop != nil {
			err = errors.Join(err, stop())
		}
	}()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		answered := make(chan error, 1)
		go func() {
			branch, err := ledgerBranch(ctx, remote, gitrepo.Options{
				Dir: o.stateDir, Inputs: o.inputs, Observer: &observing.Observer{Log: log},
				State: statefile.NewHealth(slog.New(slog.DiscardHandler)), // the daemon itself says it
			})
			o.named = branch
			answered <- err
		}()
		var asked error
		select {
		case asked = <-answered:
		case <-time.After(patience):
			if err := serve(); err != nil {
				return err
			}
			asked = <-answered
		}
		var away *awayError
		if !errors.As(asked, &away) || ctx.Err() != nil {
			return asked
		}
		log.Error("cannot read the fleet repo; the daemon waits and is not ready", "error", asked, "retryIn", pause)
		why.Store(&asked)
		if err := serve(); err != nil {
			return err
		}
		wait(ctx, pause)
	}
}

// serveWaiting serves the probes of the operators' port alone, until stop.
func (o *runOptions) serveWaiting(ctx context.Context, log *slog.Logger, why func() error) (stop func() error, err error) {
	port := server.Port{Name: "operators", Address: o.operators}
	waits := []server.Check{{Name: "fleet", Run: why}}
	handle := server.Operators{Metrics: server.NewMetrics(), Ready: waits, Agents: waits}
	if !onLoopback(o.operators) {
		if o.certPath == "" {
			return nil, usagef("--operators-address %s is not on the loopback interface and needs --cert-path for TLS", o.operators)
		}
		certs, err := pki.OpenFiles(o.certPath)
		if err != nil {
			return nil, err
		}
		// Which certificates are revoked stands in the repository: nobody is asked
		// for one, and the probes say yes or no.
		if handle.Guard, err = server.NewGuard(nil, new(server.Revocations), o.streams.Now, log); err != nil {
			return nil, err
		}
		port.TLS = server.ServerTLS(certs, log)
	}
	port.Handler = server.NewOperators(handle)
	servers, err := server.Listen(ctx, log, port)
	if err != nil {
		return nil, fmt.Errorf("wait for the fleet repo: %w", err)
	}
	running, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- servers.Run(running, time.Second) }()
	return func() error {
		end()
		return <-done
	}, nil
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
