package quick

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/demo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/inmem"
)

// inputs is the branch that people write.
const inputs = "main"

// stage is the story's fleet in memory.
type stage struct {
	run      CLI
	remote   *memremote.Remote
	clusters *inmem.Clusters
	clone    *clone
	daemon   *daemon
	proposed tree.Hash // the pull request's head
}

var _ demo.Stage = (*stage)(nil)

func newStage(dir string, run CLI) *stage {
	return &stage{run: run, remote: memremote.New(), clone: &clone{dir: filepath.Join(dir, "fleet")}}
}

// Opening implements demo.Stage.
func (s *stage) Opening() []string {
	return []string{
		"starting three clusters and a git repository in memory; nothing outside this process is asked",
		"simulated: API servers, nodes, pods, Liqo, agents, git's server and webhook; commits are not signed",
		"real: this program's reader, market, planner, ledger, manifests, commits and commands",
	}
}

// nodes of the story's providers.
func nodes() map[string][]inmem.Node {
	h100 := v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", Memory: gib(80), Architecture: "hopper", Sharing: "none", UnitsPerGPU: 1}
	a100 := v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-a100", Memory: gib(80), Architecture: "ampere", Sharing: "none", UnitsPerGPU: 1}
	return map[string][]inmem.Node{
		"paris": {{Name: "paris-1", Pool: "h100-pool", GPUs: 8, GPU: h100}, {Name: "paris-2", Pool: "h100-pool", GPUs: 8, GPU: h100}},
		"milan": {{Name: "milan-1", Pool: "h100-pool", GPUs: 4, GPU: h100}, {Name: "milan-2", Pool: "a100-pool", GPUs: 8, GPU: a100}},
	}
}

func gib(n int64) v1alpha1.MemorySize {
	return v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(n << 30)}
}

// founding are the first files of the fleet repo.
func founding() map[string]string {
	files := map[string]string{
		"fleet.yaml": `apiVersion: fleetbroker.io/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  currency: EUR
  writeBack: {mode: push, inputs: main, branch: ledger, statusInterval: 1s, author: {name: fleetbroker, email: fleetbroker@example.org}}
`,
		"tenants/vision.yaml": `apiVersion: fleetbroker.io/v1alpha1
kind: Tenant
metadata: {name: vision}
spec: {consumers: [rome], namespaces: [vision, "vision-*"]}
`,
		"clusters/rome.yaml": `apiVersion: fleetbroker.io/v1alpha1
kind: Cluster
metadata: {name: rome}
spec: {roles: [consumer]}
`,
	}
	maps.Copy(files, demo.Inputs())
	return files
}

// person who commits now.
func person(name string) gitobj.Person {
	return gitobj.Person{Name: name, Email: name + "@example.org", When: time.Now()}
}

// Up implements demo.Stage.
func (s *stage) Up(context.Context) (string, error) {
	if _, err := s.remote.Commit(inputs, person("platform"), "Set the fleet up", puts(founding())); err != nil {
		return "", err
	}
	s.clusters = inmem.New(inmem.Options{Providers: nodes(), Consumers: []string{demo.Consumer}})
	if err := s.clone.make(s.remote); err != nil {
		return "", err
	}
	return s.clone.dir, s.clone.checkOut(inputs)
}

func puts(files map[string]string) gitobj.Change {
	out := gitobj.Change{Puts: map[string][]byte{}}
	for name, content := range files {
		out.Puts[name] = []byte(content)
	}
	return out
}

// Join implements demo.Stage.
func (s *stage) Join(ctx context.Context) (err error) {
	s.daemon, err = startDaemon(ctx, s.remote, s.clusters)
	return err
}

// Failure implements demo.Stage.
func (s *stage) Failure() error {
	if s.daemon == nil {
		return nil
	}
	return s.daemon.failure()
}

// End implements demo.Stage.
func (s *stage) End() error {
	if s.daemon == nil {
		return nil
	}
	return s.daemon.stop()
}

// Fleetbroker implements demo.Stage.
func (s *stage) Fleetbroker(ctx context.Context, args ...string) (string, error) {
	if err := s.clone.fetch(ctx); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := s.run(ctx, &out, append(args, "-C", s.clone.dir, "--market", s.daemon.market.url)...)
	return out.String(), err
}

