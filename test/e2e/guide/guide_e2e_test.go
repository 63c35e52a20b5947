//go:build e2e

package guide

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/pod"
)

// patience bounds every wait.
const patience = 3 * time.Minute

// repo is the fleet repo's name on the git server.
const repo = "fleet.git"

var (
	bin  string
	full = flag.Bool("full", false, "also on the oldest Kubernetes that is worked with")
)

func TestMain(m *testing.M) {
	env.BeContainer()
	envtest.Main(m, &bin, env.BuildTools)
}

// TestGuide follows the page to a contract that is delivered: with kustomize, and with Helm
// for the daemon and a consumer whose agent is the webhook.
func TestGuide(t *testing.T) {
	source, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	p := parse(source)
	for begin, why := range p.not {
		t.Logf("not run: %s: %s", begin, why)
	}
	done := 0
	t.Run("kustomize", func(t *testing.T) {
		f := start(t, p, "")
		f.kustomize()
		done++
	})
	t.Run("chart", func(t *testing.T) {
		f := start(t, p, "")
		f.withAgent("install chart", false)
		f.named("kubectl -n vision get resourcerequests", "kubectl --context rome")
		done++
	})
	if *full {
		t.Run("kustomize on 1.30", func(t *testing.T) { start(t, p, "1.30").withAgent("sed -i.orig", true) })
		t.Run("chart on 1.30", func(t *testing.T) { start(t, p, "1.30").withAgent("install chart", true) })
	}
	if done == 2 {
		for _, problem := range p.left() {
			t.Error(problem)
		}
	}
}

// kustomize is the page with the bases.
func (f *follower) kustomize() {
	f.repo()
	f.run("fleetbroker pki init")
	f.run("mkdir -p ~/kubeconfigs")
	f.run("secret generic fleetbroker-git")
	f.run("sed -i.orig")
	f.placed()
	f.looked()
	f.idle()
	// Next to these, what the page has for other ways to deliver.
	f.run("--program /plugins")
	f.must(f.hub.Kubectl(f.ctx, "", "create", "namespace", "flux-system"))
	f.file("../read-token", "a token")
	f.run("secret generic fleet-read")
	f.file("../registry-token", "a token")
	f.run("secret docker-registry registry-read")
	if out, err := f.paris.Kubectl(f.ctx, "", "-n", "fleetbroker", "get", "serviceaccount", "fleet-agent", "-o", "jsonpath={.imagePullSecrets[*].name}"); err != nil || out != "registry-read" {
		f.t.Errorf("agents pull images with %q, %v", out, err)
	}
	f.file("clusters/rome.yaml", "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], liqo: {clusterID: rome}, delivery: agent}\n")
	f.run("install rome -o install/clusters/rome --broker-url")
}

// withAgent is the page with an agent on the consumer, which is the webhook, and with the
// block that installs the daemon: the bases' or Helm's. Where clusters are old the provider's
// agent is the webhook too.
func (f *follower) withAgent(daemon string, old bool) {
	f.hooked = map[string]bool{"rome": true, "paris": old}
	f.repo()
	f.run("fleetbroker pki init")
	f.run("secret generic fleet-agent-certs --from-file=rome-certs")
	f.also = []string{"install rome -o install/clusters/rome\n", "install rome -o install/clusters/rome --broker-url https://" + f.agents + " --image ghcr.io/acme/fleet-agent:v0.1.0\n"}
	f.run("mkdir -p ~/kubeconfigs")
	f.run("secret generic fleetbroker-git")
	f.run(daemon)
	f.placed()
	f.agent("rome")
}

// repo makes the fleet repo, whose clusters' files say which agents are webhooks.
func (f *follower) repo() {
	f.t.Helper()
	f.run("make build")
	f.run("fleetbroker init fleet")
	for cluster, is := range f.hooked {
		name := filepath.Join("clusters", cluster+".yaml")
		text, err := os.ReadFile(filepath.Join(f.home, "fleet", name))
		if err != nil {
			f.t.Fatal(err)
		}
		if is {
			f.file(name, string(text)+"  admission: webhook\n")
		}
	}
	f.file("../git-token", token)
	f.run("git init -b main")
}

