package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// Decider decides on requests, and tells what the ledger says;
// *reconciler.Reconciler is one.
type Decider interface {
	Reserve(ctx context.Context, ask wire.Ask) (wire.Reservation, error)
	Answered(id string, told bool)
	Release(ctx context.Context, cluster, id string) error
	Instructions(cluster string) (wire.Instructions, <-chan struct{})
	Reread()
	Head() string
	Newest() error
	RemoteOut() time.Duration
	Owed(cluster string) []wire.Reservation
	Held(cluster string) wire.Quantities
}

// Broker is the broker of one of several replicas: what has to be decided it hands
// to the one that decides, and what the ledger says it tells itself. It implements
// the server's Broker.
type Broker struct {
	Decider

	// Election says who decides.
	Election *Election
	// Address is where a replica is reached, "" where it is not known.
	Address func(replica string) string
	// Files are this daemon's certificates, which it shows to the others.
	Files *pki.Files
	// Replica is this one's name, and Life another one with each start: names of
	// reservations are made of both.
	Replica, Life string

	count  atomic.Uint64
	mu     sync.Mutex
	handed map[string]bool // reservations without a key whose clients are not told yet
	client peerClient
}

// Waits of a request whose decider is not known, or gone.
const (
	firstAgain = 50 * time.Millisecond
	lastAgain  = time.Second
	// maxHanded bounds the reservations that are remembered until their clients are told.
	maxHanded = 10_000
)

// Vouches implements the server's Broker: another replica may know of a newer ledger
// when this one cannot read it.
func (b *Broker) Vouches() error {
	if b.Head() == "" {
		return errors.New("the fleet repo has not been read yet")
	}
	return away(b.RemoteOut())
}

// Newest implements the server's Broker.
func (b *Broker) Newest() error {
	if err := b.Vouches(); err != nil {
		return err
	}
	return b.Decider.Newest()
}

// Reserve implements the server's Broker.
func (b *Broker) Reserve(ctx context.Context, ask wire.Ask) (wire.Reservation, error) {
	if ask.Key == "" && ask.ID == "" {
		ask.ID = wire.NameReservation("body", ask.Cluster, b.Replica, b.Life, strconv.FormatUint(b.count.Add(1), 10))
	}
	id := ask.ID
	if ask.Key != "" {
		id = wire.ReservationID(ask.Cluster, ask.Key)
	}
	var out wire.Reservation
	err := b.decided(ctx, func() (err error) {
		out, err = b.Decider.Reserve(ctx, ask)
		return err
	}, func(ctx context.Context, address string) error {
		out = wire.Reservation{}
		err := b.client.call(ctx, b.Files, address, wire.HandedReservationsPath, wire.HandedReservation{Cluster: ask.Cluster, Key: ask.Key, ID: id, Request: ask.Request}, &out)
		if err == nil && ask.Key == "" {
			b.remember(out.ID)
		}
		return err
	})
	return out, err
}

// Release implements the server's Broker.
func (b *Broker) Release(ctx context.Context, cluster, id string) error {
	return b.decided(ctx, func() error { return b.Decider.Release(ctx, cluster, id) }, func(ctx context.Context, address string) error {
		return b.client.call(ctx, b.Files, address, wire.HandedReleasesPath, wire.HandedRelease{Cluster: cluster, ID: id}, nil)
	})
}

// Answered implements the server's Broker. What the client of a reservation that was
// handed on was told is handed on too; where that fails, an equal request counts as
// a retry once its client cannot wait any more.
func (b *Broker) Answered(id string, told bool) {
	b.mu.Lock()
	handed := b.handed[id]
	delete(b.handed, id)
	b.mu.Unlock()
	if !handed {
		b.Decider.Answered(id, told)
		return
	}
	if address := b.Address(b.Election.Leader()); address != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = b.client.call(ctx, b.Files, address, wire.ToldPath, wire.Told{ID: id, Told: told}, nil)
	}
}

func (b *Broker) remember(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.handed) >= maxHanded {
		clear(b.handed)
	}
	if b.handed == nil {
		b.handed = map[string]bool{}
	}
	b.handed[id] = true
}

