package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// marketAnswer is the JSON form of the market.
type marketAnswer struct {
	Market  string            `json:"market"`
	Flavors []v1alpha1.Flavor `json:"flavors"`
}

// marketHandler shows the market as a YAML stream of Flavors, which `plan
// --market` reads, or as JSON to those who accept only that. Prices are for those
// who plan: an agent sees its own flavors alone, a reader all of them without who
// holds what of them, an operator everything.
func marketHandler(market Market) http.Handler {
	var operators, readers rendered
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := identityOf(r)
		all := market.Offers
		if id.Role == pki.Agent && id.Name != "" {
			all = func() (tree.Tree, []v1alpha1.Flavor) { return market.OffersOf(id.Name) }
		}
		offered, flavors := all()
		hash := offered.Root.String()
		last := &operators
		switch {
		case id.Role == pki.Agent && id.Name != "":
			last = &rendered{}
			costs(w, ownMarketCost)
		case id.Role == pki.Reader:
			flavors, last = withoutHolders(flavors), &readers
		}
		w.Header().Set(wire.HeaderMarket, hash)
		w.Header().Set("Cache-Control", "no-store")
		if strings.Contains(r.Header.Get("Accept"), "application/json") {
			if flavors == nil {
				flavors = []v1alpha1.Flavor{}
			}
			answerJSON(w, http.StatusOK, marketAnswer{Market: hash, Flavors: flavors})
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
