package market

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/properties"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/zones"
)

// Bounds on a report. They are far above what a cluster has and far below what
// hurts: a report comes from a cluster that others administer.
const (
	maxFlavors   = 2000
	maxResources = 64
	maxHeld      = 5000
	maxLabels    = 128
	maxText      = 253
	maxReason    = 512
	maxWindows   = 64
	maxAllWindow = 4096    // of a report
	maxEntries   = 400_000 // of all lists of a report: what is kept of it takes memory by them, whatever they take on the way
	maxUnits     = 1024
	maxRatio     = 100
	maxAmount    = 1 << 60
	maxPrice     = 1_000_000_000
)

// keyMaxRisk among the ratios of overcommit is a probability.
const keyMaxRisk = "maxRisk"

var (
	// nameForm is a DNS label (RFC 1123), as flavors, clusters and contracts are named.
	nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// resourceForm is a resource's name: plain, or qualified by a domain.
	resourceForm = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	clockForm    = regexp.MustCompile(`^(([01]\d|2[0-3]):[0-5]\d|24:00)$`)
	dayForm      = regexp.MustCompile(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)$`)
	currencyForm = regexp.MustCompile(`^([A-Z]{3})?$`)
)

// check bounds and normalises a report, and gives its flavors by name. A report
// is refused whole at its first mistake, which the error names.
func check(cluster string, flavors []v1alpha1.Flavor) (map[string]*v1alpha1.Flavor, error) {
	if !nameForm.MatchString(cluster) {
		return nil, fmt.Errorf("%.80q is not a cluster's name", cluster)
	}
	if len(flavors) > maxFlavors {
		return nil, fmt.Errorf("%d flavors, at most %d: offer equal nodes as one flavor", len(flavors), maxFlavors)
	}
	out := make(map[string]*v1alpha1.Flavor, len(flavors))
	windows, entries := 0, 0
	for i := range flavors {
		f := flavors[i]
		if entries += entriesOf(&f); entries > maxEntries {
			return nil, fmt.Errorf("more than %d resources, contracts, labels and prices in one report: offer equal nodes as one flavor, and report no contract that is gone", maxEntries)
		}
		if p := f.Spec.Price; p != nil {
			windows += len(p.Windows)
		}
		if windows > maxAllWindow {
			return nil, fmt.Errorf("more than %d price windows in one report: state prices that change by the hour in a price table", maxAllWindow)
		}
		if !nameForm.MatchString(f.Metadata.Name) {
			return nil, fmt.Errorf("flavor %d: metadata.name: %.80q is not a name: lower-case letters, digits and '-', at most 63", i, f.Metadata.Name)
		}
		if f.Metadata.Namespace != cluster {
			return nil, fmt.Errorf("flavor %s: metadata.namespace: %.80q is another cluster", f.Metadata.Name, f.Metadata.Namespace)
		}
		if out[f.Metadata.Name] != nil {
			return nil, fmt.Errorf("flavor %s is listed twice", f.Metadata.Name)
		}
		if err := checkFlavor(&f); err != nil {
			return nil, fmt.Errorf("flavor %s: %w", f.Metadata.Name, err)
		}
		clean(&f)
		out[f.Metadata.Name] = &f
	}
	return out, nil
}

// entriesOf is how many entries a flavor's lists have, empty ones counted too.
func entriesOf(f *v1alpha1.Flavor) int {
	s := &f.Spec
	n := len(s.Capacity) + len(s.Used) + len(s.ScalableTo) + len(s.Overcommit) + len(s.Refused) +
		len(f.Metadata.Labels) + len(f.Metadata.Annotations) + len(s.Labels) + len(s.NodeSelector) + onnodes.Entries(s) + len(s.Properties.SecurityStandards)
	if p := s.Partition; p != nil {
		n += len(p.Min) + len(p.Step)
	}
	for _, list := range []map[string]v1alpha1.Resources{s.Held, s.Usage} {
		n += 2 * len(list)
		for _, r := range list {
			n += len(r)
		}
	}
	if p := s.Price; p != nil {
		n += len(p.PerHour) + len(p.Spot)
		if p.Reserved != nil {
			n += len(p.Reserved.UnitPrices)
		}
		for _, w := range p.Windows {
			n += 1 + len(w.Days) + len(w.PerHour)
		}
	}
	return n
}

func checkFlavor(f *v1alpha1.Flavor) error {
	s := &f.Spec
	for _, r := range []struct {
		path string
		list v1alpha1.Resources
	}{{"capacity", s.Capacity}, {"used", s.Used}, {"scalableTo", s.ScalableTo}} {
		if err := checkResources(r.path, r.list); err != nil {
			return err
		}
	}
	if len(s.Held) > maxHeld {
		return fmt.Errorf("spec.held: %d contracts, at most %d", len(s.Held), maxHeld)
	}
	for name, r := range s.Held {
		if !nameForm.MatchString(name) {
			return fmt.Errorf("spec.held: %.80q is not a contract's name", name)
		}
		if err := checkResources("held."+name, r); err != nil {
			return err
		}
	}
	if err := onnodes.Report(s); err != nil {
		return err
	}
	if len(s.Usage) > maxHeld {
		return fmt.Errorf("spec.usage: %d contracts, at most %d", len(s.Usage), maxHeld)
	}
	for name, r := range s.Usage {
		if !nameForm.MatchString(name) {
			return fmt.Errorf("spec.usage: %.80q is not a contract's name", name)
		}
		if err := checkResources("usage."+name, r); err != nil {
			return err
		}
	}
	if len(s.Refused) > maxHeld {
		return fmt.Errorf("spec.refused: %d contracts, at most %d", len(s.Refused), maxHeld)
	}
	for name, why := range s.Refused {
		if !nameForm.MatchString(name) || why == "" || !isText(why, maxReason) {
			return fmt.Errorf("spec.refused: %.80q: a contract's name with a reason of one line, at most %d bytes, is needed", name, maxReason)
		}
	}
	if p := s.Partition; p != nil {
		for path, list := range map[string]v1alpha1.Resources{"partition.min": p.Min, "partition.step": p.Step} {
			if err := checkResources(path, list); err != nil {
				return err
			}
		}
	}
	for name, ratio := range s.Overcommit {
		most := int64(maxRatio)
		if name == keyMaxRisk {
			most = 1
		}
		if !resourceForm.MatchString(name) || ratio.Sign() < 0 || ratio.Cmp(v1alpha1.DecimalFromInt(most)) > 0 {
			return fmt.Errorf("spec.overcommit: %.80q: a ratio from 0 to %d is needed", name, most)
		}
	}
	if err := checkGPU(s.GPU); err != nil {
		return err
	}
	if err := checkPrice(s.Price); err != nil {
		return err
	}
	if err := checkProperties(&s.Properties); err != nil {
		return err
	}
	if y := s.Drain.UTC().Year(); y < 0 || y > 9999 {
		return fmt.Errorf("spec.drain: the year %d cannot be written: state a time between the years 0 and 9999 UTC, or none", y)
	}
	return checkTexts(f)
}

// checkProperties has the bounds of a reviewed file. What policies compare is plain ASCII.
func checkProperties(p *v1alpha1.FlavorProperties) error {
	if problems := properties.Of(p); len(problems) > 0 {
		return fmt.Errorf("spec.properties.%s", problems[0])
	}
	for i, name := range p.SecurityStandards {
		if !plain(name) {
			return fmt.Errorf("spec.properties.securityStandards[%d]: %+.80q: only plain ASCII", i, name)
		}
	}
	return nil
}

func checkResources(path string, r v1alpha1.Resources) error {
	if len(r) > maxResources {
		return fmt.Errorf("spec.%s: %d resources, at most %d", path, len(r), maxResources)
	}
	for name, a := range r {
		if !resourceForm.MatchString(name) {
			return fmt.Errorf("spec.%s: %.80q is not a resource's name", path, name)
		}
		if n := a.Int64(); n < 0 || n > maxAmount {
			return fmt.Errorf("spec.%s.%s: %d is out of bounds", path, name, n)
		}
	}
	return nil
}

func checkGPU(g *v1alpha1.FlavorGPU) error {
	if g == nil {
		return nil
	}
	switch {
	case g.UnitsPerGPU < 0 || g.UnitsPerGPU > maxUnits:
		return fmt.Errorf("spec.gpu.unitsPerGPU: %d is not between 0 and %d", g.UnitsPerGPU, maxUnits)
	case g.Memory.Int64() < 0 || g.Memory.Int64() > 1<<44:
		return fmt.Errorf("spec.gpu.memory: %d bytes are out of bounds", g.Memory.Int64())
	case g.ResourceName != "" && !resourceForm.MatchString(g.ResourceName):
		return fmt.Errorf("spec.gpu.resourceName: %.80q is not a resource's name", g.ResourceName)
	}
	return short(map[string]string{
		"gpu.vendor": g.Vendor, "gpu.model": g.Model, "gpu.architecture": g.Architecture, "gpu.tier": g.Tier,
		"gpu.interconnect": g.Interconnect, "gpu.computeCapability": g.ComputeCapability, "gpu.sharing": g.Sharing, "gpu.profile": g.Profile,
	})
}

func checkPrice(p *v1alpha1.Price) error {
	if p == nil {
		return nil
	}
	if !currencyForm.MatchString(p.Currency) {
		return fmt.Errorf("spec.price.currency: %.80q is not a currency: three capitals such as EUR", p.Currency)
	}
	if len(p.Windows) > maxWindows {
		return fmt.Errorf("spec.price.windows: %d, at most %d", len(p.Windows), maxWindows)
	}
	lists := map[string]v1alpha1.UnitPrices{"perHour": p.PerHour, "spot": p.Spot}
	if p.Flat != nil {
		lists["flat"] = v1alpha1.UnitPrices{"flat": *p.Flat}
	}
	if p.Reserved != nil {
		lists["reserved"] = p.Reserved.UnitPrices
		if term := p.Reserved.Term; term.Duration < 0 {
			return fmt.Errorf("spec.price.reserved.term: %s is less than nothing: state how long is committed to, such as 720h", term)
		}
	}
	for i, w := range p.Windows {
		lists[fmt.Sprintf("windows[%d]", i)] = w.PerHour
		if err := checkWindow(w.Window); err != nil {
			return fmt.Errorf("spec.price.windows[%d]: %w", i, err)
		}
	}
	for path, list := range lists {
		if len(list) > maxResources {
			return fmt.Errorf("spec.price.%s: %d prices, at most %d", path, len(list), maxResources)
		}
		for name, d := range list {
			if !resourceForm.MatchString(name) || d.Sign() < 0 || d.Cmp(v1alpha1.DecimalFromInt(maxPrice)) > 0 {
				return fmt.Errorf("spec.price.%s: %.80q: a price from 0 to %d is needed", path, name, maxPrice)
			}
		}
	}
	return nil
}

func checkWindow(w v1alpha1.Window) error {
	for _, s := range []string{w.From, w.To} {
		if !clockForm.MatchString(s) {
			return fmt.Errorf("%.20q is not a time of day such as 20:00", s)
		}
	}
	if len(w.Days) > 7 {
		return fmt.Errorf("%d days, at most 7", len(w.Days))
	}
	for _, d := range w.Days {
		if !dayForm.MatchString(d) {
			return fmt.Errorf("%.20q is not a day: Mon, Tue, Wed, Thu, Fri, Sat or Sun", d)
		}
	}
	if _, err := zones.Load(w.Timezone); err != nil {
		return fmt.Errorf("timezone %.80q is not known", w.Timezone)
	}
	return nil
}

func checkTexts(f *v1alpha1.Flavor) error {
	s := &f.Spec
	for path, m := range map[string]map[string]string{
		"metadata.labels": f.Metadata.Labels, "metadata.annotations": f.Metadata.Annotations, "spec.labels": s.Labels, "spec.nodeSelector": s.NodeSelector,
	} {
		if len(m) > maxLabels {
			return fmt.Errorf("%s: %d entries, at most %d", path, len(m), maxLabels)
		}
		for k, v := range m {
			if len(k) > 2*maxText || len(v) > 4*maxText {
				return fmt.Errorf("%s: %.80q is too long", path, k)
			}
			if !plain(k) || !plain(v) {
				return fmt.Errorf("%s: %+.80q: %+.80q: only plain ASCII", path, k, v)
			}
		}
	}
	if e := s.Endpoint; e != "" {
		if u, err := url.Parse(e); err != nil || u.Host == "" || u.User != nil || len(e) > maxText || !plain(e) {
			return fmt.Errorf("spec.endpoint: %+.80q is not the URL of an API server (without credentials)", e)
		}
	}
	l := s.Location
	if !isText(l.City, maxText) {
		return fmt.Errorf("spec.location.city: at most %d bytes of letters on one line", maxText)
	}
	return short(map[string]string{
		"type": s.Type, "architecture": s.Architecture, "pool": s.Pool, "class": s.Class,
		"location.region": l.Region, "location.zone": l.Zone, "location.country": l.Country, "location.network": l.Network,
	})
}

func short(texts map[string]string) error {
	for path, s := range texts {
		if len(s) > maxText || !plain(s) {
			return fmt.Errorf("spec.%s: at most %d characters of plain ASCII on one line", path, maxText)
		}
	}
	return nil
}

// plain reports whether a text is printable ASCII. What people compare with
// their intents must not look like what it is not: a Cyrillic letter in a
// model's name would.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// clean brings a checked flavor to the form that is kept: normalised GPU names,
// and of labels under our own domain, which would pass for the daemon's, only the level at
// which Liqo enforces limits.
func clean(f *v1alpha1.Flavor) {
	f.APIVersion, f.Kind = v1alpha1.APIVersion, v1alpha1.KindFlavor
	f.Metadata.Labels, f.Metadata.Annotations = foreign(f.Metadata.Labels), foreign(f.Metadata.Annotations)
	level := f.Spec.Labels[v1alpha1.LabelEnforcement]
	if f.Spec.Labels = foreign(f.Spec.Labels); !v1alpha1.Enforcement(level).Below(v1alpha1.EnforceNone) {
		if f.Spec.Labels == nil {
			f.Spec.Labels = map[string]string{}
		}
		f.Spec.Labels[v1alpha1.LabelEnforcement] = level
	}
	normaliseGPU(f)
}

func foreign(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if !strings.HasPrefix(k, v1alpha1.Group+"/") {
			out[k] = v
		}
	}
	return out
}

// isText reports whether a text may be shown to people as it is.
func isText(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