// decided has something decided here or by another replica, whichever decides, and
// asks the next one when that is lost. It ends with the context.
func (b *Broker) decided(ctx context.Context, here func() error, there func(ctx context.Context, address string) error) error {
	var last error
	for wait := firstAgain; ; wait = min(2*wait, lastAgain) {
		err := errNobody
		if b.Election.Leads() {
			err = here()
		} else if address := b.Address(b.Election.Leader()); address != "" {
			err = b.while(ctx, address, there)
		}
		if err == nil || !again(err) {
			return err
		}
		if !errors.Is(err, errNobody) {
			last = err
		}
		select {
		case <-ctx.Done():
			return nobody(last)
		case <-time.After(wait):
		}
	}
}

// while asks another replica as long as it is the one that decides: one whose machine
// is gone never answers.
func (b *Broker) while(ctx context.Context, address string, ask func(ctx context.Context, address string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if b.Address(b.Election.Leader()) != address {
					cancel()
				}
			}
		}
	}()
	return ask(ctx, address)
}

// errNobody: no replica decides, or none is known to.
var errNobody = errors.New("no replica is known to decide")

// again reports whether another replica may have to be asked: this one does not
// decide, does not take this one for a replica, because one of both has no renewed
// certificate yet, or it is not known what became of the request there.
func again(err error) bool {
	var refusal *wire.Refusal
	if errors.As(err, &refusal) {
		return refusal.Body.Reason == wire.ReasonStandby || refusal.Body.Reason == wire.ReasonNotAReplica
	}
	return true
}

// nobody refuses what nobody decided in time.
func nobody(last error) error {
	text := "no replica decided in time; ask again with the same " + wire.HeaderIdempotencyKey
	if last != nil {
		text += ": " + last.Error()
	}
	return &wire.Refusal{Status: http.StatusServiceUnavailable, RetryAfter: time.Second, Body: wire.Error{Error: text, Reason: wire.ReasonUnavailable}}
}

// peerClient asks other replicas; connections are kept as long as the certificates
// are the same.
type peerClient struct {
	mu       sync.Mutex
	material *pki.Material
	client   *http.Client
}

// maxPeerAnswer bounds what is read of an answer, unless who asks says otherwise.
const maxPeerAnswer = 1 << 20

func (c *peerClient) call(ctx context.Context, files *pki.Files, address, path string, in, out any) error {
	return c.bounded(ctx, files, address, path, in, out, maxPeerAnswer)
}

// bounded is call with an answer of at most so many bytes.
func (c *peerClient) bounded(ctx context.Context, files *pki.Files, address, path string, in, out any, most int64) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("write a request to another replica: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask another replica: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	tracing.Inject(r)
	answer, err := c.with(files).Do(r)
	if err != nil {
		return err // says method and URL already
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.URL, err)
	}
	if answer.StatusCode/100 != 2 {
		refusal := &wire.Refusal{Status: answer.StatusCode}
		if err := strictjson.Decode(text, &refusal.Body); err != nil || refusal.Body.Reason == "" {
			return fmt.Errorf("%s answered %d", r.URL, answer.StatusCode)
		}
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
			refusal.RetryAfter = time.Duration(seconds) * time.Second
		}
		return refusal
	}
	if out == nil {
		return nil
	}
	if err := strictjson.Decode(text, out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.URL, err)
	}
	return nil
}

// with is a client with the newest certificates.
func (c *peerClient) with(files *pki.Files) *http.Client {
	m, err := files.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil && (err != nil || m == c.material) {
		return c.client
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	c.material = m
	c.client = &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 2 * time.Second,
			IdleConnTimeout:     time.Minute,
			MaxIdleConnsPerHost: 16,
			ForceAttemptHTTP2:   true, // all that clients ask for goes over a few connections
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.Pair}, RootCAs: m.Authorities,
				VerifyConnection: func(state tls.ConnectionState) error {
					if err := pki.VerifyServer(state); err != nil {
						return err
					}
					return pki.SameFleet(m.Pair.Leaf, state.PeerCertificates[0])
				},
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("another replica answered with a redirect")
		},
	}
	return c.client
}
