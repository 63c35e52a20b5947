package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/notify"
)

// labelTenant must be on a Secret that holds a tenant's address, with the
// tenant's name: nobody's file can point at another's Secret.
const labelTenant = v1alpha1.Group + "/tenant"

// addresses reads where tenants want to be told: from <dir>/<secret>/<key>, as
// Secrets are mounted, else from the Secret itself.
type addresses struct {
	dir     string
	secrets access.Secrets // nil where the daemon does not run in a cluster
}

func (a addresses) of(ctx context.Context, tenant string, ref v1alpha1.SecretKeyRef) (string, error) {
	if a.dir != "" {
		text, err := os.ReadFile(filepath.Join(a.dir, filepath.Base(ref.Name), filepath.Base(ref.Key))) //nolint:gosec // the operator named the directory, and base names stay in it
		if err == nil {
			return string(text), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || a.secrets == nil {
			return "", fmt.Errorf("read the address of Secret %s: %w", ref.Name, err)
		}
	}
	if a.secrets == nil {
		return "", fmt.Errorf("the address is in Secret %s, but the daemon does not run in a cluster: give --notify-urls-dir with a file %s/%s", ref.Name, ref.Name, ref.Key)
	}
	data, labels, err := a.secrets.Secret(ctx, ref.Name)
	if err != nil {
		return "", fmt.Errorf("read Secret %s: %w; mount it below --notify-urls-dir, or let the daemon get it", ref.Name, err)
	}
	if labels[labelTenant] != tenant {
		return "", fmt.Errorf("Secret %s is not meant for this tenant: label it %s=%s", ref.Name, labelTenant, tenant)
	}
	if len(data[ref.Key]) == 0 {
		return "", fmt.Errorf("Secret %s has no key %s", ref.Name, ref.Key)
	}
	return string(data[ref.Key]), nil
}

// notifier tells tenants what becomes of their intents; nil where this daemon
// tells nobody. From now on every round's ledger is shown to it.
func (o *runOptions) notifier(d *daemon) (*notify.Notifier, error) {
	if !o.notify || o.shadow {
		return nil, nil
	}
	cas, err := authorities(o.notifyCAs)
	if err != nil {
		return nil, fmt.Errorf("--notify-ca-file: %w", err)
	}
	n := notify.New(notify.Options{
		Dir: o.stateDir, State: d.state, Address: addresses{o.notifyDir, d.secrets}.of, Now: d.now, Paces: notify.DefaultPaces(), Log: d.log,
		Count: d.metrics.Notified, Speaks: d.election.Holds, CAs: cas, Told: d.announce,
		At: func(ctx context.Context, head tree.Hash) (*ledger.Ledger, error) {
			t, err := d.repo.Tree(head)
			if err != nil {
				return nil, err
			}
			l, _, err := ledger.Read(ctx, t, nil)
			return l, err
		},
	})
	last, seen := d.loop.View(), d.sources.Version()
	d.observer.Each(func() {
		v, now := d.loop.View(), d.sources.Version()
		if v == last && now == seen || v.Fleet == nil || v.Contracts == nil {
			return
		}
		last, seen = v, now
		books, err := ledger.BooksOf(v.Fleet.Policy)
		if err != nil {
			return // account says it
		}
		n.Observe(&notify.Snapshot{
			FrozenFor: v.Fleet.Policy.Safety.Ages(), Sources: d.sources.Status(),
			Fleet: v.Fleet.Name, Head: v.Ledger, Ledger: v.Contracts, Tenants: v.Fleet.Tenants, Books: books,
			SLA: func(tenant, intent string) *v1alpha1.SLA {
				if it := v.Fleet.Intent(tenant, intent); it != nil {
					return it.Spec.SLA
				}
				return nil
			},
		})
	})
	return n, nil
}

// announce lets clusters know of what has no contract there that would tell it.
func (d *daemon) announce(e notify.Event) {
	news := wire.News{ID: e.ID, At: e.At, Tenant: e.Tenant, Intent: e.Intent, Text: e.Text}
	switch e.Kind {
	case "queued":
		news.Reason = "Queued"
	case "refused":
		news.Reason, news.Warning = "Refused", true
	case "frozen": // of a tenant: in which cluster an unreadable intent is to be, its file does not say
		news.Reason, news.Warning, news.Intent = e.Reason, e.Reason != notify.ReasonSourceRead, ""
	case "budget":
		news.Reason, news.Warning = e.Reason, true
	default:
		return
	}
	d.loop.Announce(news)
}

// authorities are the system's and those of a file; nil without one.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator named it
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}
