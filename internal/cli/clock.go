package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/reconciler/clock"
)

// clockEvery is how often the API server is asked for the time, and how often
// the holder of a Lease looks whether its own is right.
const clockEvery = 30 * time.Second

// The names under which servers stand in messages.
const (
	gitServer = "git server"
	apiServer = "API server"
)

// hearAPIServer tells a check what the API server of the daemon's own cluster
// says the time is, until the context ends. One that does not answer says nothing.
func hearAPIServer(ctx context.Context, config *rest.Config, check *clock.Check) error {
	config = rest.CopyConfig(config)
	config.Timeout = 10 * time.Second
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("ask the API server for the time: %w", err)
	}
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		askTime(ctx, client, strings.TrimSuffix(config.Host, "/")+"/version", check)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func askTime(ctx context.Context, client *http.Client, url string, check *clock.Check) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	asked := time.Now()
	answer, err := client.Do(r)
	if err != nil {
		return
	}
	took := time.Since(asked)
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
	_ = answer.Body.Close() // only the header matters
	if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		check.Heard(apiServer, at, took)
	}
}
