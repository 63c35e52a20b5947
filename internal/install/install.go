package install

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	fleetrepo "github.com/fleetbroker/fleetbroker/fleet-repo-template"
	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Lock is the file of package laid by which a second run knows what people edited.
const Lock = ".fleetbroker.lock"

// ValuesFile are Liqo's values. It is no part of the kustomization.
const ValuesFile = "liqo-values.yaml"

// Fleet is what of a fleet decides what its clusters need.
type Fleet struct {
	// Clusters by name, each with its mode of delivery; Tenants by name.
	Clusters map[string]*v1alpha1.Cluster
	Tenants  map[string]*v1alpha1.Tenant
	// ID of the fleet, "" for one without.
	ID string
	// Ledger is the branch that Flux and Argo CD follow.
	Ledger string
	// RepoURL is the fleet repo as they reach it. Needed with delivery flux or argocd.
	RepoURL string
	// BrokerURL is the address of the daemon that agents reach, Image the agent's, with
	// its tag or digest. Needed where an agent is installed.
	BrokerURL, Image string
}

// Parts of what is installed, as the directories of the result are called.
const (
	partConsumer = "consumer"
	partProvider = "provider"
	partAgent    = "agent"
	partFlux     = "flux"
	partArgoCD   = "argocd"
)

// Names of the bases' samples.
const (
	sampleConsumer = "rome"
	sampleProvider = "paris"
	sampleTenant   = "vision"
	sampleRepo     = "https://git.example.org/acme/fleet.git"
	sampleBroker   = "https://broker.example.org:8443"
	// SampleHost is part of every address and image of the bases that people have to
	// replace.
	SampleHost = "example.org"
)

// Parts are the directories that a cluster gets, sorted as they are applied.
func (f *Fleet) Parts(cluster string) []string {
	c := f.Clusters[cluster]
	if c == nil {
		return nil
	}
	var out []string
	consumer := c.HasRole(v1alpha1.RoleConsumer)
	if consumer {
		out = append(out, partConsumer)
	}
	if c.HasRole(v1alpha1.RoleProvider) {
		out = append(out, partProvider)
	}
	if c.HasRole(v1alpha1.RoleProvider) || c.Spec.Reservations != nil || c.Spec.Delivery == "agent" || consumer && c.AdmissionForm() == v1alpha1.AdmissionWebhook {
		out = append(out, partAgent)
	}
	if mode := c.Spec.Delivery; consumer && (mode == partFlux || mode == partArgoCD) {
		out = append(out, mode)
	}
	return out
}

// Files are those of one cluster, by slash-separated path: kustomization.yaml is what
// kubectl, Flux and Argo CD apply.
func (f *Fleet) Files(cluster string) (map[string][]byte, error) {
	if err := f.check(cluster); err != nil {
		return nil, err
	}
	m := &maker{fleet: f, cluster: f.Clusters[cluster], name: cluster, out: map[string][]byte{}, seen: map[string]bool{}}
	steps := map[string]func() error{partConsumer: m.consumer, partProvider: m.provider, partAgent: m.agent, partFlux: m.flux, partArgoCD: m.argocd}
	m.copy("", "namespace.yaml", m.base(partConsumer, "namespace.yaml"))
	parts := f.Parts(cluster)
	for _, part := range parts {
		if err := steps[part](); err != nil {
			return nil, fmt.Errorf("make the install files of cluster %s: %w", cluster, err)
		}
	}
	m.liqo()
	text := fmt.Sprintf("# Cluster %s of the fleet, by `fleetbroker install %[1]s`: kubectl apply -k, or the path of\n# a Kustomization of Flux or an Application of Argo CD. Patches of yours go here; what\n# you edit is kept when it is made again.\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- namespace.yaml\n", cluster)
	for _, part := range parts {
		text += "- " + part + "\n"
	}
	m.out["kustomization.yaml"] = []byte(text)
	if m.err != nil {
		return nil, fmt.Errorf("make the install files of cluster %s: %w", cluster, m.err)
	}
	return m.out, nil
}