// Commit implements demo.Stage.
func (s *stage) Commit(ctx context.Context, branch, subject string, files map[string]string) (err error) {
	s.remote.SetRef("refs/heads/"+branch, s.remote.Head(inputs))
	if s.proposed, err = s.remote.Commit(branch, person("ada"), subject, puts(files)); err != nil {
		return err
	}
	return errors.Join(s.clone.fetch(ctx), s.clone.checkOut(branch))
}

// Merge implements demo.Stage.
func (s *stage) Merge(ctx context.Context, _, subject string) error {
	if _, err := s.remote.Merge(inputs, person("ada"), subject, puts(map[string]string{demo.IntentFile: demo.Intent}), nil, s.proposed); err != nil {
		return err
	}
	s.daemon.loop.Reread() // the webhook
	return errors.Join(s.clone.fetch(ctx), s.clone.checkOut(inputs))
}

// Remove implements demo.Stage.
func (s *stage) Remove(ctx context.Context, subject, file string) error {
	if _, err := s.remote.Commit(inputs, person("ada"), subject, gitobj.Change{Deletes: []string{file}}); err != nil {
		return err
	}
	s.daemon.loop.Reread()
	return errors.Join(s.clone.fetch(ctx), s.clone.checkOut(inputs))
}

// Ledger implements demo.Stage.
func (s *stage) Ledger(ctx context.Context) ([]demo.Commit, error) {
	if err := s.clone.fetch(ctx); err != nil {
		return nil, err
	}
	return s.clone.log(demo.Ledger)
}

// Files implements demo.Stage.
func (s *stage) Files(context.Context) (out []string, err error) {
	t, err := s.remote.Tree(s.remote.Head(demo.Ledger))
	if err != nil {
		return nil, err
	}
	err = t.Walk(func(path string, _ tree.Entry) error {
		out = append(out, path)
		return nil
	})
	return out, err
}

// File implements demo.Stage.
func (s *stage) File(_ context.Context, name string) (string, error) {
	t, err := s.remote.Tree(s.remote.Head(demo.Ledger))
	if err != nil {
		return "", err
	}
	content, err := t.ReadFile(name, 0)
	return string(content), err
}

// Objects implements demo.Stage.
func (s *stage) Objects(context.Context) (string, error) {
	objects := s.clusters.Objects(demo.Consumer)
	rows := make([][]string, 0, len(objects))
	for _, o := range objects {
		gpus := o.GPUs
		if gpus == "" {
			gpus = "<none>"
		}
		rows = append(rows, []string{o.Kind, o.Namespace, o.Name, gpus})
	}
	return table([]string{"KIND", "NAMESPACE", "NAME", "GPUS"}, rows), nil
}

// Nodes implements demo.Stage.
func (s *stage) Nodes(context.Context) (string, error) {
	rows := [][]string{{demo.Consumer + "-own", "<none>", "<none>", "True"}}
	for _, n := range s.clusters.Nodes(demo.Consumer) {
		rows = append(rows, []string{n.Name, n.GPUs, n.Model, "True"})
	}
	return table([]string{"NAME", "GPUS", "MODEL", "READY"}, rows), nil
}

// Pods implements demo.Stage.
func (s *stage) Pods(_ context.Context, cluster, namespace string) (string, error) {
	pods := s.clusters.Pods(cluster, namespace)
	rows := make([][]string, 0, len(pods))
	for _, p := range pods {
		rows = append(rows, []string{p.Name, p.Phase, p.Node})
	}
	return table([]string{"NAME", "PHASE", "NODE"}, rows), nil
}

// table is rows as kubectl prints them; "" for none.
func table(header []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return out.String()
}

// deployment is the part of a Deployment that the simulation runs.
type deployment struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Replicas int
		Template struct {
			Spec struct {
				Containers []struct {
					Resources struct{ Limits v1alpha1.Resources }
				}
			}
		}
	}
}

// Deploy implements demo.Stage.
func (s *stage) Deploy(_ context.Context, manifest string) error {
	var d deployment
	if err := yaml.Unmarshal([]byte(manifest), &d); err != nil {
		return fmt.Errorf("deploy: %w", err)
	}
	w := inmem.Workload{Namespace: d.Metadata.Namespace, Name: d.Metadata.Name, Replicas: d.Spec.Replicas}
	for _, c := range d.Spec.Template.Spec.Containers {
		w.GPUs += c.Resources.Limits["nvidia.com/gpu"].Int64()
	}
	return s.clusters.Deploy(demo.Consumer, w)
}
