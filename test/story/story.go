package story

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// clusters is a Delivery in which everything it was told of works at once.
type clusters struct {
	desired map[string]delivery.Desired
	told    uint64
}

func (c *clusters) Deliver(d map[string]delivery.Desired) { c.desired, c.told = d, c.told+1 }

func (c *clusters) Observe() (v1alpha1.ConsumerObservations, uint64) {
	all := v1alpha1.ConsumerObservations{}
	for name, d := range c.desired {
		out := map[string]v1alpha1.ConsumerObservation{}
		all[name] = out
		files := map[string]bool{}
		_ = d.Tree.Walk(func(name string, _ tree.Entry) error {
			files[name[strings.LastIndexByte(name, '/')+1:]] = true
			return nil
		})
		is := func(there bool) v1alpha1.Presence {
			if there {
				return v1alpha1.Present
			}
			return v1alpha1.Absent
		}
		for _, ct := range d.Contracts {
			slice, node := files[ct.Metadata.Name+"-slice.yaml"], files[ct.Metadata.Name+"-virtualnode.yaml"]
			out[ct.Metadata.Name] = v1alpha1.ConsumerObservation{
				Reachable: true, Slice: is(slice), VirtualNode: is(node), Node: is(node), NodeReady: node,
				Granted: ct.Spec.Resources, Allocatable: ct.Spec.Resources, Offloading: true,
			}
		}
	}
	return all, c.told
}

// T is what a story needs of a test.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Story is a fleet with a real daemon on a repository in memory, and time that
// stands still until it is moved.
type Story struct {
	t      T
	Remote *memremote.Remote
	r      *reconciler.Reconciler
	repo   *gitrepo.Repo
	pulls  *pulls
	At     time.Time
	Ledger string
	signer gitrepo.Signer
	// root holds the daemon to signatures, people signs what Ada pushes; may be nil.
	root   *trust.Root
	people gitrepo.Signer
	// market of the daemon, and what its agents report before each round; may be nil.
	market *market.Market
	beat   func()
}

const fleetText = `apiVersion: fleetbroker.io/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  currency: EUR
  writeBack: {inputs: main, branch: %s, author: {name: fleetbroker, email: broker@example.org}, statusInterval: 1s%s}
  retention: {ended: 30m}
`

// New founds a fleet and starts its daemon. The ledger is on branch; with a
// signer the daemon signs, and the fleet trusts its public key.
func New(t T, branch string, signer gitrepo.Signer, public string) *Story {
	t.Helper()
	return found(&Story{t: t, Ledger: branch, signer: signer}, public)
}

func found(s *Story, public string) *Story {
	s.t.Helper()
	branch := s.Ledger
	s.Remote, s.pulls, s.At = memremote.New(), &pulls{}, time.Date(2026, 11, 20, 12, 1, 0, 0, time.UTC)
	signers := ""
	if public != "" {
		signers = ", signers: [{principal: broker@example.org, publicKey: " + public + "}]"
	}
	s.Push("Found the fleet", map[string]string{
		"fleet.yaml":          fmt.Sprintf(fleetText, branch, signers),
		"clusters/rome.yaml":  "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]}\n",
		"clusters/paris.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n",
		"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], budget: {monthly: \"100000\", currency: EUR}}\n",
		"flavors/paris/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"256\", memory: 2Ti, gpu: 16}\n" +
			"  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}, spot: {gpu: \"1.00\"}}\n",
	})
	s.Start()
	return s
}

// Start makes a daemon that knows nothing.
func (s *Story) Start() {
	s.t.Helper()
	now := func() time.Time { return s.At }
	repo, err := gitrepo.Open(context.Background(), s.Remote, gitrepo.Options{
		Inputs: "main", Ledger: s.Ledger, Now: now, Rand: func() float64 { return 0.5 },
		Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.repo = repo
	s.market = market.New(market.Options{Now: now})
	s.r = reconciler.New(reconciler.Options{
		Repo: repo, Ledger: s.Ledger, Market: s.market, Delivery: &clusters{}, Now: now, Signer: s.signer, Root: s.root, PullRequests: s.pulls,
	})
}

// Ada is who asks, now.
func (s *Story) Ada() gitobj.Person {
	return gitobj.Person{Name: "Ada L.", Email: "ada@example.org", When: s.At}
}

// Push commits to the inputs as Ada.
func (s *Story) Push(subject string, files map[string]string, deletes ...string) {
	s.t.Helper()
	puts := map[string][]byte{}
	for name, content := range files {
		puts[name] = []byte(content)
	}
	if _, err := s.Remote.Merge("main", s.Ada(), subject, gitobj.Change{Puts: puts, Deletes: deletes}, s.people); err != nil {
		s.t.Fatal(err)
	}
}

func intentText(name string, gpus int, more string) string {
	return fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: vision, labels: {app: %s}}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: \"H100:%d\"}\n%s", name, name, gpus, more)
}

// Ask commits an intent of tenant vision for so many H100; more is the rest of its spec.
func (s *Story) Ask(name string, gpus int, more string) {
	s.t.Helper()
	s.Push("Ask for "+name, map[string]string{"intents/vision/" + name + ".yaml": intentText(name, gpus, more)})
}

// Rest makes rounds a minute apart until one has nothing to do.
func (s *Story) Rest() {
	s.t.Helper()
	for range 30 {
		s.At = s.At.Add(time.Minute)
		if s.beat != nil {
			s.beat()
		}
		s.r.Reread()
		o, err := s.r.Round(context.Background())
		if err != nil {
			s.t.Fatal(err)
		}
		if len(o.Committed) == 0 && !o.Again {
			return
		}
	}
	s.t.Fatal("the daemon does not come to rest")
}

// Lived is a fleet with a bit of history: placed, resized, released, retired,
// and two contracts that stand.
func Lived(t T, branch string, signer gitrepo.Signer, public string) *Story {
	t.Helper()
	return live(New(t, branch, signer, public))
}

func live(s *Story) *Story {
	s.t.Helper()
	s.Ask("train", 4, "")
	s.Ask("serve", 2, "  purchase: [spot]\n")
	s.Rest()
	s.Ask("train", 6, "")
	s.Rest()
	s.Ask("brief", 1, "")
	s.Rest()
	s.Push("Done with brief", nil, "intents/vision/brief.yaml")
	s.Rest()
	s.At = s.At.Add(2 * time.Hour)
	s.Rest()
	return s
}

// Read is the ledger at its head.
func (s *Story) Read() *ledger.Ledger {
	s.t.Helper()
	t, err := s.Remote.Tree(s.Remote.Head(s.Ledger))
	if err != nil {
		s.t.Fatal(err)
	}
	l, problems, err := ledger.Read(context.Background(), t, nil)
	if err != nil || len(problems) > 0 {
		s.t.Fatal(err, problems)
	}
	return l
}

// Contract is the newest contract of an intent.
func (s *Story) Contract(intent string) *v1alpha1.Contract {
	s.t.Helper()
	all := s.Read().ByIntent("vision", intent)
	if len(all) == 0 {
		s.t.Fatalf("there is no contract of %s", intent)
	}
	return all[len(all)-1]
}

// SSHKey is a new key pair: a file with the private key, and the public line.
func SSHKey(t testing.TB) (gitrepo.Signer, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(bytes.TrimSpace(public))
}
