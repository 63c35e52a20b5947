package manifests

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// policyFiles keep tenants apart on a consumer. They were tried against real
// Liqo v1.2.0 on Kubernetes 1.36, where MutatingAdmissionPolicy is v1; test/e2e/policies
// runs every case on a real API server. Validating ones are v1 since Kubernetes 1.30 and
// use only functions of its CEL.
//
//go:embed policies/*.yaml
var policyFiles embed.FS

// olderFiles are the policies of the renderings before this one: policies-<n> has
// those that were others after n.
//
//go:embed policies-1/*.yaml policies-2/*.yaml policies-4/*.yaml policies-5/*.yaml
var olderFiles embed.FS

// Older is what a file was in the facts' rendering, nil where it was the same as now:
// audit judges a commit by its own. Before 3 no fleet's id was in names.
func (f *Facts) Older(file string) []byte {
	consumer, _, _ := strings.Cut(strings.TrimPrefix(file, Root+"/"), "/")
	if file != path.Join(Dir(consumer), namespacesDir, policiesDir, path.Base(file)) {
		return nil
	}
	for n := max(f.Renderer, 1); n < Renderer; n++ {
		text, err := olderFiles.ReadFile(fmt.Sprintf("%s-%d/%s", policiesDir, n, path.Base(file)))
		if err != nil {
			continue
		}
		text = Admitting(append([]byte(Header), text...), f.Clusters[consumer])
		if f.Renderer >= longHash {
			text = NameFor(f.Fleet, text)
		}
		return text
	}
	return nil
}

// policyNames lists the policy files in the order of their names.
func policyNames() []string {
	entries, err := policyFiles.ReadDir(policiesDir)
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Policies are the admission policies of a consumer that has contracts, by path.
// They are all that follows from its Cluster file and the fleet's id alone: where the
// agent's webhook mutates pods, no policy does.
func Policies(consumer string, cluster *v1alpha1.Cluster, fleet string) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range policyNames() {
		if name == mutatingFile && cluster.AdmissionForm() == v1alpha1.AdmissionWebhook {
			continue
		}
		out[path.Join(Dir(consumer), namespacesDir, policiesDir, name)] = NameFor(fleet, Admitting(policy(name), cluster))
	}
	return out
}

// NameFor puts a fleet's id into the names of policies: fleetbroker-<id>-intent-guard. Two fleets may
// use one consumer, and each has guards of its own. Without an id names stay.
func NameFor(fleet string, text []byte) []byte {
	if fleet == "" {
		return text
	}
	for _, name := range policyNames() {
		name = strings.TrimSuffix(name, ".yaml")
		if old := []byte(policyPrefix + name); bytes.Contains(text, old) { // ReplaceAll copies in any case
			text = bytes.ReplaceAll(text, old, []byte(policyPrefix+fleet+"-"+name))
		}
	}
	return text
}

// OwnPolicy reports whether a fleet's policies have this name.
func OwnPolicy(fleet, name string) bool {
	return slices.ContainsFunc(policyNames(), func(file string) bool {
		return name == string(NameFor(fleet, []byte(policyPrefix+strings.TrimSuffix(file, ".yaml"))))
	})
}

// fleetInName is an id and the dash after it.
var fleetInName = regexp.MustCompile(`^[0-9a-v]{10}-`)

// PolicyName is what a policy is called without prefix and fleet, "" for a name
// that none has.
func PolicyName(name string) string {
	rest, ours := strings.CutPrefix(name, policyPrefix)
	if !ours {
		return ""
	}
	for _, rest := range []string{rest, fleetInName.ReplaceAllString(rest, "")} {
		if slices.Contains(policyNames(), rest+".yaml") {
			return rest
		}
	}
	return ""
}

// policies renders the admission policies of a consumer, or their absence.
func (r *render) policies(consumer string, present bool) {
	var listed []string
	for _, name := range policyNames() { // those of another form of admission too
		r.out.Files[path.Join(Dir(consumer), namespacesDir, policiesDir, name)] = nil
	}
	for file, content := range Policies(consumer, r.clusters[consumer], r.fleet) {
		if present {
			listed = append(listed, path.Base(file))
			r.out.Files[file] = content
		}
	}
	slices.Sort(listed)
	r.kustomization(path.Join(Dir(consumer), namespacesDir, policiesDir), listed)
}

// mutatingFile has the policy that gives pods their tolerations. Package admission/rule
// is the same rule for the agent's webhook.
const mutatingFile = "intent-tolerations.yaml"

// inForm is a policy in a version of its kind: of MutatingAdmissionPolicy alone there
// are several.
func inForm(policy []byte, form string) []byte {
	if form != v1alpha1.AdmissionV1Beta1 {
		return policy
	}
	return bytes.ReplaceAll(policy, []byte(admissionGroup+"/v1\nkind: Mutating"), []byte(admissionGroup+"/v1beta1\nkind: Mutating"))
}

// lastDeliverer ends the namespace guard's list of who applies manifests.
const lastDeliverer = "'system:serviceaccount:argocd:argocd-application-controller'"

// liqoController is the account of Liqo that makes pods for other clusters.
const liqoController = "'system:serviceaccount:liqo:liqo-controller-manager'"

// Admitting is a policy with the further users of a cluster that apply manifests
// there. The reader of Cluster files takes only names that need no quoting.
func Admitting(policy []byte, cluster *v1alpha1.Cluster) []byte {
	if cluster == nil {
		return policy
	}
	policy = inForm(policy, cluster.AdmissionForm())
	if ns := cluster.Spec.Liqo.Namespace; ns != "" && ns != "liqo" {
		policy = bytes.ReplaceAll(policy, []byte(liqoController), []byte("'system:serviceaccount:"+ns+":liqo-controller-manager'"))
	}
	if len(cluster.Spec.Deliverers) == 0 {
		return policy
	}
	list := lastDeliverer
	for _, user := range cluster.Spec.Deliverers {
		list += ",\n      '" + user + "'"
	}
	return bytes.ReplaceAll(policy, []byte(lastDeliverer), []byte(list))
}

// policy is one policy file.
func policy(name string) []byte {
	text, err := policyFiles.ReadFile(path.Join(policiesDir, name))
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	return append([]byte(Header), text...)
}
