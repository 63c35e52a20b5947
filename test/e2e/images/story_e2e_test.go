//go:build e2e

package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

const patience = 2 * time.Minute

const train = `apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: train, namespace: vision}
spec:
  consumer: rome
  resources: {cpu: "4", memory: 16Gi, pods: "4", gpu: {count: 4, models: [nvidia-h100]}}
  offload: {namespaces: [{name: vision, create: true}]}
`

// leadsAnIntentToItsSlice runs both images with the arguments, the files, the account and
// the environment of the install bases, against real API servers.
func leadsAnIntentToItsSlice(t *testing.T, x *tool) {
	s := install(t)
	broker := s.broker(x)
	s.agent(x, broker)

	team, err := s.Team(s.ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := team.CommitAndPush(s.ctx, "Ask", map[string]string{"intents/vision/train.yaml": train}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the slice on the consumer", func() error {
		out, err := s.Clusters["rome"].Kubectl(s.ctx, s.Dir, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-paris", "-o", "name")
		if err == nil && !strings.Contains(out, "vision-train-0-") {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
	if _, err := team.Git(s.ctx, "fetch", "-q", "origin"); err != nil {
		t.Fatal(err)
	}
	log, err := team.Git(s.ctx, "log", "--format=%B", "origin/"+rig.Ledger)
	if err != nil || !strings.Contains(log, "\nVersion: "+release+"\n") {
		t.Errorf("the ledger's commits do not name the release (%v):\n%s", err, log)
	}
}

// installed is a rig on which the install bases are applied, and whose programs come
// from images.
type installed struct {
	*rig.Rig
	t   *testing.T
	ctx context.Context
}

// install starts rome, the consumer and the daemon's own cluster, and paris, the
// provider.
func install(t *testing.T) *installed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	r, err := rig.Start(ctx, rig.Options{
		Dir: t.TempDir(), Bin: bin, Consumers: []string{"rome"}, Signed: true,
		Providers: map[string][]env.GPUNode{"paris": {{Name: "paris-1", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &installed{Rig: r, t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			s.logs()
		}
		if err := r.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	for cluster, bases := range map[string][]string{"rome": {"broker", "consumer"}, "paris": {"agent", "provider"}} {
		for _, b := range bases {
			if out, err := r.Clusters[cluster].Kubectl(ctx, ".", "apply", "-k", filepath.Join(r.Laid, "install", b)); err != nil {
				t.Fatalf("apply install/%s to %s: %v\n%s", b, cluster, err, out)
			}
		}
		kubeconfig, err := r.Clusters[cluster].KubeconfigForServiceAccount(ctx, "fleetbroker", "fleetbroker")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.Dir, "kubeconfigs", cluster+".kubeconfig"), kubeconfig, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// broker runs the image of the daemon, and gives the address that agents report to.
func (s *installed) broker(x *tool) (agents string) {
	root, _ := x.unpack("acme/fleetbroker:" + release)
	args, environment := s.container("broker/statefulset.yaml")
	agents = s.address()
	trust := s.Rig.Trust() // --trust-root FILE --signing-key FILE
	s.flags(args, map[string]string{
		"--repo": s.Git.BareURL(rig.Repo), "--git-user": "", "--git-password-file": "", // the server asks for none
		"--agents-address": agents, "--advertise-address": agents, "--operators-address": s.address(), "--webhooks-address": s.address(),
	})
	s.lay(root, "/etc/fleetbroker/trust/trust-root.yaml", trust[1])
	s.lay(root, "/etc/fleetbroker/trust/ledger", trust[3])
	s.lay(root, "/etc/fleetbroker/kubeconfigs", filepath.Join(s.Dir, "kubeconfigs"))
	s.lay(root, "/etc/fleetbroker/webhooks", filepath.Join(s.Dir, "hooks"))
	s.lay(root, "/etc/fleetbroker/certs", s.certificate(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1", "localhost"}}))
	s.run("fleetbroker", root, args, append(environment, s.account(root, "rome", "fleetbroker")...), "/var/lib/fleetbroker")
	return agents
}

// agent runs the image of paris' agent.
func (s *installed) agent(x *tool, broker string) {
	root, _ := x.unpack("acme/fleet-agent:" + release)
	args, environment := s.container("agent/deployment.yaml")
	s.flags(args, map[string]string{
		"--cluster-id": "paris", "--broker-url": "https://" + broker, "--health-probe-bind-address": s.address(), "--metrics-bind-address": s.address(),
	})
	s.lay(root, "/etc/fleet-agent/certs", s.certificate(pki.Request{Name: "paris"}))
	s.run("fleet-agent", root, args, append(environment, s.account(root, "paris", "fleet-agent")...))
}

// container is the command line and the environment of a base's one container.
func (s *installed) container(path string) (args *[]string, environment []string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Laid, "install", path))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var w appsv1.Deployment // a StatefulSet has its template in the same place
		if err := yaml.Unmarshal([]byte(doc), &w); err != nil {
			s.t.Fatal(err)
		}
		if len(w.Spec.Template.Spec.Containers) != 1 {
			continue
		}
		c := w.Spec.Template.Spec.Containers[0]
		for _, e := range c.Env {
			value := e.Value
			if e.ValueFrom != nil { // the pod's name or namespace
				value = "fleetbroker"
			}
			environment = append(environment, e.Name+"="+value)
		}
		return &c.Args, environment
	}
	s.t.Fatalf("install/%s has no container", path)
	return nil, nil
}

// flags gives flags of a base the values of this machine; "" takes one away. All else
// stays as the base has it.
func (s *installed) flags(args *[]string, values map[string]string) {
	s.t.Helper()
	var out []string
	for _, a := range *args {
		name, _, _ := strings.Cut(a, "=")
		value, ours := values[name]
		delete(values, name)
		switch {
		case !ours:
			out = append(out, a)
		case value != "":
			out = append(out, name+"="+value)
		}
	}
	if len(values) > 0 {
		s.t.Fatalf("the base has no flags %v", values)
	}
	*args = out
}

// lay copies a file or directory of this machine to where a volume mounts it.
func (s *installed) lay(root, path, from string) {
	s.t.Helper()
	target := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		s.t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err == nil && info.IsDir() {
		err = os.CopyFS(target, os.DirFS(from))
	} else if err == nil {
		var content []byte
		if content, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(target, content, 0o600)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// account lays the token of a ServiceAccount where a pod has it, and gives the variables
// by which the pod finds the API server.
func (s *installed) account(root, cluster, name string) []string {
	s.t.Helper()
	kubeconfig, err := s.Clusters[cluster].KubeconfigForServiceAccount(s.ctx, "fleetbroker", name)
	if err != nil {
		s.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.t.TempDir()
	for file, content := range map[string]string{"token": config.BearerToken, "ca.crt": string(config.CAData), "namespace": "fleetbroker"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.lay(root, "/var/run/secrets/kubernetes.io/serviceaccount", dir)
	u, err := url.Parse(config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
}

// run starts a container, of which all files but the image's own are the user's, as a
// kubelet gives them.
func (s *installed) run(program, root string, args *[]string, environment []string, writable ...string) {
	s.t.Helper()
	for _, dir := range writable {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		for _, dir := range append([]string{"/etc", "/var"}, writable...) {
			err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
				return errors.Join(err, os.Chown(path, env.ContainerUser, env.ContainerUser))
			})
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				s.t.Fatal(err)
			}
		}
	}
	p, err := env.StartContainer(env.Container{
		Name: program, Dir: filepath.Join(s.Dir, "logs"), Root: root,
		Args: append([]string{"/" + program}, *args...), Env: environment, Writable: writable,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		select {
		case <-p.Done():
			s.t.Errorf("the container is gone: %v", p.Failure())
		default:
		}
		if err := p.Stop(); err != nil {
			s.t.Errorf("stop %s: %v", program, err)
		}
	})
}

func (s *installed) certificate(q pki.Request) string {
	s.t.Helper()
	bundle, err := s.Authority().Issue(q)
	if err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(s.t.TempDir(), "certs")
	if err := bundle.WriteDir(dir); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

func (s *installed) address() string {
	s.t.Helper()
	address, release, err := env.ReserveAddress()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(release)
	return address
}

func (s *installed) eventually(what string, check func() error) {
	s.t.Helper()
	if _, err := env.Until(s.ctx, patience, check); err != nil {
		s.t.Fatalf("not seen: %s: %v", what, err)
	}
}

// logs shows what the programs said last.
func (s *installed) logs() {
	for _, name := range []string{"fleetbroker", "fleet-agent"} {
		text, err := os.ReadFile(filepath.Join(s.Dir, "logs", name+".log"))
		if err != nil {
			s.t.Error(err)
			continue
		}
		lines := strings.Split(string(text), "\n")
		s.t.Logf("%s:\n%s", name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}
