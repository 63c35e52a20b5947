package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Bounds of a change.
const (
	// MaxDays of the past whose demand is replayed, and DefaultDays.
	MaxDays     = 90
	DefaultDays = 14
	// MaxGrowth is how often the demand may be taken.
	MaxGrowth = 10
	// MaxTimes is by what a price may be multiplied.
	MaxTimes = 100
	// maxParts is how many clusters may go, and prices change.
	maxParts = 50
)

// Change is what is otherwise than it is. The zero Change replays what was.
type Change struct {
	// Days of the past whose demand is replayed; 0 is DefaultDays.
	Days int `json:"days"`
	// Growth multiplies the demand: "1.5" takes every second intent twice; "" is 1.
	Growth string `json:"growth,omitempty"`
	// Without are provider clusters that are gone.
	Without []string `json:"without,omitempty"`
	// Prices that are others.
	Prices []Price `json:"prices,omitempty"`
	// Unlimited drops the tenants' quotas and budgets, under which demand that grows waits.
	Unlimited bool `json:"unlimited,omitempty"`
}

// Price multiplies all prices of a provider.
type Price struct {
	// Of is a provider cluster, or "" for all.
	Of string `json:"of,omitempty"`
	// Times is by what, such as "0.8".
	Times string `json:"times"`
}

// Check fills in defaults and says what of a change cannot be simulated on a fleet with
// these providers. The error names the field.
func (c *Change) Check(providers []string) error {
	if c.Days == 0 {
		c.Days = DefaultDays
	}
	if c.Days < 1 || c.Days > MaxDays {
		return fmt.Errorf("days: %d is not from 1 to %d", c.Days, MaxDays)
	}
	if c.Growth = strings.TrimSpace(c.Growth); c.Growth == "" {
		c.Growth = "1"
	}
	if d, err := factor(c.Growth); err != nil || d.Cmp(v1alpha1.DecimalFromInt(MaxGrowth)) > 0 {
		return fmt.Errorf("growth: %.20q is not a number above 0 and up to %d, such as 1.5", c.Growth, MaxGrowth)
	}
	if len(c.Without) > maxParts || len(c.Prices) > maxParts {
		return fmt.Errorf("without, prices: more than %d", maxParts)
	}
	for _, name := range c.Without {
		if !slices.Contains(providers, name) {
			return fmt.Errorf("without: no provider is called %.60q", name)
		}
	}
	slices.Sort(c.Without)
	if c.Without = slices.Compact(c.Without); len(c.Without) > 0 && len(c.Without) == len(providers) {
		return fmt.Errorf("without: no provider is left")
	}
	for i := range c.Prices {
		p := &c.Prices[i]
		if p.Of != "" && !slices.Contains(providers, p.Of) {
			return fmt.Errorf("prices: no provider is called %.60q", p.Of)
		}
		p.Times = strings.TrimSpace(p.Times)
		if d, err := factor(p.Times); err != nil || d.Cmp(v1alpha1.DecimalFromInt(MaxTimes)) > 0 {
			return fmt.Errorf("prices: times: %.20q is not a number above 0 and up to %d, such as 0.8", p.Times, MaxTimes)
		}
	}
	return nil
}

// factor is a number above 0. A number in exponent form, or of absurd length, is none.
func factor(text string) (v1alpha1.Decimal, error) {
	if len(text) > 12 || strings.ContainsAny(text, "eE") {
		return v1alpha1.Zero, strconv.ErrSyntax
	}
	d, err := v1alpha1.ParseDecimal(text)
	if err == nil && d.Sign() <= 0 {
		err = strconv.ErrRange
	}
	return d, err
}

// Times is a factor that Check accepted.
func Times(text string) v1alpha1.Decimal {
	d, _ := factor(text)
	return d
}

// Words are what is changed, for people.
func (c *Change) Words() string {
	var parts []string
	if c.Growth != "" && c.Growth != "1" {
		parts = append(parts, "demand × "+c.Growth)
	}
	if len(c.Without) > 0 {
		parts = append(parts, "without "+strings.Join(c.Without, ", "))
	}
	for _, p := range c.Prices {
		of := p.Of
		if of == "" {
			of = "all"
		}
		parts = append(parts, "prices of "+of+" × "+p.Times)
	}
	if c.Unlimited {
		parts = append(parts, "no quotas and budgets")
	}
	if len(parts) == 0 {
		return "nothing changed"
	}
	return strings.Join(parts, "; ")
}

