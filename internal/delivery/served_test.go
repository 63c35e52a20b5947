package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// away is a cluster that nobody reaches. Each attempt takes its reason.
type away chan string

func (a away) RESTConfig(ctx context.Context, _ *v1alpha1.Cluster) (*rest.Config, error) {
	select {
	case why := <-a:
		return nil, errors.New(why)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Why a cluster is not served is logged once for each reason, not with each attempt,
// and so is that it is served again.
func TestWorker_LogsOnceWhyAClusterIsNotServed(t *testing.T) {
	clock, reasons := clocktesting.NewFakeClock(time.Now()), make(away)
	var log bytes.Buffer // written by the worker alone
	w := newWorker("rome", &Options{Clock: clock, Access: reasons, Log: slog.New(slog.NewTextHandler(&log, nil))}, func() {})
	ended := make(chan struct{})
	go func() { defer close(ended); w.run() }()
	for i, why := range []string{"read tcp 10.0.0.1:%d->10.0.0.2:6443: reset", "read tcp 10.0.0.1:%d->10.0.0.2:6443: reset", "refused", "refused", "refused", "read tcp 10.0.0.1:%d->10.0.0.2:6443: reset"} {
		if strings.Contains(why, "%") {
			why = fmt.Sprintf(why, 40000+i)
		}
		select {
		case reasons <- why:
		case <-time.After(time.Minute):
			t.Fatal("it is not tried again")
		}
		for !clock.HasWaiters() && i < 5 {
			select {
			case <-ended:
				t.Fatal("the worker ended")
			default:
			}
		}
		clock.Step(longPause)
	}
	w.stop()
	<-ended
	w.served()
	w.served()
	if got := strings.Count(log.String(), "cluster is not served"); got != 3 {
		t.Errorf("logged %d times, want 3:\n%s", got, log.String())
	}
	if got := strings.Count(log.String(), "cluster is served again"); got != 1 {
		t.Errorf("its end is logged %d times, want once:\n%s", got, log.String())
	}
}
