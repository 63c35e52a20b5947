package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/redirects"
)

// namespaceFile is where Kubernetes tells a pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnCluster is the cluster and the namespace that this process runs in; nil
// outside of one.
func OwnCluster() (*rest.Config, string, error) {
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
	config.Wrap(redirects.Refuse)
	return config, strings.TrimSpace(string(namespace)), nil
}

// clockEvery is how often the API server is asked for the time.
const clockEvery = 30 * time.Second

// HearAPIServer tells what the API server of the daemon's own cluster says the time
// is, and how long it took to say so, until the context ends. One that does not
// answer says nothing.
func HearAPIServer(ctx context.Context, config *rest.Config, heard func(at time.Time, took time.Duration)) error {
	config = rest.CopyConfig(config)
	config.Timeout = 10 * time.Second
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("ask the API server for the time: %w", err)
	}
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		askTime(ctx, client, strings.TrimSuffix(config.Host, "/")+"/version", heard)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func askTime(ctx context.Context, client *http.Client, url string, heard func(time.Time, time.Duration)) {
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
		heard(at, took)
	}
}