// Input is the fleet as a round knew it. It is read and never changed.
type Input struct {
	Now      v1alpha1.Time
	Policy   *v1alpha1.FleetSpec
	Clusters map[string]*v1alpha1.Cluster
	Tenants  map[string]*v1alpha1.Tenant
	Intents  []*model.Intent
	Ledger   *ledger.Ledger
	Offers   []*model.Offer
	// Commit of the ledger.
	Commit string
}

// Providers are the clusters that offer something, by name.
func (in *Input) Providers() []string {
	var out []string
	for _, o := range in.Offers {
		if name := o.Flavor.Metadata.Namespace; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// The states of a job.
const (
	Running   = "Running"
	Done      = "Done"
	Failed    = "Failed"
	Cancelled = "Cancelled"
)

// Job is a simulation that somebody asked for.
type Job struct {
	ID string `json:"id"`
	// State is Running, Done, Failed or Cancelled.
	State  string `json:"state"`
	Change Change `json:"change"`
	// Words are what is changed, for people.
	Words   string        `json:"words"`
	Started v1alpha1.Time `json:"started"`
	Ended   v1alpha1.Time `json:"ended,omitzero"`
	// Progress from 0 to 100.
	Progress int `json:"progress"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
	// Ledger is the commit that it began from, From and To the time whose demand was
	// replayed.
	Ledger string        `json:"ledger,omitempty"`
	From   v1alpha1.Time `json:"from,omitzero"`
	To     v1alpha1.Time `json:"to,omitzero"`
	// Rows of the demand as it was; Left more were left out, the oldest of the tenants that
	// have most.
	Rows int `json:"rows"`
	Left int `json:"rowsLeftOut,omitempty"`
	// AsIs replays what was, Changed with the change; absent until Done.
	AsIs    *Figures `json:"asIs,omitempty"`
	Changed *Figures `json:"changed,omitempty"`
}

// Figures are what came of the demand. Waits are in seconds, money in the fleet's
// currency.
type Figures struct {
	Arrived     int              `json:"arrived"`
	Placed      int              `json:"placed"`
	NeverPlaced int              `json:"neverPlaced"`
	WaitP50     int64            `json:"waitP50"`
	WaitP90     int64            `json:"waitP90"`
	WaitMax     int64            `json:"waitMax"`
	Cost        v1alpha1.Decimal `json:"cost"`
	HourlyEnd   v1alpha1.Decimal `json:"hourlyEnd"`
	HourlyPeak  v1alpha1.Decimal `json:"hourlyPeak"`
	// GPUs there are, the mean part of them that was held, and how many are idle at the end.
	GPUs      float64 `json:"gpus"`
	GPUMean   float64 `json:"gpuMean"`
	GPUIdle   float64 `json:"gpuIdleAtEnd"`
	Providers []Use   `json:"providers"`
	Flavors   []Use   `json:"flavors"`
	Tenants   []Share `json:"tenants"`
	// Never are those that were never placed, alike ones together.
	Never []Never `json:"never,omitempty"`
}

// Use is how full a provider or flavor was.
type Use struct {
	Name string `json:"name"`
	Size string `json:"size"`
	// Mean part, from 0 to 1.
	Mean float64          `json:"mean"`
	Cost v1alpha1.Decimal `json:"cost"`
}

// Share is what a tenant got.
type Share struct {
	Tenant      string           `json:"tenant"`
	Arrived     int              `json:"arrived"`
	NeverPlaced int              `json:"neverPlaced"`
	WaitP50     int64            `json:"waitP50"`
	WaitP90     int64            `json:"waitP90"`
	Cost        v1alpha1.Decimal `json:"cost"`
	AskedHours  float64          `json:"askedGPUHours"`
	GotHours    float64          `json:"gotGPUHours"`
}

// Never are intents that were never placed.
type Never struct {
	N      int    `json:"n"`
	Tenant string `json:"tenant"`
	Asks   string `json:"asks"`
	Why    string `json:"why"`
}

// Busy is a simulation that is not begun, because others run.
type Busy struct{ Text string }

// Error says who has to end first.
func (b *Busy) Error() string { return b.Text }

// Bad is a change that cannot be simulated.
type Bad struct{ Text string }

// Error names the field.
func (b *Bad) Error() string { return b.Text }
