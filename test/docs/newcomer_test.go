package docs

import (
	"os"
	"strings"
	"testing"
)

// What people who tried an installation missed in the pages, and in what is installed.
func TestPages_HaveWhatNewcomersMissed(t *testing.T) {
	for _, c := range []struct{ reason, file, want string }{
		{"Liqo's ranges of addresses, by distribution", "docs/install.md", "| kubeadm |"},
		{"", "docs/install.md", "| k3s |"},
		{"", "docs/install.md", "| EKS |"},
		{"", "docs/install.md", "| GKE |"},
		{"", "docs/install.md", "| AKS |"},
		{"other versions of Liqo", "docs/install.md", "v1.2.0"},
		{"GKE admits a priority class of the system by a ResourceQuota alone", "install/agent/priority.yaml", "kind: ResourceQuota"},
		{"where the webhook's secret comes from", "docs/install.md", "openssl rand -hex 32 > ../webhook-secret"},
		{"and where it goes", "docs/install.md", "--from-file=github=../webhook-secret"},
		{"how much one daemon carries", "docs/scale.md", "## Many consumers"},
		{"a CronJob that keeps prices", "install/broker/prices/cronjob.yaml", "kind: CronJob"},
		{"what it does not do: checkpoints, dates, MSPL, certification, vGPU, affinity across tenants", "docs/scope.md", "Checkpoints"},
		{"", "docs/scope.md", "blackouts"},
		{"", "docs/scope.md", "MSPL"},
		{"", "docs/scope.md", "Certification"},
		{"", "docs/scope.md", "vGPU, SR-IOV"},
		{"", "docs/scope.md", "Affinity across tenants"},
		{"", "docs/scope.md", "nominatedClusterNames"},
		{"", "docs/scope.md", "`migrate`"},
		{"", "docs/scope.md", "Backstage"},
		{"the default of delivery above 50 consumers, and why it stays", "docs/scale.md", "The default stays `direct`"},
		{"a condition that excludes something", "../examples/many-regions/README.md", "1 placement.where"},
		{"who may ask, by signature", "../examples/signatures/README.md", "is not acted on"},
		{"jobs of frameworks", "../examples/frameworks/README.md", "Volcano"},
		{"how the tour's directory becomes a repository", "../README.md", "git init"},
	} {
		text, err := os.ReadFile("../../fleet-repo-template/" + c.file)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
		} else if !strings.Contains(string(text), c.want) {
			t.Errorf("%s has no %q: %s", c.file, c.want, c.reason)
		}
	}
}
