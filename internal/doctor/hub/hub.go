package hub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/internal/api/redirects"
	"github.com/fleetbroker/fleetbroker/internal/doctor"
)

// EtcdHalfFull is the code of the finding that etcd uses half of its quota or more.
const EtcdHalfFull doctor.Code = "etcd-half-full"

// LinkStore is the link of findings about the market's store.
const LinkStore doctor.Link = "market store"

// Bounds of one look.
const (
	timeout    = 20 * time.Second
	maxMetrics = 64 << 20 // bytes; an API server with many kinds has some MiB
	maxLine    = 64 << 10
)

// sizes are the API server's metrics with the size of etcd's database in bytes: of
// Kubernetes 1.28 and newer, of 1.26 and 1.27, and of older ones.
var sizes = []string{"apiserver_storage_size_bytes", "apiserver_storage_db_total_size_in_bytes", "etcd_db_total_size_in_bytes"}

// Flags state which cluster to look at.
type Flags struct {
	kubeconfig string
	quota      string
}

// Register adds the flags.
func (f *Flags) Register(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "market-kubeconfig", "", "kubeconfig of the cluster with the market's objects, whose etcd is looked at (default: the pod's own)")
	set.StringVar(&f.quota, "etcd-quota", "2Gi", "that etcd's --quota-backend-bytes, which the API server does not report")
}

// Look checks the cluster that the flags name. note says what was not looked at and why,
// "" where all was, or where neither a flag nor a pod names a cluster. The error is a
// mistake in the flags.
func (f *Flags) Look(ctx context.Context) (findings []doctor.Finding, note string, err error) {
	quota, err := resource.ParseQuantity(f.quota)
	if err != nil || quota.Value() <= 0 {
		return nil, "", fmt.Errorf("--etcd-quota %q: write bytes above zero, such as 2Gi or 8589934592", f.quota)
	}
	config, err := f.config()
	switch {
	case errors.Is(err, rest.ErrNotInCluster), f.kubeconfig == "" && errors.Is(err, fs.ErrNotExist): // a pod without a token
		return nil, "", nil
	case err != nil:
		return nil, "", err
	}
	bytes, err := Size(ctx, config)
	if err != nil {
		return nil, fmt.Sprintf("The size of etcd behind the market's store was not looked at: %v.", err), nil
	}
	return Check(bytes, quota.Value()), "", nil
}

// config is how the cluster is reached.
func (f *Flags) config() (*rest.Config, error) {
	if f.kubeconfig == "" {
		return rest.InClusterConfig() //nolint:wrapcheck // compared by the caller
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --market-kubeconfig: %w", err)
	}
	return config, nil
}

// Size is the size in bytes of the largest etcd database behind an API server, by the
// server's own metrics. The error says why it is not known, and what to do.
func Size(ctx context.Context, config *rest.Config) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config = rest.CopyConfig(config)
	config.UserAgent = "fleetbroker-doctor"
	config.Wrap(redirects.Refuse)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, fmt.Errorf("reach the API server: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return 0, fmt.Errorf("reach the API server: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("metrics").String(), nil)
	if err != nil {
		return 0, fmt.Errorf("reach the API server: %w", err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden, http.StatusUnauthorized:
		return 0, fmt.Errorf("the account may not read the API server's metrics (%d); allow it the verb get on the nonResourceURL /metrics", answer.StatusCode)
	default:
		return 0, fmt.Errorf("the API server answered %d to /metrics", answer.StatusCode)
	}
	return largest(answer.Body)
}

// largest reads metrics for the largest size.
func largest(metrics io.Reader) (int64, error) {
	lines := bufio.NewScanner(io.LimitReader(metrics, maxMetrics))
	lines.Buffer(nil, maxLine)
	most := int64(-1)
	for lines.Scan() {
		if size, ok := sizeIn(lines.Text()); ok {
			most = max(most, size)
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	if most < 0 {
		return 0, fmt.Errorf("the API server's metrics have no %s", strings.Join(sizes, ", "))
	}
	return most, nil
}

// sizeIn is the size that a line of metrics states, as "name{labels} value".
func sizeIn(line string) (int64, bool) {
	for _, name := range sizes {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		value, _, _ := strings.Cut(strings.TrimSpace(rest[strings.LastIndexByte(rest, '}')+1:]), " ") // a time may follow
		size, err := strconv.ParseFloat(value, 64)
		if err != nil || !(size >= 0 && size < 1<<62) {
			return 0, false
		}
		return int64(size), true
	}
	return 0, false
}

// Check finds whether a database uses half of etcd's quota or more; both are in bytes.
func Check(size, quota int64) []doctor.Finding {
	if size < quota/2 {
		return nil
	}
	return []doctor.Finding{{
		Code: EtcdHalfFull, Link: LinkStore, Where: "etcd of the cluster with the market's objects",
		Cause: fmt.Sprintf("its database has %s of a quota of %s (%.0f %%): at the quota it takes no writes of anybody, and the whole cluster is read-only",
			binary(size), binary(quota), 100*float64(size)/float64(quota)),
		Remedy: "if that is not its --quota-backend-bytes, give --etcd-quota; else compact and defragment etcd, then see what grows (docs/runbook.md, \"etcd is half full\")",
	}}
}

// binary writes bytes for people.
func binary(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
