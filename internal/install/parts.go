package install

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// maker makes the files of one cluster.
type maker struct {
	fleet   *Fleet
	cluster *v1alpha1.Cluster
	name    string
	out     map[string][]byte
	seen    map[string]bool // objects that are in out
	err     error           // the first
}

// copy adds the objects of a file that are not there yet; a file without any is left out,
// and false returned.
func (m *maker) copy(dir, file, text string) bool {
	var kept []string
	objects := 0
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var o struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil && m.err == nil {
			m.err = fmt.Errorf("%s: %w", path.Join(dir, file), err)
		}
		if o.Kind == "" && strings.TrimSpace(strings.TrimPrefix(doc, "---")) != "" {
			kept = append(kept, doc) // a comment before the first
			continue
		}
		key := strings.Join([]string{o.APIVersion, o.Kind, o.Metadata.Namespace, o.Metadata.Name}, " ")
		if m.seen[key] {
			continue
		}
		m.seen[key] = true
		kept = append(kept, doc)
		objects++
	}
	if objects == 0 {
		return false
	}
	text = strings.TrimRight(strings.Join(kept, "\n---\n"), "\n") + "\n"
	m.out[path.Join(dir, file)] = m.named(text)
	return true
}

// part adds files of a base, those of own in place of the base's, and its kustomization
// without what the cluster has already. more goes to the kustomization's end.
func (m *maker) part(dir, base string, own map[string]string, more string) {
	text := m.base(base, "kustomization.yaml")
	var k struct{ Resources []string }
	if err := yaml.Unmarshal([]byte(text), &k); err != nil && m.err == nil {
		m.err = err
	}
	head, _, found := strings.Cut(text, "resources:\n")
	at := regexp.MustCompile(`(?m)^resources:\n(?:- .*\n)+`).FindStringIndex(text)
	if (!found || at == nil) && m.err == nil {
		m.err = fmt.Errorf("install/%s/kustomization.yaml has no list of resources", base)
		return
	}
	apiAt := strings.Index(head, "apiVersion:") // the head's comment is about the base
	list := ""
	for _, file := range k.Resources {
		content, mine := own[file]
		if !mine {
			content = m.base(base, file)
		}
		if m.copy(dir, file, content) {
			list += "- " + file + "\n"
		}
	}
	m.out[path.Join(dir, "kustomization.yaml")] = []byte(head[max(apiAt, 0):] + "resources:\n" + list + text[at[1]:] + more)
}

