package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// tokenKept is how long a token is used before it is read again: the Secret of a source
// is not asked for with each request to its forge.
const tokenKept = 30 * time.Second

// Forge is where the pull requests of a source are: with its own token, at a host that
// is allowed. The token is read when it is needed. ok: the entry names a forge.
func (k *Keeper) Forge(source string) (config forge.Config, ok bool, err error) {
	e := k.Entry(source)
	if e == nil || e.Forge == nil {
		return forge.Config{}, false, nil
	}
	if field, err := e.Forge.Check(); err != nil {
		return forge.Config{}, true, fmt.Errorf("forge.%s: %w", field, err)
	}
	config = forge.Config{
		Kind: forge.Kind(e.Forge.Type), URL: e.Forge.URL, Repo: e.Forge.Repository, User: e.Forge.User, TokenFile: keyForge,
		Guard: guard, Read: (&reader{k: k, entry: *e}).read,
	}
	switch data, err := config.Read(keyCA); {
	case err == nil && len(data) > 0:
		config.CAFile = keyCA
	case err != nil && !errors.Is(err, fs.ErrNotExist): // a client without it would be kept
		return config, true, err
	}
	if config, err = config.Complete(e.URL); err != nil {
		return config, true, err
	}
	u, err := url.Parse(config.URL)
	if err != nil {
		return config, true, fmt.Errorf("forge.url: %w", err)
	}
	if u.Scheme != "https" {
		return config, true, fmt.Errorf("forge.url: scheme %q is not allowed; use https", u.Scheme)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := guard(ip); err != nil {
			return config, true, err
		}
	}
	return config, true, allowedAt(strings.ToLower(u.Hostname()), u, k.opts.Hosts)
}

// reader reads credentials of one source, and keeps them for a while.
type reader struct {
	k     *Keeper
	entry v1alpha1.IntentSource

	mu   sync.Mutex
	data map[string][]byte
	at   time.Time
}

func (r *reader) read(key string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.data == nil || now.Sub(r.at) > tokenKept {
		ctx, cancel := context.WithTimeout(context.Background(), connecting)
		defer cancel()
		data, err := r.k.opts.Credentials.of(ctx, &r.entry)
		if err != nil {
			return nil, err
		}
		r.data, r.at = data, now
	}
	if b, ok := r.data[key]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%s of its credentials: %w", key, fs.ErrNotExist)
}

// keepHook keeps the secret of a source's webhooks, which are not to cost a read each.
func (k *Keeper) keepHook(source string, secret []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.all[source]; s != nil {
		s.hook = bytes.TrimSpace(secret)
	}
}

// Hook is what a webhook of a source is held to: the type of its forge ("generic" where
// its entry names none), and the secret of its credentials as of the last read. Without
// one none is taken.
func (k *Keeper) Hook(source string) (kind string, secret []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.all[source]
	if s == nil || !s.active || len(s.hook) == 0 {
		return "", nil
	}
	if s.entry.Forge == nil {
		return "generic", s.hook
	}
	return s.entry.Forge.Type, s.hook
}

// Wake asks for a read of a source as soon as it may be read again. It does not block.
func (k *Keeper) Wake(source string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.all[source]; s != nil && s.active {
		select {
		case s.woken <- struct{}{}:
		default:
		}
	}
}

// Frozen is why nothing new is taken of a source, "" when it is in order.
func (k *Keeper) Frozen(source string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.all[source]; s != nil && s.active {
		return s.status.Frozen
	}
	return ""
}

// Version grows with each change of what Status says, but for when a source was read
// last.
func (k *Keeper) Version() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version
}
