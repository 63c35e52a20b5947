package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fleetbroker/fleetbroker/schemas/v1alpha1"
)

// Reserve asks for capacity in the cluster of the client's certificate, and returns once it
// is on the ledger, or waits in the queue there (phase Pending). The same key asks for the same
// reservation, however often it is sent: after an error that is no refusal, ask again with it.
// An empty key makes each request another one.
func (c *Client) Reserve(ctx context.Context, key string, ask v1alpha1.ReservationRequest) (*v1alpha1.Reservation, error) {
	h := http.Header{}
	if key != "" {
		h.Set(v1alpha1.HeaderIdempotencyKey, key)
	}
	out := new(v1alpha1.Reservation)
	if _, err := c.do(ctx, request{method: http.MethodPost, path: "/api/v1/reservations", header: h, in: ask}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Release ends a reservation of the cluster and returns once that is on the ledger.
func (c *Client) Release(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/api/v2/reservations/" + url.PathEscape(id)}, nil)
	return err
}

// Wait is how to ask for news: of another version than Since, for at most For.
type Wait struct {
	// Since is the version at hand; "" is answered at once.
	Since string
	// For how long, at most a minute.
	For time.Duration
	// After is the highest Seq of instructions at hand.
	After uint64
}

func (w Wait) values() url.Values {
	v := url.Values{}
	if w.Since != "" {
		v.Set("since", w.Since)
	}
	if w.For > 0 {
		v.Set("wait", w.For.String())
	}
	if w.After > 0 {
		v.Set("after", strconv.FormatUint(w.After, 10))
	}
	return v
}

// Instructions are what the ledger says of a cluster; nil when there is nothing newer.
func (c *Client) Instructions(ctx context.Context, cluster string, w Wait) (*v1alpha1.Instructions, error) {
	return news[v1alpha1.Instructions](ctx, c, "/api/v2/clusters/"+url.PathEscape(cluster)+"/instructions", w.values())
}

// news asks for what may not have changed.
func news[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	out := new(T)
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query}, out)
	if err != nil || a.status == http.StatusNotModified {
		return nil, err
	}
	return out, nil
}

// MarketQuery chooses a part of the market; zero fields choose nothing.
type MarketQuery struct {
	// Provider, Class (a model of GPU, or "cpu") and Region of flavors.
	Provider, Class, Region string
}

// Market is what is offered now to who asks, or once that is another than w.Since; nil when
// there is nothing newer.
func (c *Client) Market(ctx context.Context, q MarketQuery, w Wait) (*v1alpha1.MarketAnswer, error) {
	v := w.values()
	for name, text := range map[string]string{"provider": q.Provider, "class": q.Class, "region": q.Region} {
		if text != "" {
			v.Set(name, text)
		}
	}
	return news[v1alpha1.MarketAnswer](ctx, c, "/market", v)
}

// Pods are those on contracts' virtual nodes, by consumer, that are shown to who asks.
func (c *Client) Pods(ctx context.Context) ([]v1alpha1.PodsReport, error) {
	var out []v1alpha1.PodsReport
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/pods"}, &out)
	return out, err
}

// Ready says whether the daemon is ready, check by check. One that is not is no error.
func (c *Client) Ready(ctx context.Context) (*v1alpha1.Readiness, error) {
	out := new(v1alpha1.Readiness)
	if _, err := c.do(ctx, request{method: http.MethodGet, path: "/readyz", unready: true}, out); err != nil {
		return nil, err
	}
	return out, nil
}