// placed runs what was installed, and asks for GPUs until they are on the consumer.
func (f *follower) placed() {
	f.t.Helper()
	f.start(f.hub, "StatefulSet", "fleetbroker", map[string]string{
		"--agents-address": f.agents, "--advertise-address": f.agents, "--operators-address": f.address(), "--webhooks-address": f.address(),
	})
	f.agent("paris")
	for _, name := range []string{"gpu-1", "gpu-2"} {
		if _, err := env.CreateGPUNode(f.ctx, f.paris.Config, env.GPUNode{Name: name, GPUs: 8}); err != nil {
			f.t.Fatal(err)
		}
	}
	f.run("label node gpu-1")
	f.file("intents/vision/train.yaml", train)
	f.bash(`git add -A intents && git commit -qm Ask && git push -q origin main`)
	f.eventually("the slice on the consumer", func() error {
		out, err := f.rome.Kubectl(f.ctx, "", "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-paris", "-o", "name")
		if err == nil && !strings.Contains(out, "vision-train-0-") {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
}

// looked is what the page has to look with.
func (f *follower) looked() {
	f.t.Helper()
	f.run("kubectl --context rome -n liqo create role fleetbroker-doctor")
	// Plan and doctor have exit codes for changes and findings, of which there are some:
	// without Liqo's controllers no slice becomes a Node.
	shown := f.each("fleetbroker plan --market")
	for command, want := range map[string]string{
		"fleetbroker plan": "\nPlan: 2 keep.\n", "fleetbroker get flavors": "nvidia-h100", "fleetbroker status": "2 Placed",
		"fleetbroker doctor": "cluster rome: pods get their tolerations by MutatingAdmissionPolicy v1",
	} {
		if !slices.ContainsFunc(shown, func(out string) bool { return strings.HasPrefix(out, command) && strings.Contains(out, want) }) {
			f.t.Errorf("%s does not show %q:\n%s", command, want, strings.Join(shown, "\n"))
		}
	}
	const sample = "get advertisements.market.fleetbroker.io"
	b, err := f.page.block(sample)
	if err != nil {
		f.t.Fatal(err)
	}
	out := f.run(sample)
	for _, header := range b.printed {
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool { return slices.Equal(strings.Fields(line), strings.Fields(header)) }) {
			f.t.Errorf("the page shows the columns %q, kubectl printed\n%s", header, out)
		}
	}
	for _, command := range []string{"fleetbroker validate -o sarif", "kubectl get --raw /apis/admissionregistration.k8s.io/v1", "kubectl auth whoami", "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256", "fleetbroker pki revoke ~/acme-pki paris --fleet ."} {
		f.named(command, "kubectl")
	}
}

const train = `apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: train, namespace: vision}
spec:
  consumer: rome
  resources: {cpu: "4", memory: 16Gi, pods: "4", gpu: {count: 4, models: [nvidia-h100]}}
  offload: {namespaces: [{name: vision, create: true}]}
`

// agent runs a cluster's agent as it was installed there.
func (f *follower) agent(cluster string) {
	f.t.Helper()
	flags := map[string]string{"--health-probe-bind-address": f.address(), "--metrics-bind-address": f.address()}
	if f.hooked[cluster] {
		flags["--webhook-bind-address"] = f.address()
	}
	f.start(map[string]*env.Cluster{"rome": f.rome, "paris": f.paris}[cluster], "Deployment", "fleet-agent", flags)
}

// start runs the one pod of a workload; it has to run until the test ends.
func (f *follower) start(cluster *env.Cluster, kind, name string, flags map[string]string) {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), cluster.Name)
	p, err := pod.Start(f.ctx, pod.Options{
		Cluster: cluster, Kind: kind, Namespace: "fleetbroker", Name: name, Pod: name + "-0",
		Program: filepath.Join(bin, name), Flags: flags, Dir: dir,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.running = append(f.running, worker{p, cluster, kind, name})
	f.t.Cleanup(func() {
		select {
		case <-p.Done():
			f.t.Errorf("%s of %s has ended: %v", name, cluster.Name, p.Failure())
		default:
			f.requested(p, cluster, kind, name)
		}
		if err := p.Stop(); err != nil {
			f.t.Errorf("stop %s: %v", name, err)
		}
		if text, err := os.ReadFile(p.LogFile()); f.t.Failed() {
			lines := strings.Split(string(text), "\n")
			f.t.Logf("%s of %s (%v):\n%s", name, cluster.Name, err, strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	})
}

// quiet is how long programs are watched that have nothing to do: an agent's report and a
// poll of the git server come within it.
const quiet = 35 * time.Second

// idle holds the processor time that daemon and agents take while nothing happens to what
// their workloads request.
func (f *follower) idle() {
	f.t.Helper()
	before, began := make([]time.Duration, len(f.running)), time.Now()
	for i, w := range f.running {
		before[i] = f.processor(w)
	}
	select {
	case <-f.ctx.Done():
		f.t.Fatal(f.ctx.Err())
	case <-time.After(quiet):
	}
	for i, w := range f.running {
		took := (f.processor(w) - before[i]).Seconds() / time.Since(began).Seconds() * 1000
		out, err := w.cluster.Kubectl(f.ctx, "", "-n", "fleetbroker", "get", w.kind, w.name, "-o", "jsonpath={.spec.template.spec.containers[0].resources.requests.cpu}")
		if err != nil {
			f.t.Error(err)
			continue
		}
		request, err := resource.ParseQuantity(out)
		if err != nil {
			f.t.Errorf("processor requested by %s: %q: %v", w.name, out, err)
			continue
		}
		f.t.Logf("%s of %s: %.1fm of a core while idle, %s requested", w.name, w.cluster.Name, took, out)
		if took <= 0 || took > float64(request.MilliValue()) {
			f.t.Errorf("%s of %s took %.1fm of a core while idle, and requests %s", w.name, w.cluster.Name, took, out)
		}
	}
}

// processor is the processor time that a running program has used, its own and the kernel's.
func (f *follower) processor(w worker) time.Duration {
	f.t.Helper()
	const tick = time.Second / 100 // of Linux, for all that it shows
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.PID()))
	_, rest, named := strings.Cut(string(stat), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	if err != nil || !named || len(fields) < 13 {
		f.t.Fatalf("processor time of %s: %v in %q", w.name, err, stat)
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		f.t.Fatalf("processor time of %s: %v in %q", w.name, err, stat)
	}
	return time.Duration(user+system) * tick
}

// requested holds a program's memory, the most that was resident, to what its workload
// requests: a node that is full by requests would evict it otherwise. It is what a fleet of
// three clusters takes; docs/scale.md says what larger ones do.
func (f *follower) requested(p *env.Program, cluster *env.Cluster, kind, name string) {
	f.t.Helper()
	out, err := cluster.Kubectl(context.Background(), "", "-n", "fleetbroker", "get", kind, name, "-o", "jsonpath={.spec.template.spec.containers[0].resources.requests.memory}")
	if err != nil {
		f.t.Error(err)
		return
	}
	request, err := resource.ParseQuantity(out)
	if err != nil {
		f.t.Errorf("memory requested by %s: %q: %v", name, out, err)
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		f.t.Error(err)
		return
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var most int64 // KiB
	if _, err := fmt.Sscan(rest, &most); err != nil || most == 0 {
		f.t.Errorf("memory of %s: %v in %s", name, err, status)
	}
	f.t.Logf("%s of %s: %d MiB resident at the most, %s requested", name, cluster.Name, most>>10, out)
	if most<<10 > request.Value() {
		f.t.Errorf("%s of %s took %d MiB, and requests %s", name, cluster.Name, most>>10, out)
	}
}

func (f *follower) address() string {
	f.t.Helper()
	address, release, err := env.ReserveAddress()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(release)
	return address
}

// byName is an address by the name that the certificate has.
func byName(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("localhost", port)
}

func (f *follower) eventually(what string, check func() error) {
	f.t.Helper()
	_, err := env.Until(f.ctx, patience, func() error {
		err := check()
		if err == nil {
			return nil
		}
		for _, p := range f.running {
			select {
			case <-p.Done():
				f.t.Fatalf("not seen: %s: %v", what, p.Failure())
			default:
			}
		}
		return err
	})
	if err != nil {
		f.t.Fatalf("not seen: %s: %v", what, err)
	}
}
