package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetbroker/fleetbroker/internal/api/beginning"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/receive"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/scrub"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/sshdial"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/upload"
)

// Dial returns the Remote at a URL: https, http, ssh (also user@host:path),
// file, or a path on this machine. It makes no connection yet. Credentials are
// read from where auth points at every connection, so that they can be
// rotated; they never stand in the URL.
func Dial(url string, auth Auth) (Remote, error) {
	ep, err := transport.NewEndpoint(url)
	if err != nil {
		return nil, fmt.Errorf("remote %s: not a repository URL: %w", scrub.Text(url), scrub.Error(err))
	}
	if ep.Password != "" {
		return nil, fmt.Errorf("remote %s: the URL holds a password; put it into a file and name that file instead", scrub.Text(url))
	}
	switch ep.Protocol {
	case "http", "https":
		if ep.User != "" && auth.User == "" {
			auth.User = ep.User
		}
		ep.User = ""
		if auth.User != "" && !auth.secret() {
			return nil, fmt.Errorf("remote %s: a user name without a password; name the file that holds the password or token", scrub.Text(url))
		}
	case "ssh":
		if auth.User == "" {
			auth.User = ep.User
		}
	case "file":
	default:
		return nil, fmt.Errorf("remote %s: scheme %q is not supported; use https, ssh or a path", scrub.Text(url), ep.Protocol)
	}
	return &dialed{name: ep.String(), ep: *ep, auth: auth}, nil
}

// dialed is a Remote over one of go-git's transports. Each operation is a
// session of its own.
type dialed struct {
	name string
	ep   transport.Endpoint
	auth Auth
	web  webClient

	mu sync.Mutex
	// adv is what receive-pack advertised at the last successful push over
	// http; a push that has it saves the advertisement's round trip. Nil: ask.
	adv *packp.AdvRefs
}

// Refs implements Remote.
func (d *dialed) Refs(ctx context.Context) (map[string]tree.Hash, error) {
	var refs map[string]tree.Hash
	err := d.upload(ctx, func(_ context.Context, _ transport.UploadPackSession, adv *packp.AdvRefs) error {
		refs = advertisedRefs(adv)
		return nil
	})
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return map[string]tree.Hash{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list refs of %s: %w", d.name, scrub.Cause(err))
	}
	return refs, nil
}

// connect opens a session. go-git's ssh handshake knows no context, so it is
// left behind when the context ends, and closed whenever it comes back.
func connect[S transport.Session](ctx context.Context, ep *transport.Endpoint, auth transport.AuthMethod,
	open func(*transport.Endpoint, transport.AuthMethod) (S, error)) (S, error) {
	type result struct {
		s   S
		err error
	}
	done := make(chan result, 1)
	go func() {
		s, err := open(ep, auth)
		done <- result{s, err}
	}()
	select {
	case r := <-done:
		return r.s, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.s.Close()
			}
		}()
		var none S
		return none, ctx.Err()
	}
}

// upload runs fn in a session of git-upload-pack.
func (d *dialed) upload(ctx context.Context, fn func(context.Context, transport.UploadPackSession, *packp.AdvRefs) error) (err error) {
	ctx, w := d.auth.watched(ctx)
	defer func() { err = w.stop(ctx, err) }()
	c, auth, err := d.client(ctx)
	if err != nil {
		return err
	}
	ep, forget := d.endpoint(ctx)
	defer forget()
	s, err := connect(ctx, &ep, auth, c.NewUploadPackSession)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.Close(); err == nil && ctx.Err() == nil {
			err = cerr
		}
	}()
	adv, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return err
	}
	return fn(ctx, s, adv)
}

// endpoint is where a session goes; forget must be called at its end.
func (d *dialed) endpoint(ctx context.Context) (ep transport.Endpoint, forget func()) {
	ep, forget = d.ep, func() {}
	if ep.Protocol == "ssh" && ep.Proxy.URL == "" {
		ep.Proxy.URL, forget = sshdial.Within(ctx, func(dialing context.Context, network, addr string) (net.Conn, error) {
			return dialWatched(dialing, ctx, network, addr)
		})
	}
	return ep, forget
}

// Fetch implements Remote.
func (d *dialed) Fetch(ctx context.Context, choose func(map[string]tree.Hash) (want, have []tree.Hash), take func(io.Reader) error) error {
	err := d.upload(ctx, func(ctx context.Context, s transport.UploadPackSession, adv *packp.AdvRefs) error {
		want, have := choose(advertisedRefs(adv))
		if len(want) == 0 {
			return nil
		}
		req := upload.Request(adv.Capabilities, want, have, d.auth.Largest)
		w := watchOf(ctx)
		if len(have) == 0 {
			w.cloning()
		}
		resp, err := s.UploadPack(ctx, req)
		if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
			return nil
		}
		if err != nil {
			return err
		}
		w.work(true, 0)
		err = take(sink{upload.Demux(req.Capabilities, resp), w})
		w.work(false, 0)
		if cerr := resp.Close(); err == nil {
			err = cerr
		}
		return err
	})
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		choose(map[string]tree.Hash{})
		return nil
	}
	if err != nil {
		return fmt.Errorf("fetch from %s: %w", d.name, scrub.Cause(err))
	}
	return nil
}

func advertisedRefs(adv *packp.AdvRefs) map[string]tree.Hash {
	refs := make(map[string]tree.Hash, len(adv.References))
	for name, h := range adv.References {
		refs[name] = tree.Hash(h)
	}
	return refs
}

