package policymatch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
)

// MaxModels bounds match.models.
const MaxModels = 64

// Condition is the policy's condition on an offer, in CEL: require itself where match
// selects no offers.
func Condition(p *v1alpha1.Policy) string {
	var selects []string
	if names := p.Match.Models; len(names) > 0 {
		selects = append(selects, ofModels(names))
	}
	if d := p.Match.AboveHourly; d != nil {
		// The figure is a float (an offer without a price has infinity), and so is the literal.
		selects = append(selects, "flavor.price.hourly > double("+strconv.Quote(d.String())+")")
	}
	if len(selects) == 0 {
		return p.Require
	}
	// The line break ends a comment of require's last line.
	return "!(" + strings.Join(selects, " && ") + ") || (" + p.Require + "\n)"
}

// ofModels is true of an offer with a GPU of one of these names, as the market calls them.
func ofModels(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		if strings.EqualFold(strings.TrimSpace(name), gpunames.Any) {
			return "has(flavor.gpu)"
		}
		quoted[i] = strconv.Quote(gpunames.Model(name))
	}
	return "has(flavor.gpu) && flavor.gpu.model in [" + strings.Join(quoted, ", ") + "]"
}

// Problems are what is wrong with a policy's match, below the policy.
func Problems(p *v1alpha1.Policy) (out []domains.Problem) {
	if n := len(p.Match.Models); n > MaxModels {
		out = append(out, domains.Problem{At: []any{"match", "models"}, Text: fmt.Sprintf(": %d models, at most %d; write any for all, or tell them apart in require", n, MaxModels)})
	}
	for i, name := range p.Match.Models {
		if strings.TrimSpace(name) == "" {
			out = append(out, domains.Problem{At: []any{"match", "models", i}, Text: " is empty; leave models out for every offer, or write any for all with GPUs"})
		}
	}
	if d := p.Match.AboveHourly; d != nil && d.Sign() < 0 {
		out = append(out, domains.Problem{At: []any{"match", "aboveHourly"}, Text: fmt.Sprintf(": %s is negative; write a price from 0", d)})
	}
	return out
}

// Excluded says which flavors of files a policy excludes because it compares a number that
// they do not state; "" for none.
func Excluded(policy *model.Policy, flavors []*v1alpha1.Flavor, clusters map[string]*v1alpha1.Cluster) string {
	const shown = 3
	var names []string
	missing := ""
	for _, fl := range flavors {
		cl := clusters[fl.Metadata.Namespace]
		if fl.Spec.Capacity == nil || cl == nil || policy.Predicate == nil {
			continue
		}
		stated := *fl
		stated.Spec.Properties = fl.Spec.Properties.Over(cl.Spec.Properties)
		if _, err := policy.Predicate.Eval(&v1alpha1.ResourceIntent{}, &stated, cl); errors.Is(err, celenv.ErrAbsent) {
			names = append(names, fl.Ref())
			missing, _, _ = strings.Cut(err.Error()[strings.Index(err.Error(), ": ")+2:], " is not stated")
		}
	}
	n := len(names)
	if n == 0 {
		return ""
	}
	list := strings.Join(names[:min(n, shown)], ", ")
	if n > shown {
		list += fmt.Sprintf(" and %d more", n-shown)
	}
	return fmt.Sprintf("excludes %s, because %s is not stated there; state it under properties of the flavor's file or of its cluster's, or write has(%s) to tell them apart", list, missing, missing)
}
