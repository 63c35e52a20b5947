package manifests

import (
	"regexp"
	"strings"
)

// Names of what an install base makes for a whole cluster, and where they are named.
var (
	wholeCluster = regexp.MustCompile(`(?m)^kind: (ClusterRole|ClusterRoleBinding|(Validating|Mutating)AdmissionPolicy(Binding)?|MutatingWebhookConfiguration|PriorityLevelConfiguration|FlowSchema)$`)
	ownLine      = regexp.MustCompile(`(?m)^(  name: )(\S+)$`)
	referred     = regexp.MustCompile(`(kind: ClusterRole, name: |policyName: |priorityLevelConfiguration: \{name: )([^\s,}]+)`)
)

// sharedName is of the cluster, whichever fleet installs it: it closes Liqo's own class
// to others, and closing it twice says nothing more.
const sharedName = "fleetbroker-class-default"

// NameInstall puts a fleet's id into the names that a file of the install bases gives
// to objects of a whole cluster, and where it refers to them: two fleets may be
// installed in one cluster, each by its own version. Names in namespaces stay, which
// kustomize's namespace keeps apart.
func NameInstall(fleet string, text []byte) []byte {
	if fleet == "" {
		return text
	}
	docs := strings.Split(string(NameFor(fleet, text)), "\n---\n")
	for i, doc := range docs {
		if wholeCluster.MatchString(doc) {
			if at := ownLine.FindStringSubmatchIndex(doc); at != nil {
				doc = doc[:at[4]] + ofInstall(fleet, doc[at[4]:at[5]]) + doc[at[5]:]
			}
		}
		docs[i] = referred.ReplaceAllStringFunc(doc, func(s string) string {
			at := referred.FindStringSubmatch(s)
			return at[1] + ofInstall(fleet, at[2])
		})
	}
	return []byte(strings.Join(docs, "\n---\n"))
}

// ofInstall is a name with the fleet's id in it; those of others, and those that have
// it, stay.
func ofInstall(fleet, name string) string {
	if name == sharedName || strings.Contains(name, fleet) {
		return name
	}
	for _, prefix := range []string{policyPrefix, "fleet-"} {
		if rest, ours := strings.CutPrefix(name, prefix); ours {
			return prefix + fleet + "-" + rest
		}
	}
	if name == "market.fleetbroker.io" {
		return fleet + "." + name
	}
	return name
}
