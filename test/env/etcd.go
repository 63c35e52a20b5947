package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// etcdCall asks etcd by its HTTP gateway.
func (c *Cluster) etcdCall(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.ports.etcd.address()+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ask etcd for %s: %w", path, errors.Join(err, fmt.Errorf("%s: %s", answer.Status, text)))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// etcdHeader is in each of etcd's answers; numbers are text there.
type etcdHeader struct {
	Header struct {
		MemberID string `json:"member_id"`
		Revision string `json:"revision"`
	} `json:"header"`
}

// CompactEtcd drops every revision but the newest, which it gives: watches of older ones
// are gone.
func (c *Cluster) CompactEtcd(ctx context.Context) (revision string, err error) {
	c.meddled.Store(true)
	var now etcdHeader
	if err := c.etcdCall(ctx, "/v3/kv/range", map[string]any{"key": "AA==", "limit": 1}, &now); err != nil {
		return "", err
	}
	return now.Header.Revision, c.etcdCall(ctx, "/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
}

// FillEtcd raises or ends the alarm of an etcd that has reached its quota: it refuses all
// writes while it lasts.
func (c *Cluster) FillEtcd(ctx context.Context, full bool) error {
	c.meddled.Store(true)
	var now etcdHeader
	if err := c.etcdCall(ctx, "/v3/kv/range", map[string]any{"key": "AA==", "limit": 1}, &now); err != nil {
		return err
	}
	action := "DEACTIVATE"
	if full {
		action = "ACTIVATE"
	}
	return c.etcdCall(ctx, "/v3/maintenance/alarm", map[string]any{"action": action, "memberID": now.Header.MemberID, "alarm": "NOSPACE"}, nil)
}

// BackUpEtcd copies etcd's state to a directory; etcd is stopped meanwhile.
func (c *Cluster) BackUpEtcd(ctx context.Context, dir string) error {
	return c.withoutEtcd(ctx, func() error { return os.CopyFS(dir, os.DirFS(c.file("etcd"))) })
}

// RestoreEtcd makes etcd's state what BackUpEtcd copied, revisions too, and starts the API
// server again, as who restores a cluster does.
func (c *Cluster) RestoreEtcd(ctx context.Context, dir string) error {
	if err := c.KillAPIServer(); err != nil {
		return err
	}
	err := c.withoutEtcd(ctx, func() error {
		if err := os.RemoveAll(c.file("etcd")); err != nil {
			return err
		}
		return os.CopyFS(c.file("etcd"), os.DirFS(dir))
	})
	if err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// CrashEtcd ends etcd at once, as a crash does, and starts it again on what it had written;
// the API server goes on.
func (c *Cluster) CrashEtcd(ctx context.Context) error {
	c.meddled.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.etcd.kill(); err != nil {
		return err
	}
	return c.startEtcd(ctx)
}

// withoutEtcd does something while etcd does not run.
func (c *Cluster) withoutEtcd(ctx context.Context, do func() error) error {
	c.meddled.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.etcd.stop(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return fmt.Errorf("copy etcd's state: %w", err)
	}
	return c.startEtcd(ctx)
}
