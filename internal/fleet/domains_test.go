package fleet

import (
	"strings"
	"testing"
)

// Every value of placement.within and of the domains of placement.spread that cannot be
// is refused where it stands, with what to write.
func TestDomains_WrongValues(t *testing.T) {
	for name, c := range map[string]struct{ placement, want string }{
		"another kind":        {"within: {by: country}", `spec.placement.within.by: unknown value "country"; write one of provider, zone, region, network, label`},
		"misspelt":            {"within: {by: regoin}", `spec.placement.within.by: unknown value "regoin" (did you mean "region"?)`},
		"capitals":            {"within: {by: Provider}", `spec.placement.within.by: unknown value "Provider" (did you mean "provider"?)`},
		"a rack":              {"within: {by: rack}", `spec.placement.within.by: "rack" is no kind of domain; write by: label, and label: with the key of the label that names it, such as topology.kubernetes.io/rack`},
		"a label as the kind": {"within: {by: topology.kubernetes.io/rack}", `"topology.kubernetes.io/rack" is no kind of domain`},
		"no kind":             {"within: {policy: Required}", "spec.placement.within.by is missing; write one of provider, zone, region, network, label"},
		"empty":               {"within: {}", "spec.placement.within.by is missing"},
		"no key":              {"within: {by: label}", "spec.placement.within.label is missing: by: label needs the key of a label, such as topology.kubernetes.io/rack"},
		"a key too many":      {"within: {by: zone, label: rack}", "spec.placement.within.label: goes with by: label only; write by: label, or take it out"},
		"no key of a label":   {"within: {by: label, label: 'a rack'}", `spec.placement.within.label: "a rack" is not a label key`},
		"policy":              {"within: {by: zone, policy: required}", `spec.placement.within.policy: unknown value "required" (did you mean "Required"?)`},
		"another policy":      {"within: {by: zone, policy: Always}", `spec.placement.within.policy: unknown value "Always"; write one of Required, Preferred, None`},
		"unknown field":       {"within: {by: zone, key: rack}", "key"},
		"a text":              {"within: provider", "spec.placement.within"},
		"same kind":           {"within: {by: region}\n    spread: {by: region}", "spec.placement.within: all replicas in one region cannot be spread by region too (placement.spread): take one of the two out, or write within: {policy: None}"},
		"wider":               {"within: {by: provider, policy: Preferred}\n    spread: [{by: zone}]", "all replicas in one provider cannot be spread by zone too"},
		"same label":          {"within: {by: label, label: rack}\n    spread: {by: label, label: rack}", "cannot be spread by label too"},
		"spread by a rack":    {"spread: {by: rack}", `spec.placement.spread.by: "rack" is no kind of domain`},
		"spread, no label":    {"spread: [{by: label}]", "spec.placement.spread[0].label is missing"},
		"spread, no kind":     {"spread: [{maxSkew: 1}]", "spec.placement.spread[0]"},
		"spread, negative":    {"spread: [{by: zone, maxSkew: -1}]", "spec.placement.spread[0].maxSkew: -1 is less than 0"},
		"spread, no skew":     {"spread: [{by: zone}, {by: region, maxSkew: 0}]", "spec.placement.spread[1].maxSkew: 0 counts as 1, the least there is; write 1, or leave it out"},
		"spread, one, none":   {"spread: {by: zone, maxSkew: 0}", "spec.placement.spread.maxSkew: 0 counts as 1"},
		"provider":            {"within: {by: provider}", ""},
		"label":               {"within: {by: label, label: topology.kubernetes.io/rack, policy: Preferred}", ""},
		"none":                {"within: {policy: None}\n    spread: {by: region}", ""},
		"finer":               {"within: {by: region}\n    spread: {by: provider}", ""},
		"across":              {"within: {by: network}\n    spread: [{by: zone}, {by: label, label: rack}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := "intents/vision/train.yaml"
			f := read(t, NewReader(), base().with(path, `apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: train, namespace: vision}
spec:
  replicas: 4
  resources: {cpu: "8"}
  placement:
    `+c.placement+"\n"), nil)
			got := strings.Join(diagnostics(f), "\n")
			if c.want == "" && strings.Contains(got, path) || !strings.Contains(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			if c.want != "" && !strings.Contains(got, path+":8") && !strings.Contains(got, path+":9") {
				t.Fatalf("no line in %q", got)
			}
		})
	}
}

// The fleet's default and the network of a location are held to the same.
func TestDomains_OfFleetAndLocation(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"default": {"fleet.yaml", "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  defaults:\n    within: {by: rack}\n", `fleet.yaml:6`},
		"policy":  {"fleet.yaml", "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  defaults:\n    within: {by: region, policy: none}\n", `spec.defaults.within.policy: unknown value "none" (did you mean "None"?)`},
		"network": {"clusters/paris.yaml", "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec:\n  roles: [provider]\n  location: {network: 'eu ib'}\n", `spec.location.network: "eu ib" is not a name of at most 63 plain characters without spaces; write for example eu-ib-1`},
		"fine":    {"clusters/paris.yaml", "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec:\n  roles: [provider]\n  location: {network: eu-ib-1}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), base().with(c.file, c.text), nil)
			got := strings.Join(diagnostics(f), "\n")
			if c.want == "" && strings.Contains(got, c.file) || !strings.Contains(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}