// replace replaces each pair, in this order; one that is not found is an error.
func (m *maker) replace(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) && m.err == nil {
			m.err = fmt.Errorf("the install base has no %q to put %q in its place", pairs[i], pairs[i+1])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// each is a file's comment, and its objects once for each of some names.
func each[T any](text string, all []T, of func(sample string, one T) string) string {
	at := strings.Index(text, "apiVersion:")
	comment, sample := text[:max(at, 0)], strings.TrimRight(text[max(at, 0):], "\n")
	var docs []string
	for _, one := range all {
		docs = append(docs, of(sample, one))
	}
	return comment + strings.Join(docs, "\n---\n") + "\n"
}

// consumer is what the daemon may do where capacity appears, or this cluster's own agent
// in its place.
func (m *maker) consumer() error {
	peering := ""
	if peers := m.fleet.peers(m.cluster, v1alpha1.RoleProvider); len(peers) > 0 {
		single := m.cluster.Spec.Liqo.TenantNamespace != ""
		peering = each(m.base(partConsumer, "peering.yaml"), peers, func(sample, peer string) string {
			id := v1alpha1.LiqoID(m.fleet.Clusters, peer)
			if single { // of all peers, so of none by its label
				sample = m.replace(sample, "\n    liqo.io/remote-cluster-id: "+sampleProvider, "")
			} else {
				sample = m.replace(sample, "remote-cluster-id: "+sampleProvider, "remote-cluster-id: "+quoted(id))
			}
			return m.replace(sample, "liqo-tenant-"+sampleProvider, v1alpha1.PeeringNamespace(m.fleet.Clusters, m.name, peer))
		})
	}
	// As the ledger will have them: else an Argo CD that reaches in from another cluster
	// cannot even compare before it has brought its own name.
	policies := string(manifests.Admitting([]byte(m.base(partConsumer, "policies.yaml")), m.cluster))
	own, more := map[string]string{"peering.yaml": peering, "policies.yaml": policies}, ""
	if ns := m.cluster.Spec.Liqo.Namespace; ns != "" {
		own["guard.yaml"] = m.replace(m.base(partConsumer, "guard.yaml"), "paramRef: {namespace: liqo,", "paramRef: {namespace: "+ns+",")
	}
	if m.cluster.Spec.Delivery == "agent" {
		text := m.base("consumer-agent", "kustomization.yaml")
		_, patches, found := strings.Cut(text, "\npatches:\n")
		if !found {
			return fmt.Errorf("install/consumer-agent/kustomization.yaml has no patches")
		}
		more = "patches:\n" + patches
		// Deleted by a patch here; the provider's part brings it where it is needed.
		defer m.forget("v1 ServiceAccount fleetbroker fleetbroker", "rbac.authorization.k8s.io/v1 Role fleetbroker fleetbroker-renew", "rbac.authorization.k8s.io/v1 RoleBinding fleetbroker fleetbroker-renew")
	}
	m.part(partConsumer, partConsumer, own, more+m.form(partConsumer))
	return nil
}

// form adds the component of the cluster's form of admission to a part, and is what the
// part's kustomization says of it. v1 is what the bases have.
func (m *maker) form(part string) string {
	form := m.cluster.AdmissionForm()
	if form == v1alpha1.AdmissionV1 {
		return ""
	}
	dir := path.Join(part, form)
	m.out[path.Join(dir, "kustomization.yaml")] = m.named(m.base(dir, "kustomization.yaml"))
	if part == partAgent && form == v1alpha1.AdmissionWebhook {
		m.copy(dir, "webhook.yaml", m.base(dir, "webhook.yaml"))
	}
	return "components:\n- " + form + "\n"
}

func (m *maker) forget(keys ...string) {
	for _, key := range keys {
		delete(m.seen, key)
	}
}

// provider is what the daemon may do to peer consumers with this cluster.
func (m *maker) provider() error {
	consumers := m.fleet.peers(m.cluster, v1alpha1.RoleConsumer)
	peering, spaces := "", []string{}
	if len(consumers) > 0 {
		peering = each(m.base(partProvider, "peering.yaml"), consumers, func(sample, peer string) string {
			id := v1alpha1.LiqoID(m.fleet.Clusters, peer)
			spaces = append(spaces, "liqo-tenant-"+id)
			return m.replace(sample, "remote-cluster-id: "+sampleConsumer, "remote-cluster-id: "+quoted(id), "["+sampleConsumer+"]", "["+quoted(id)+"]",
				"liqo-consumer-"+sampleConsumer, "liqo-consumer-"+id, "liqo-tenant-"+sampleConsumer, "liqo-tenant-"+id)
		})
	}
	rbac := m.base(partProvider, "rbac.yaml")
	if len(spaces) > 0 {
		rbac = m.replace(rbac, "[liqo-tenant-"+sampleConsumer+"]", "["+strings.Join(spaces, ", ")+"]")
	} else { // a rule without names would be one for all
		rule := regexp.MustCompile(`(?m)^- apiGroups: \[""\]\n  resources: \[namespaces\]\n  resourceNames: \[liqo-tenant-` + sampleConsumer + `\]\n  verbs: .*\n`)
		if !rule.MatchString(rbac) {
			return fmt.Errorf("install/provider/rbac.yaml has no rule on liqo-tenant-%s", sampleConsumer)
		}
		rbac = rule.ReplaceAllString(rbac, "")
	}
	m.part(partProvider, partProvider, map[string]string{"peering.yaml": peering, "rbac.yaml": rbac}, "")
	return nil
}

// agent is the program that reports, enforces and asks.
func (m *maker) agent() error {
	u, err := url.Parse(m.fleet.BrokerURL)
	if err != nil {
		return err
	}
	deployment := m.replace(m.base(partAgent, "deployment.yaml"), "--cluster-id="+sampleProvider, "--cluster-id="+m.name, "--broker-url="+sampleBroker, "--broker-url="+m.fleet.BrokerURL)
	network := m.base(partAgent, "networkpolicy.yaml")
	if port := u.Port(); port != "" && port != "8443" && port != "443" && port != "6443" {
		network = m.replace(network, "{port: 8443, protocol: TCP}", "{port: "+port+", protocol: TCP}")
	}
	m.part(partAgent, partAgent, map[string]string{"deployment.yaml": deployment, "networkpolicy.yaml": network}, m.form(partAgent))
	parts := image.FindStringSubmatch(m.fleet.Image)
	version := "  newTag: " + parts[2]
	if parts[3] != "" {
		version = "  digest: " + parts[3]
	}
	at := path.Join(partAgent, "kustomization.yaml")
	text := regexp.MustCompile(`(?m)^  newName: .*\n  newTag: .*$`).ReplaceAllString(string(m.out[at]), "  newName: "+parts[1]+"\n"+version)
	if !strings.Contains(text, "newName: "+parts[1]+"\n") {
		return fmt.Errorf("install/agent/kustomization.yaml names no image")
	}
	m.out[at] = []byte(text)
	return nil
}

// flux is what has Flux apply the consumer's manifests.
func (m *maker) flux() error {
	source := m.replace(m.base(partFlux, "source.yaml"), sampleRepo, m.fleet.RepoURL, "ref: {branch: ledger}", "ref: {branch: "+quoted(m.fleet.Ledger)+"}")
	m.part(partFlux, partFlux, map[string]string{
		"source.yaml":        source,
		"namespaces.yaml":    m.replace(m.base(partFlux, "namespaces.yaml"), "manifests/"+sampleConsumer+"/", "manifests/"+m.name+"/"),
		"vision.yaml":        m.tenants(m.base(partFlux, "vision.yaml")),
		"vision-rights.yaml": m.rights(m.base(partFlux, "vision-rights.yaml")),
	}, "")
	m.rename(partFlux)
	return nil
}

// argocd is the same for Argo CD.
func (m *maker) argocd() error {
	projects := m.base(partArgoCD, "projects.yaml")
	first, rest, found := strings.Cut(projects, "\n---\n")
	if !found {
		return fmt.Errorf("install/argocd/projects.yaml has one project, not a tenant's and the fleet's")
	}
	follow := func(text string) string {
		return m.replace(text, sampleRepo, m.fleet.RepoURL)
	}
	of := func(text string) string {
		return m.replace(follow(text), "targetRevision: ledger", "targetRevision: "+quoted(m.fleet.Ledger))
	}
	projects = each(follow(first), m.fleet.tenants(m.name), m.tenant)
	if strings.Contains(projects, "\nkind: ") {
		projects = strings.TrimRight(projects, "\n") + "\n---\n"
	}
	projects += follow(rest)
	m.part(partArgoCD, partArgoCD, map[string]string{
		"projects.yaml":      projects,
		"namespaces.yaml":    m.replace(of(m.base(partArgoCD, "namespaces.yaml")), "manifests/"+sampleConsumer+"/", "manifests/"+m.name+"/"),
		"vision.yaml":        m.tenants(of(m.base(partArgoCD, "vision.yaml"))),
		"vision-rights.yaml": m.rights(m.base(partArgoCD, "vision-rights.yaml")),
	}, "")
	m.out[path.Join(partArgoCD, "health.yaml")] = []byte(m.base(partArgoCD, "health.yaml"))
	m.rename(partArgoCD)
	return nil
}

// rename gives the files of tenants a name without the sample's.
func (m *maker) rename(dir string) {
	at := path.Join(dir, "kustomization.yaml")
	for from, to := range map[string]string{"vision.yaml": "tenants.yaml", "vision-rights.yaml": "tenants-rights.yaml"} {
		if b, is := m.out[path.Join(dir, from)]; is {
			delete(m.out, path.Join(dir, from))
			m.out[path.Join(dir, to)] = b
			m.out[at] = []byte(strings.Replace(string(m.out[at]), "- "+from+"\n", "- "+to+"\n", 1))
		}
	}
}

// tenant is one tenant's copy of a sample.
func (m *maker) tenant(sample, tenant string) string {
	text := m.replace(sample, "fleet-"+sampleTenant, "fleet-"+tenant)
	for from, to := range map[string]string{
		"manifests/" + sampleConsumer + "/" + sampleTenant: "manifests/" + m.name + "/" + tenant,
		"of tenant " + sampleTenant:                        "of tenant " + tenant,
		"# " + sampleTenant + "-rights.yaml":               "# tenants-rights.yaml",
	} {
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

func (m *maker) tenants(text string) string { return each(text, m.fleet.tenants(m.name), m.tenant) }

// rights are a tenant's account, and its binding in Liqo's namespace for each provider.
func (m *maker) rights(text string) string {
	return each(text, m.fleet.tenants(m.name), func(sample, tenant string) string {
		account, binding, found := strings.Cut(m.tenant(sample, tenant), "\n---\n")
		if !found && m.err == nil {
			m.err = fmt.Errorf("the sample of a tenant's rights has no binding")
		}
		seen := map[string]bool{}
		for _, peer := range m.fleet.peers(m.cluster, v1alpha1.RoleProvider) {
			at := v1alpha1.PeeringNamespace(m.fleet.Clusters, m.name, peer)
			if !seen[at] {
				seen[at] = true
				account += "\n---\n" + m.replace(binding, "liqo-tenant-"+sampleProvider, at)
			}
		}
		return account
	})
}

// liqo are the values of Liqo's chart, from those of the base.
func (m *maker) liqo() {
	file, sample := "consumer-values.yaml", sampleConsumer
	if m.cluster.HasRole(v1alpha1.RoleProvider) {
		file, sample = "provider-values.yaml", sampleProvider
	}
	_, text, found := strings.Cut(m.base("liqo", file), "  values.yaml: |\n")
	if !found && m.err == nil {
		m.err = fmt.Errorf("install/liqo/%s has no values", file)
	}
	text = strings.ReplaceAll("\n"+text, "\n    ", "\n")[1:]
	text = regexp.MustCompile(`(?m)^(    clusterID: )`+sample+` .*$`).ReplaceAllString(text, "${1}"+quoted(v1alpha1.LiqoID(m.fleet.Clusters, m.name)))
	if strings.Contains(text, sample+" ") && m.err == nil {
		m.err = fmt.Errorf("install/liqo/%s: clusterID is not where it was", file)
	}
	if m.cluster.HasRole(v1alpha1.RoleProvider) && m.cluster.HasRole(v1alpha1.RoleConsumer) {
		text += "offloading:\n  enabled: true\n"
	}
	m.out[ValuesFile] = []byte("# helm upgrade --install liqo liqo/liqo --version v1.2.0 -n liqo --create-namespace -f " + ValuesFile + "\n" + text)
}

// quoted is a plain word, in quotes where YAML would take it for something else.
func quoted(s string) string {
	b, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Sprintf("%q", s)
	}
	return strings.TrimSpace(string(b))
}