// Push implements Remote.
func (d *dialed) Push(ctx context.Context, cmds []Command, pack []byte) error {
	ctx, w := d.auth.watched(ctx)
	err := w.stop(ctx, d.push(ctx, cmds, pack))
	if err != nil {
		d.mu.Lock()
		d.adv = nil
		d.mu.Unlock()
		return fmt.Errorf("push to %s: %w", d.name, scrub.Error(err))
	}
	return nil
}

func (d *dialed) push(ctx context.Context, cmds []Command, pack []byte) error {
	adv, err := d.receive(ctx, cmds, pack)
	if err != nil || adv == nil {
		return err
	}
	// The server cannot update several refs atomically: one at a time, in
	// order. Every push carries the whole pack, because what an earlier one
	// left unreferenced may have been thrown away.
	for i, c := range cmds {
		if i > 0 && d.auth.Another != nil {
			if err := d.auth.Another(ctx); err != nil {
				return err
			}
		}
		if _, err := d.receive(ctx, []Command{c}, pack); err != nil {
			return err
		}
	}
	return nil
}

// receive is one session of git-receive-pack, after which nothing stands that the server
// took of a push that it refused in part.
func (d *dialed) receive(ctx context.Context, cmds []Command, pack []byte) (notAtomic *packp.AdvRefs, err error) {
	notAtomic, taken, err := d.session(ctx, cmds, pack)
	if len(taken) > 0 {
		err = errors.Join(err, d.takeBack(ctx, cmds, taken))
	}
	return notAtomic, err
}

// session runs one session of git-receive-pack. It returns the advertisement
// and sends nothing when several commands are due and the server is not atomic. With a
// Rejection it returns the refs that the server says to have moved all the same.
func (d *dialed) session(ctx context.Context, cmds []Command, pack []byte) (notAtomic *packp.AdvRefs, taken map[string]bool, err error) {
	c, auth, err := d.client(ctx)
	if err != nil {
		return nil, nil, err
	}
	ep, forget := d.endpoint(ctx)
	defer forget()
	s, err := connect(ctx, &ep, auth, c.NewReceivePackSession)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		// The report has been read by then; a close error adds nothing.
		_ = s.Close()
	}()
	adv, err := d.advertised(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	atomic := adv.Capabilities.Supports(capability.Atomic)
	if len(cmds) > 1 && !atomic {
		return adv, nil, nil
	}
	report, said, err := receivePack(ctx, s, adv, cmds, pack)
	refused, err := receive.Judge(len(cmds), report, said, err)
	if err != nil {
		return nil, nil, err
	}
	if refused != "" {
		return nil, receive.Taken(report), &Rejection{Words: refused}
	}
	// After a redirect the session's endpoint is another; only its own first
	// request may be redirected, so that one cannot be saved.
	same := ep.Host == d.ep.Host && ep.Port == d.ep.Port && ep.Path == d.ep.Path && ep.Protocol == d.ep.Protocol
	if same && (d.ep.Protocol == "http" || d.ep.Protocol == "https") {
		d.mu.Lock()
		d.adv = adv
		d.mu.Unlock()
	}
	return nil, nil, nil
}

// takeBack moves refs back that a server took of a push of which it refused others: a
// note of what is accepted never runs ahead of its branch. What it takes of that in part is
// left: a server that says so of every push is asked no more.
func (d *dialed) takeBack(ctx context.Context, cmds []Command, taken map[string]bool) error {
	var back []Command
	for _, c := range cmds {
		if taken[c.Ref] {
			back = append(back, Command{Ref: c.Ref, Old: c.New, New: c.Old})
		}
	}
	if len(back) == 0 {
		return nil
	}
	pack, err := gitobj.Set{}.Pack()
	for _, c := range back { // a server that was not atomic is given one at a time
		if err == nil && d.auth.Another != nil {
			err = d.auth.Another(ctx)
		}
		if err == nil {
			_, _, err = d.session(ctx, []Command{c}, pack)
		}
	}
	if err != nil {
		return fmt.Errorf("the server moved %v all the same, which was not taken back: %w", back, err)
	}
	return nil
}

// advertised asks what receive-pack can do, or remembers it: over http the
// question is a request of its own.
func (d *dialed) advertised(ctx context.Context, s transport.ReceivePackSession) (*packp.AdvRefs, error) {
	d.mu.Lock()
	adv := d.adv
	d.mu.Unlock()
	if adv != nil {
		return adv, nil
	}
	adv, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return packp.NewAdvRefs(), nil
	}
	return adv, err
}

func receivePack(ctx context.Context, s transport.ReceivePackSession, adv *packp.AdvRefs, cmds []Command, pack []byte) (*packp.ReportStatus, string, error) {
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	said := beginning.Of(receive.MostSaid)
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return nil, "", err
		}
		req.Progress = said
	}
	if len(cmds) > 1 {
		if err := req.Capabilities.Set(capability.Atomic); err != nil {
			return nil, "", err
		}
	}
	objects := false
	for _, c := range cmds {
		req.Commands = append(req.Commands, &packp.Command{
			Name: plumbing.ReferenceName(c.Ref), Old: plumbing.Hash(c.Old), New: plumbing.Hash(c.New),
		})
		if c.New.IsZero() {
			if err := req.Capabilities.Set(capability.DeleteRefs); err != nil {
				return nil, "", err
			}
			continue
		}
		objects = true
	}
	if objects {
		req.Packfile = io.NopCloser(bytes.NewReader(pack))
	}
	report, err := s.ReceivePack(ctx, req)
	return report, said.String(), err
}
