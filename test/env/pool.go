package env

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Pool lends clusters that are alike, to one borrower after the other: new servers and kinds
// take ten seconds of processor time, to take back what a borrower has left takes a tenth of
// one. It is taken back in etcd, beside the API: nothing is finalized, and watchers see it go.
//
// A cluster whose servers were ended or frozen, or whose etcd was meddled with, is not lent
// again. A Pool is safe for concurrent use; StopPools ends what it has.
type Pool struct {
	start func(context.Context) (*Cluster, error)
	mu    sync.Mutex
	free  []*Cluster
}

var pools struct {
	mu  sync.Mutex
	all []*Pool
}

// settling is how long after a change in etcd an API server may go by what was: it compiles
// admission policies once a second.
const settling = 1500 * time.Millisecond

// NewPool lends what start makes. Its context bounds the start alone.
func NewPool(start func(context.Context) (*Cluster, error)) *Pool {
	p := &Pool{start: start}
	pools.mu.Lock()
	defer pools.mu.Unlock()
	pools.all = append(pools.all, p)
	return p
}

// StopPools ends the clusters of all pools that are not lent, at the end of a process.
func StopPools() error {
	pools.mu.Lock()
	defer pools.mu.Unlock()
	var errs []error
	for _, p := range pools.all {
		p.mu.Lock()
		for _, c := range p.free {
			errs = append(errs, c.Stop())
		}
		p.free = nil
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Borrow gives a cluster by a name, until Return. Its directory is its own.
func (p *Pool) Borrow(ctx context.Context, name string) (*Cluster, error) {
	c, err := p.taken(ctx)
	if err != nil {
		return nil, err
	}
	c.Name = name
	if c.Kubeconfig, err = kubeconfigOf(name, c.Config); err == nil {
		err = writeFiles(map[string][]byte{c.KubeconfigPath: c.Kubeconfig})
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (p *Pool) taken(ctx context.Context) (*Cluster, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	if c.stood, err = c.stored(ctx, true); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Return takes a cluster back, as it was lent. Whoever used it has to have ended.
func (p *Pool) Return(c *Cluster) error {
	if c.meddled.Load() {
		return c.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for left := true; left; { // what was on its way may have come after the first look
		var err error
		if left, err = c.restore(ctx); err != nil {
			return errors.Join(fmt.Errorf("take back what was left in cluster %s: %w", c.Name, err), c.Stop())
		}
		if left {
			<-time.After(settling)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, c)
	return nil
}

// row is a key's value in etcd and the revision that wrote it.
type row struct {
	value    string // in base64
	revision int64
}

// stored is all that etcd has, by key, with the values or without. What an API server
// renews for itself is left out.
func (c *Cluster) stored(ctx context.Context, values bool) (map[string]row, error) {
	out := map[string]row{}
	from, to := "/", "0" // the byte behind "/"
	for {
		var page struct {
			Kvs []struct {
				Key      string `json:"key"`
				Value    string `json:"value"`
				Revision string `json:"mod_revision"`
			} `json:"kvs"`
			More bool `json:"more"`
		}
		ask := map[string]any{"key": encoded(from), "range_end": encoded(to), "limit": 200, "keys_only": !values}
		if err := c.etcdCall(ctx, "/v3/kv/range", ask, &page); err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			key, err := base64.StdEncoding.DecodeString(kv.Key)
			if err != nil {
				return nil, fmt.Errorf("etcd gave a key %q: %w", kv.Key, err)
			}
			revision, err := strconv.ParseInt(kv.Revision, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("etcd gave a revision %q: %w", kv.Revision, err)
			}
			from = string(key) + "\x00"
			if !strings.HasPrefix(string(key), "/registry/leases/kube-system/apiserver-") {
				out[string(key)] = row{value: kv.Value, revision: revision}
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return out, nil
		}
	}
}

// restore makes etcd's content what it was when the cluster stood, and reports whether it
// was anything else.
func (c *Cluster) restore(ctx context.Context) (left bool, err error) {
	now, err := c.stored(ctx, false)
	if err != nil {
		return false, err
	}
	for key := range now {
		if _, stood := c.stood[key]; stood {
			continue
		}
		left = true
		if err := c.etcdCall(ctx, "/v3/kv/deleterange", map[string]any{"key": encoded(key)}, nil); err != nil {
			return left, err
		}
	}
	for key, was := range c.stood {
		if is, there := now[key]; there && is.revision == was.revision {
			continue
		}
		left = true
		var put etcdHeader
		if err := c.etcdCall(ctx, "/v3/kv/put", map[string]any{"key": encoded(key), "value": was.value}, &put); err != nil {
			return left, err
		}
		revision, err := strconv.ParseInt(put.Header.Revision, 10, 64)
		if err != nil {
			return left, fmt.Errorf("etcd gave a revision %q: %w", put.Header.Revision, err)
		}
		c.stood[key] = row{value: was.value, revision: revision}
	}
	return left, nil
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// Plain lends clusters of an API server alone that has the kinds of Liqo and of the agent.
var Plain = NewPool(func(ctx context.Context) (*Cluster, error) {
	c, err := StartCluster(ctx, ClusterOptions{Name: "plain", Progress: io.Discard})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(InstallLiqoCRDs(ctx, c.Config), InstallAgentCRDs(ctx, c.Config)); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
})
