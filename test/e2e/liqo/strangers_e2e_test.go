//go:build e2e && full

package liqo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// early is what a team has in its namespace before it asks for anything.
const early = `apiVersion: v1
kind: Namespace
metadata: {name: vision}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: logs, namespace: vision}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec: {containers: [{name: main, image: example.org/logs}]}
---
`

// leaving is a namespace of Liqo's that something keeps from going.
const leaving = `apiVersion: v1
kind: Namespace
metadata: {name: liqo-tenant-paris, labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: paris}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: stays, namespace: liqo-tenant-paris, finalizers: [example.org/stays]}
`

// A consumer to which there is no way, and two clusters that were never peered:
// what is wanted there stays Reserved with that reason, and what stands in the
// way of it is named.
func TestStrangers(t *testing.T) {
	f := start(t, "paris")
	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	back := f.way("rome", nil)
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "train", intent("vision", "train", 2))
	contract := f.Contract("vision", "train", "Reserved")
	f.reason(contract, "Reserved", "ConsumerUnreachable")
	f.finds(contract, doctor.NoAccess, "so that nothing can be applied there")
	f.says("rome", "", "get", "resourceslices.authentication.liqo.io", "-A", "-o", "name")
	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	back()

	// A kubeconfig that leads nowhere, and one of a cluster without Liqo whose
	// Kubernetes has no MutatingAdmissionPolicy.
	back = f.way("rome", []byte(strings.ReplaceAll(string(f.Clusters["rome"].Kubeconfig), f.Clusters["rome"].URL, "https://127.0.0.1:1")))
	f.finds(contract, doctor.NoAnswer)
	back()
	policies := "admissionregistration.k8s.io/v1/mutatingadmissionpolic"
	plain, err := env.StartCluster(f.ctx, env.ClusterOptions{Name: "plain", Dir: filepath.Join(f.Dir, "clusters", "plain"), APIServerArgs: []string{
		"--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy", "--runtime-config=" + policies + "ies=false," + policies + "ybindings=false",
	}})
	if err != nil {
		t.Fatal(err)
	}
	back = f.way("rome", plain.Kubeconfig)
	f.finds(contract, doctor.NoLiqo, "ResourceSlice")
	f.finds(contract, doctor.NoPolicyKinds)
	f.oldLiqo(plain)
	f.finds(contract, doctor.LiqoTooOld, "runs Liqo v0.10.3, which is too old")
	back()
	if err := plain.Stop(); err != nil {
		t.Fatal(err)
	}

	// Nothing is there yet, or something is that must not be.
	for _, code := range []doctor.Code{doctor.TenantNamespaceMissing, doctor.IdentityMissing, doctor.ForeignMissing, doctor.TenantMissing, doctor.SliceMissing, doctor.NamespaceMissing} {
		f.finds(contract, code)
	}
	f.apply("rome", leaving)
	f.run("rome", "delete", "namespace", "liqo-tenant-paris", "--wait=false")
	f.finds(contract, doctor.TenantNamespaceDeleting)
	f.run("rome", "patch", "configmap", "stays", "-n", "liqo-tenant-paris", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)

	f.apply("rome", "apiVersion: v1\nkind: Node\nmetadata: {name: "+contract+"}\n")
	f.finds(contract, doctor.VirtualNodeNameTaken)
	f.run("rome", "delete", "node", contract)

	slice := "apiVersion: authentication.liqo.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: " + contract + ", namespace: default}\nspec: {class: fleetbroker, providerClusterID: paris}\n"
	f.apply("rome", slice)
	f.finds(contract, doctor.SliceElsewhere)
	f.run("rome", "delete", "resourceslices.authentication.liqo.io", contract, "-n", "default")

	alive := f.dead("rome", "liqo-crd-replicator")
	f.run("rome", "create", "secret", "generic", "old", "-n", "default")
	f.run("rome", "label", "secret", "old", "-n", "default", "liqo.io/identity-type=ControlPlane", "liqo.io/remote-cluster-id=paris")
	f.finds(contract, doctor.IdentityElsewhere)
	f.run("rome", "delete", "secret", "old", "-n", "default")
	alive()

	// The team was there first, and somebody on the provider too.
	f.apply("rome", early+rigtest.Deployment("vision", 1))
	f.run("paris", "create", "namespace", "vision-rome")
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.finds(contract, doctor.OffloadingFailed)
	f.run("paris", "delete", "namespace", "vision-rome")
	f.Contract("vision", "train", "Active")
	f.finds(contract, doctor.DaemonSetInside)
	f.run("rome", "delete", "daemonset", "logs", "-n", "vision")
	f.finds(contract, doctor.PodTooOld)
	f.run("rome", "delete", "pod", "-n", "vision", "-l", "app=train")
	f.runs("rome", "vision", contract, 1)
	f.well(contract)
	f.Sound()

	// The account is gone that Liqo is on the provider; and the virtual kubelet
	// has no rights any more, so that nobody reports for its Node.
	f.run("paris", "delete", "serviceaccount", "liqo-consumer-rome", "-n", "liqo-tenant-rome")
	f.run("rome", "delete", "clusterrole", "liqo-virtual-kubelet-local")
	f.finds(contract, doctor.IdentityRefused)
	f.finds(contract, doctor.NodeNotReady)
}

// oldLiqo lays onto a cluster what Liqo's chart makes of its controller manager, as of a
// version whose kinds are others.
func (f *fleet) oldLiqo(c *env.Cluster) {
	f.t.Helper()
	helm, err := tools.Find(f.ctx, "helm", os.Stderr)
	if err != nil {
		f.t.Fatal(err)
	}
	module, err := tools.ModuleDir(f.ctx, "liqo", "github.com/liqotech/liqo")
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.CommandContext(f.ctx, helm, "template", "liqo", filepath.Join(module, "deployments", "liqo"), "--namespace", "liqo", "--show-only", "templates/liqo-controller-manager-deployment.yaml",
		"--set", "discovery.config.clusterID=rome,tag=v0.10.3,apiServer.address="+c.URL)
	cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+f.Dir, "HELM_CONFIG_HOME="+f.Dir, "HELM_DATA_HOME="+f.Dir)
	rendered, err := cmd.Output()
	if err != nil {
		f.t.Fatal(err)
	}
	file := filepath.Join(f.Dir, "old-liqo.yaml")
	if err := os.WriteFile(file, rendered, 0o600); err != nil {
		f.t.Fatal(err)
	}
	for _, args := range [][]string{{"create", "namespace", "liqo"}, {"apply", "-n", "liqo", "-f", file}} {
		if _, err := c.Kubectl(f.ctx, f.Dir, args...); err != nil {
			f.t.Fatal(err)
		}
	}
}
