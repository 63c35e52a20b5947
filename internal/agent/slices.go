package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"sort"
	"strings"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"

	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// labelReplicated is on the provider's copy of a consumer's ResourceSlice
// (Liqo v1.2.0, pkg/consts/replication.go).
const labelReplicated = "liqo.io/replicated"

// grant is what Liqo has granted under one slice's name.
type grant struct {
	name      string
	resources v1alpha1.Resources
	// pool that the slice's pods are pinned to, and flavor it says it is of; both may be "".
	pool, flavor string
}

// grantsOf joins Quotas and the slices they were made for. Slices of several
// consumers under one name add up: none of them can be forgotten. Those of another
// fleet have a name that no contract of this one has.
func grantsOf(quotas []*offloadingv1beta1.Quota, slices []*authv1beta1.ResourceSlice, fleet *string) (grants []grant, sliceByUser map[string]string) {
	byKey := map[[2]string]*grant{} // namespace, slice name
	sliceByUser = map[string]string{}
	named := map[[2]string]string{}
	for _, s := range slices {
		if id := enforce.FleetOf(s); fleet != nil && id != "" && id != *fleet && s.Labels[labelReplicated] == "true" {
			named[[2]string{s.Namespace, s.Name}] = heldName(s.Name + "." + id)
		}
	}
	for _, q := range quotas {
		slice := sliceOfQuota(q)
		name := either(named[[2]string{q.Namespace, slice}], heldName(slice))
		sliceByUser[escapeLabel(q.Spec.User)] = name
		key := [2]string{q.Namespace, name}
		if byKey[key] == nil {
			byKey[key] = &grant{name: name, resources: v1alpha1.Resources{}}
		}
		byKey[key].resources = byKey[key].resources.Add(amounts(q.Spec.Resources))
	}
	for _, s := range slices {
		if s.Labels[labelReplicated] != "true" {
			continue // one of this cluster's own, towards another provider
		}
		name := either(named[[2]string{s.Namespace, s.Name}], heldName(s.Name))
		key := [2]string{s.Namespace, name}
		g := byKey[key]
		if g == nil {
			if !isGranted(s) {
				continue
			}
			g = &grant{name: name, resources: v1alpha1.Resources{}}
			byKey[key] = g
		}
		if isGranted(s) {
			g.resources = g.resources.Max(amounts(s.Status.Resources))
		}
		// What the agent itself granted says best of what.
		g.pool = s.Status.NodeSelector[labelPool]
		g.flavor = either(s.Status.NodeLabels[enforce.LabelFlavor], s.Annotations[v1alpha1.AnnotationFlavor])
	}
	return merged(byKey), sliceByUser
}

// merged adds up grants of one name, in order of names.
func merged(byKey map[[2]string]*grant) []grant {
	byName := map[string]*grant{}
	keys := make([][2]string, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		return keys[i][1] < keys[j][1] || keys[i][1] == keys[j][1] && keys[i][0] < keys[j][0]
	})
	var names []string
	for _, key := range keys {
		g := byKey[key]
		if have := byName[g.name]; have != nil {
			have.resources = have.resources.Add(g.resources)
			continue
		}
		byName[g.name] = g
		names = append(names, g.name)
	}
	out := make([]grant, 0, len(names))
	for _, name := range names {
		out = append(out, *byName[name])
	}
	return out
}

// enforcementOf is how Liqo holds consumers to their slices here, as the newest
// Quota says: the controller's flag shows nowhere else. "" while there is none.
func enforcementOf(quotas []*offloadingv1beta1.Quota) string {
	var newest *offloadingv1beta1.Quota
	for _, q := range quotas {
		if newest == nil || newest.CreationTimestamp.Before(&q.CreationTimestamp) {
			newest = q
		}
	}
	if newest == nil {
		return ""
	}
	return string(newest.Spec.LimitsEnforcement)
}

// isGranted reports whether a slice's resources are accepted.
func isGranted(s *authv1beta1.ResourceSlice) bool {
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			return c.Status == authv1beta1.ResourceSliceConditionAccepted
		}
	}
	return false
}

// sliceOfQuota is the slice that a Quota was made for: its controller, or, from
// its name "<slice>-<12 hexadecimal digits>", what is left of it.
func sliceOfQuota(q *offloadingv1beta1.Quota) string {
	for _, owner := range q.OwnerReferences {
		if owner.Kind == authv1beta1.ResourceSliceKind {
			return owner.Name
		}
	}
	return withoutUserSuffix(q.Spec.User)
}

// userSuffix is what Liqo adds to a slice's name to make its user: the first
// twelve digits of the SHA-256 of the consumer's id.
var userSuffix = regexp.MustCompile(`-[0-9a-f]{12}$`)

func withoutUserSuffix(user string) string {
	if at := userSuffix.FindStringIndex(user); at != nil {
		return user[:at[0]]
	}
	return user
}

// notLabel is what Liqo replaces by '-' in a user that becomes a label's value
// (pkg/utils/resource/labels.go).
var notLabel = regexp.MustCompile(`[^\w\-.]`)

func escapeLabel(s string) string { return notLabel.ReplaceAllString(s, "-") }

// heldName is the name under which a slice is told. Those of contracts stay as
// they are; others that a report cannot carry get a hash that tells them apart.
func heldName(slice string) string {
	name := dnsName(slice)
	if name == slice && name != "" {
		return v1alpha1.CutName(name, maxName)
	}
	sum := sha256.Sum256([]byte(slice))
	hash := hex.EncodeToString(sum[:4])
	return strings.Trim(v1alpha1.CutName(name, maxName-len(hash)-1)+"-"+hash, "-")
}

// dnsName makes a name of what a label's value may be: lower case, with '-'
// for every character a name may not have.
func dnsName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
	return strings.Trim(s, "-")
}
