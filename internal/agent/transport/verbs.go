package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

const (
	// reportTimeout bounds one report, so that a broker that hangs is noticed
	// well before the next is due.
	reportTimeout = 10 * time.Second
	// reserveTimeout is above what a broker lets a request wait (25 s).
	reserveTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer: instructions of some ten
	// thousand contracts.
	maxAnswer = 16 << 20
)

// verbs are the methods of Transport over whatever carries a call and its
// answer.
type verbs struct {
	cluster string
	call    func(ctx context.Context, method, path string, header http.Header, body []byte) (*answer, error)
}

// Put implements Transport.
func (t *verbs) Put(ctx context.Context, g wire.Generation, packed []byte, honoured uint64) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	header := http.Header{wire.HeaderGeneration: {g.String()}}
	if packed != nil {
		header.Set("Content-Type", "application/json")
		header.Set("Content-Encoding", "gzip")
		if honoured > 0 {
			header.Set(wire.HeaderHonoured, strconv.FormatUint(honoured, 10))
		}
	}
	answer, err := t.call(ctx, http.MethodPut, wire.FlavorsPath(t.cluster), header, packed)
	if err != nil {
		return err
	}
	return answer.verdict()
}

// Instructions implements Transport.
func (t *verbs) Instructions(ctx context.Context, since string, after uint64, wait time.Duration) (wire.Instructions, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+reportTimeout)
	defer cancel()
	query := url.Values{"since": {since}, "wait": {wait.String()}}
	if after > 0 {
		query.Set("after", strconv.FormatUint(after, 10))
	}
	answer, err := t.call(ctx, http.MethodGet, wire.InstructionsPath(t.cluster)+"?"+query.Encode(), nil, nil)
	if err != nil {
		return wire.Instructions{}, err
	}
	if answer.status == http.StatusNotModified {
		return wire.Instructions{}, ErrUnchanged
	}
	var in wire.Instructions
	return in, answer.into(&in)
}

// Reserve implements Transport.
func (t *verbs) Reserve(ctx context.Context, key string, q wire.ReservationRequest) (wire.Reservation, error) {
	ctx, cancel := context.WithTimeout(ctx, reserveTimeout)
	defer cancel()
	var out wire.Reservation
	body, err := json.Marshal(q)
	if err != nil {
		return out, fmt.Errorf("encode the request: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if key != "" {
		header.Set(wire.HeaderIdempotencyKey, key)
	}
	answer, err := t.call(ctx, http.MethodPost, wire.ReservationsPath, header, body)
	if err != nil {
		return out, err
	}
	return out, answer.into(&out)
}

// Release implements Transport.
func (t *verbs) Release(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, reserveTimeout)
	defer cancel()
	answer, err := t.call(ctx, http.MethodDelete, wire.ReservationPath(id), nil, nil)
	if err != nil {
		return err
	}
	return answer.verdict()
}

// Manifests implements Transport.
func (t *verbs) Manifests(ctx context.Context, since string, wait time.Duration) (wire.Manifests, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+reportTimeout)
	defer cancel()
	query := url.Values{"since": {since}, "wait": {wait.String()}}
	var out wire.Manifests
	answer, err := t.call(ctx, http.MethodGet, wire.ManifestsPath(t.cluster)+"?"+query.Encode(), nil, nil)
	if err != nil {
		return out, err
	}
	if answer.status == http.StatusNotModified {
		return out, ErrUnchanged
	}
	return out, answer.into(&out)
}

// ManifestsRoot implements Transport.
func (t *verbs) ManifestsRoot(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	var out wire.ManifestsRoot
	answer, err := t.call(ctx, http.MethodGet, wire.ManifestsRootPath(t.cluster), nil, nil)
	if err != nil {
		return "", err
	}
	err = answer.into(&out)
	return out.Root, err
}

// Observe implements Transport.
func (t *verbs) Observe(ctx context.Context, report wire.Observed) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	body, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode the observations: %w", err)
	}
	answer, err := t.call(ctx, http.MethodPut, wire.ObservationsPath(t.cluster), http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return err
	}
	return answer.verdict()
}

// answer is what came back.
type answer struct {
	url    string
	status int
	header http.Header
	body   []byte
}

// into decodes a success.
func (a *answer) into(v any) error {
	if err := a.verdict(); err != nil {
		return err
	}
	if err := strictjson.Decode(a.body, v); err != nil {
		return fmt.Errorf("read the answer of %s: %w", a.url, err)
	}
	return nil
}

// verdict is nil for a success.
func (a *answer) verdict() error {
	if a.status/100 == 2 {
		return nil
	}
	var e wire.Error
	if err := strictjson.Decode(a.body, &e); err != nil || e.Reason == "" {
		return fmt.Errorf("answered %d %s", a.status, http.StatusText(a.status))
	}
	refusal := &wire.Refusal{Status: a.status, Body: e}
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && seconds > 0 {
		refusal.RetryAfter = time.Duration(seconds) * time.Second
	}
	return read(refusal)
}

// read tells the refusals of reports that ask for another form from others.
func read(refusal *wire.Refusal) error {
	switch e := refusal.Body; {
	case refusal.Status == http.StatusPreconditionFailed && e.Reason == wire.ReasonUnknownBase:
		return ErrUnknownBase
	case refusal.Status == http.StatusConflict && e.Reason == wire.ReasonStaleEpoch:
		last, err := wire.ParseGeneration(e.Last)
		if err != nil {
			return fmt.Errorf("answered %d %s with a last generation that cannot be read: %w", refusal.Status, e.Reason, err)
		}
		return &StaleError{Last: last}
	}
	return fmt.Errorf("answered %d %s: %w", refusal.Status, refusal.Body.Reason, refusal)
}
