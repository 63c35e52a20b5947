package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fleetbroker/fleetbroker/schemas/v1alpha1"
)

// Page is a page's data with what all pages have in common.
type Page[T any] struct {
	v1alpha1.Head

	Data T `json:"data"`
}

// Query chooses rows of a page. Zero fields choose nothing; a page ignores what it does
// not know.
type Query struct {
	// Text that a row contains, whatever the case.
	Text string
	// State, phase or failed requirement; "all" for everything.
	State string
	// Tenant, Provider and Consumer of rows.
	Tenant, Provider, Consumer string
	// By is what costs are added up by, Month the month of the costs ("2026-11") or "all".
	By, Month string
	// Days of the calendar.
	Days int
	// Page of a list, from 1, with so many rows (Size, at most and by default 1000).
	Page, Size int
}

func (q Query) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{"q": q.Text, "state": q.State, "tenant": q.Tenant, "provider": q.Provider, "consumer": q.Consumer, "by": q.By, "month": q.Month} {
		if text != "" {
			v.Set(name, text)
		}
	}
	for name, n := range map[string]int{"days": q.Days, "page": q.Page, "size": q.Size} {
		if n != 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	return v
}

// page asks for a page.
func page[T any](ctx context.Context, c *Client, path string, q Query) (*Page[T], error) {
	out := new(Page[T])
	if _, err := c.do(ctx, request{method: http.MethodGet, path: path, query: q.values()}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// StartSimulation begins one of the last days with a change. token is csrfToken of Capacity.
func (c *Client) StartSimulation(ctx context.Context, token string, change v1alpha1.ScenarioChange) (*Page[v1alpha1.CapacityJobAnswer], error) {
	out := new(Page[v1alpha1.CapacityJobAnswer])
	if _, err := c.do(ctx, request{method: http.MethodPost, path: "/api/ui/capacity", header: csrf(token), in: change}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CancelSimulation ends one of one's own.
func (c *Client) CancelSimulation(ctx context.Context, token, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/api/ui/capacity/" + url.PathEscape(id), header: csrf(token)}, nil)
	return err
}

func csrf(token string) http.Header {
	h := http.Header{}
	h.Set("X-CSRF-Token", token)
	return h
}
