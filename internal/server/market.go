package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// marketHandler shows the market as a YAML stream of Flavors, which `plan
// --market` reads, or as JSON to those who accept only that. Prices are for those
// who plan: an agent sees its own flavors alone, a reader all of them without who
// holds what of them, an operator everything.
//
// A part of it is chosen by ?provider=…, ?class=… (a model of GPU, or cpu) and
// ?region=…; with ?since=<tree>&wait=30s the answer waits until that part may be
// another than at that tree, and is 304 if it is not in time.
func marketHandler(of Market) http.Handler {
	var operators, readers rendered
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.URL.Query()
		q := market.Query{Provider: values.Get("provider"), Class: values.Get("class"), Region: values.Get("region")}
		id := identityOf(r)
		if id.Role == pki.Agent && id.Name != "" {
			if q.Provider != "" && q.Provider != id.Name {
				refuse(w, http.StatusForbidden, "ForeignCluster", "cluster %s is shown its own flavors alone: leave provider out", id.Name)
				return
			}
			q.Provider = id.Name
		}
		wait, ok := waitOf(w, r)
		if !ok {
			return
		}
		extend(w, wait+answerTimeout)
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		defer cancel()
		hash, flavors, ok := newerMarket(ctx, of, q, values.Get("since"))
		if !ok {
			w.Header().Set(wire.HeaderMarket, hash)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		last := &rendered{}
		all := q == (market.Query{})
		if id.Role == pki.Reader {
			flavors = withoutHolders(flavors)
		}
		switch {
		case !all:
			costs(w, partCost)
		case id.Role == pki.Reader:
			last = &readers
		default:
			last = &operators
		}
		w.Header().Set(wire.HeaderMarket, hash)
		w.Header().Set("Cache-Control", "no-store")
		if strings.Contains(r.Header.Get("Accept"), "application/json") {
			if flavors == nil {
				flavors = []v1alpha1.Flavor{}
			}
			answerJSON(w, http.StatusOK, wire.MarketAnswer{Market: hash, Flavors: flavors})
			return
		}
		stream, err := last.of(hash, flavors)
		if err != nil {
			refuse(w, http.StatusInternalServerError, "Internal", "%v", err)
			return
		}
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(stream) // a client that has gone is nobody to tell
	})
}

// newerMarket is what a query chooses at another tree than since, waited for
// until the context ends or the port is about to close. Without since it is what
// there is now.
func newerMarket(ctx context.Context, of Market, q market.Query, since string) (hash string, flavors []v1alpha1.Flavor, ok bool) {
	for {
		offered, flavors, changed := of.Offers(q)
		if hash = offered.Root.String(); since == "" || hash != since {
			return hash, flavors, true
		}
		select {
		case <-ctx.Done():
			return hash, nil, false
		case <-Stopping(ctx):
			return hash, nil, false
		case <-changed:
		}
	}
}

// withoutHolders are flavors without what names contracts, and with them tenants.
func withoutHolders(flavors []v1alpha1.Flavor) []v1alpha1.Flavor {
	out := make([]v1alpha1.Flavor, len(flavors))
	for i := range flavors {
		out[i] = flavors[i]
		out[i].Spec.Held, out[i].Spec.Refused, out[i].Spec.Usage = nil, nil, nil
	}
	return out
}

// rendered is the market as YAML, made once for each of its states: writing ten
// thousand flavors takes a good part of a second.
type rendered struct {
	mu     sync.Mutex
	hash   string
	stream []byte
}

func (c *rendered) of(hash string, flavors []v1alpha1.Flavor) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil && c.hash == hash {
		return c.stream, nil
	}
	stream, err := yamlStream(flavors)
	if err != nil {
		return nil, err
	}
	c.hash, c.stream = hash, stream
	return stream, nil
}

func yamlStream(flavors []v1alpha1.Flavor) ([]byte, error) {
	var out bytes.Buffer
	for i := range flavors {
		doc, err := yaml.Marshal(&flavors[i])
		if err != nil {
			return nil, fmt.Errorf("write flavor %s: %w", flavors[i].Ref(), err)
		}
		out.WriteString("---\n")
		out.Write(doc)
	}
	return out.Bytes(), nil
}