// check is what must be known before anything is made.
func (f *Fleet) check(cluster string) error {
	c := f.Clusters[cluster]
	if c == nil {
		hint := "list them: fleetbroker get clusters; a new one needs clusters/" + cluster + ".yaml"
		if near := nearest.Of(cluster, slices.Sorted(maps.Keys(f.Clusters))); near != "" {
			hint = "did you mean " + near + "?"
		}
		return hints.On(fmt.Errorf("there is no cluster %q in the fleet", cluster), hint)
	}
	parts := f.Parts(cluster)
	if len(parts) == 0 {
		return hints.On(fmt.Errorf("cluster %s needs nothing: it is neither consumer nor provider", cluster), "set spec.roles in clusters/"+cluster+".yaml")
	}
	if slices.Contains(parts, partAgent) {
		u, err := url.Parse(f.BrokerURL)
		if f.BrokerURL == "" {
			return hints.On(errors.New("the daemon's address is not known, and the agent of "+cluster+" needs it"), "give --broker-url https://HOST:8443, or write it into install/agent/deployment.yaml")
		}
		if isSample(f.BrokerURL) {
			return hints.On(fmt.Errorf("the daemon's address is still the example's, %s, and the agent of %s needs yours", f.BrokerURL, cluster), "give --broker-url https://HOST:8443, or write it into install/agent/deployment.yaml")
		}
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(f.BrokerURL, " \t\n\"'#") {
			return hints.On(fmt.Errorf("the daemon's address %q is no https URL", f.BrokerURL), "give --broker-url https://HOST:8443")
		}
		if isSample(f.Image) {
			return hints.On(fmt.Errorf("the agent's image is still the example's, %s", f.Image), "give --image REGISTRY/fleet-agent:VERSION, or write it into install/agent/kustomization.yaml")
		}
		if f.Image == "" {
			return hints.On(errors.New("the agent's image is not known"), "give --image REGISTRY/fleet-agent:VERSION, or write it into install/agent/kustomization.yaml")
		}
		if !image.MatchString(f.Image) {
			return hints.On(fmt.Errorf("%q names no image with tag or digest", f.Image), "give --image REGISTRY/fleet-agent:VERSION, or @sha256:DIGEST")
		}
	}
	if c.Spec.Delivery == partFlux || c.Spec.Delivery == partArgoCD {
		if f.RepoURL == "" || isSample(f.RepoURL) || strings.ContainsAny(f.RepoURL, " \t\n\"'#{}[],") {
			return hints.On(fmt.Errorf("the fleet repo's URL is not known (%q), and %s on %s needs it", f.RepoURL, c.Spec.Delivery, cluster), "give --repo-url, as the clusters reach it")
		}
		if u, err := url.Parse(f.RepoURL); err == nil && u.User != nil {
			if _, password := u.User.Password(); password || u.Scheme == "https" || u.Scheme == "http" {
				return hints.On(errors.New("the fleet repo's URL has a credential in it, which would be in files that are committed"), "give --repo-url without it; the clusters have a credential of their own")
			}
		}
	}
	for _, name := range slices.Concat([]string{cluster}, f.peers(c, v1alpha1.RoleProvider), f.peers(c, v1alpha1.RoleConsumer)) {
		if id := v1alpha1.LiqoID(f.Clusters, name); len(validation.IsDNS1123Label(id)) > 0 || len(id) > 50 {
			return hints.On(fmt.Errorf("clusters/%s.yaml: Liqo's id %q of the cluster is no part of a Kubernetes name", name, id), "write liqo.clusterID as Liqo has it: lower-case letters, digits and dashes, at most 50")
		}
	}
	if c.HasRole(v1alpha1.RoleProvider) && c.Spec.Liqo.TenantNamespace != "" {
		return hints.On(fmt.Errorf("clusters/%s.yaml: a provider with liqo.tenantNamespace (%s) is not peered by the daemon", cluster, c.Spec.Liqo.TenantNamespace), "leave tenantNamespace out, or install it by hand from install/agent and peer with liqoctl authenticate")
	}
	return nil
}

// image is a reference with a tag or a digest; what of it is name, tag and digest.
var image = regexp.MustCompile(`^([a-z0-9][a-z0-9._:/-]*[a-z0-9])(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127})|@(sha256:[0-9a-f]{64}))$`)

// isSample reports whether an address or image is of the template's samples.
func isSample(s string) bool {
	return s == sampleRepo || s == sampleBroker || strings.HasPrefix(s, "registry."+SampleHost+"/")
}

// peers are the other clusters of a role, where this one has the opposite role.
func (f *Fleet) peers(c *v1alpha1.Cluster, role string) []string {
	own := v1alpha1.RoleConsumer
	if role == own {
		own = v1alpha1.RoleProvider
	}
	var out []string
	for name, other := range f.Clusters {
		if c.HasRole(own) && other.HasRole(role) && name != c.Metadata.Name {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// tenants are those that may have capacity in a consumer.
func (f *Fleet) tenants(consumer string) []string {
	var out []string
	for name, t := range f.Tenants {
		if slices.Contains(t.Spec.Consumers, consumer) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Sample is what the install bases of a fleet repo were filled in with: read is a file of
// it by path, an error where it does not exist. What people left as it was is "".
func Sample(read func(path string) ([]byte, error)) (brokerURL, image string) {
	if b, err := read("install/agent/deployment.yaml"); err == nil {
		if m := regexp.MustCompile(`--broker-url=(\S+)`).FindSubmatch(b); m != nil && !isSample(string(m[1])) {
			brokerURL = string(m[1])
		}
	}
	if b, err := read("install/agent/kustomization.yaml"); err == nil {
		var k struct {
			Images []struct{ Name, NewName, NewTag, Digest string }
		}
		if yaml.Unmarshal(b, &k) == nil {
			for _, i := range k.Images {
				if i.Name != "fleet-agent" || isSample(i.NewName) {
					continue
				}
				if image = cmp.Or(i.NewName, i.Name) + ":" + i.NewTag; i.Digest != "" {
					image = cmp.Or(i.NewName, i.Name) + "@" + i.Digest
				}
			}
		}
	}
	return brokerURL, image
}

// installedID finds a fleet's id in the names of its install bases.
var installedID = regexp.MustCompile(`name: fleetbroker-(?:([0-9a-v]{10})-)?consumer\b`)

// ID is the fleet's id as the names of the fleet repo's own bases have it, "" where they
// have none.
func ID(read func(path string) ([]byte, error)) string {
	b, err := read("install/consumer/rbac.yaml")
	if err != nil {
		return ""
	}
	if m := installedID.FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}

// base is a file of the template's install bases.
func (m *maker) base(dir, file string) string {
	b, err := fs.ReadFile(fleetrepo.Files, path.Join("install", dir, file))
	if err != nil && m.err == nil {
		m.err = err
	}
	return string(b)
}

// named is text with the fleet's id in the names of a whole cluster.
func (m *maker) named(text string) []byte { return manifests.NameInstall(m.fleet.ID, []byte(text)) }
