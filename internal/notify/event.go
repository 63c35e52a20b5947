package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Event is one thing that became of an intent, a contract or a budget.
type Event struct {
	// ID names what is told: the same again has the same.
	ID string `json:"id"`
	// Kind is one of v1alpha1.NotifyEvents.
	Kind string `json:"kind"`
	// At is when it happened, not when it is told.
	At       v1alpha1.Time `json:"at"`
	Fleet    string        `json:"fleet"`
	Tenant   string        `json:"tenant"`
	Intent   string        `json:"intent,omitempty"`
	Contract string        `json:"contract,omitempty"`
	Provider string        `json:"provider,omitempty"`
	Flavor   string        `json:"flavor,omitempty"`
	Consumer string        `json:"consumer,omitempty"`
	// Source is the tenant's own repository, where that is what froze.
	Source string `json:"source,omitempty"`
	// Hourly price in Currency; absent where there is none.
	Hourly   *v1alpha1.Decimal `json:"hourly,omitempty"`
	Currency string            `json:"currency,omitempty"`
	// Reason code, and Text: a sentence for people, which begins with the
	// subject.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text"`
}

// named gives an event its id: of what it tells, and of what tells it from the
// next of its kind.
func named(e Event, what string) Event {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Fleet, e.Tenant, e.Intent, e.Contract, e.Kind, what}, "\x00")))
	e.ID = hex.EncodeToString(sum[:16])
	e.Text = escape.Line(e.Text)
	return e
}

// ofContract is an event of a contract.
func ofContract(fleet, kind string, c *v1alpha1.Contract, at v1alpha1.Time, reason, text string) Event {
	hourly := c.Spec.Price.Hourly
	e := Event{
		Kind: kind, At: at, Fleet: fleet, Tenant: c.Metadata.Namespace, Intent: c.Spec.Intent.Name, Contract: c.Metadata.Name,
		Provider: c.Spec.Provider, Flavor: c.Spec.Flavor, Consumer: c.Spec.Consumer, Hourly: &hourly, Currency: c.Spec.Price.Currency,
		Reason: reason, Text: c.Metadata.Namespace + "/" + c.Spec.Intent.Name + " " + text,
	}
	return named(e, stamp(at))
}

// where is a contract's place and size: "paris/h100-pool (4x nvidia-h100, 12.09
// EUR/h)".
func where(c *v1alpha1.Contract) string {
	what := c.Spec.Resources[v1alpha1.CPU].Canonical(v1alpha1.CPU) + " cpu"
	if g := c.Spec.GPUs; g != nil && g.Count > 0 {
		what = fmt.Sprintf("%dx %s", g.Count, g.Model)
	}
	return fmt.Sprintf("%s (%s, %s %s/h)", place(c), what, c.Spec.Price.Hourly.Text(), c.Spec.Price.Currency)
}

func place(c *v1alpha1.Contract) string { return c.Spec.Provider + "/" + c.Spec.Flavor }

func stamp(t v1alpha1.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// because is a reason as the end of a sentence.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
