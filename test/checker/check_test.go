package checker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// ledgerRepo writes histories by hand, good ones and broken ones.
type ledgerRepo struct {
	t    *testing.T
	st   *memory.Storage
	head plumbing.Hash
}

func newRepo(t *testing.T) *ledgerRepo { return &ledgerRepo{t: t, st: memory.NewStorage()} }

// store puts a tree of plain files into the repository.
func (r *ledgerRepo) store(files map[string]string) plumbing.Hash {
	bytes := map[string][]byte{}
	for p, c := range files {
		bytes[p] = []byte(c)
	}
	mem := tree.NewMemory()
	return r.copyTree(mem.Build(bytes))
}

func (r *ledgerRepo) copyTree(tr tree.Tree) plumbing.Hash {
	entries, err := tr.Entries()
	if err != nil {
		r.t.Fatal(err)
	}
	out := &object.Tree{}
	for _, e := range entries {
		te := object.TreeEntry{Name: e.Name, Mode: filemode.Regular}
		if e.Kind == tree.Dir {
			te.Mode, te.Hash = filemode.Dir, r.copyTree(tree.Tree{Store: tr.Store, Root: e.Hash})
		} else {
			content, err := tr.Store.File(e.Hash, 0)
			if err != nil {
				r.t.Fatal(err)
			}
			o := r.st.NewEncodedObject()
			o.SetType(plumbing.BlobObject)
			w, _ := o.Writer()
			_, _ = w.Write(content)
			if te.Hash, err = r.st.SetEncodedObject(o); err != nil {
				r.t.Fatal(err)
			}
		}
		out.Entries = append(out.Entries, te)
	}
	o := r.st.NewEncodedObject()
	if err := out.Encode(o); err != nil {
		r.t.Fatal(err)
	}
	h, err := r.st.SetEncodedObject(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *ledgerRepo) commit(files map[string]string, message string) {
	c := &object.Commit{
		Author: object.Signature{Name: "x", When: time.Unix(1, 0)}, Committer: object.Signature{Name: "x", When: time.Unix(1, 0)},
		Message: message, TreeHash: r.store(files),
	}
	if !r.head.IsZero() {
		c.ParentHashes = []plumbing.Hash{r.head}
	}
	o := r.st.NewEncodedObject()
	if err := c.Encode(o); err != nil {
		r.t.Fatal(err)
	}
	h, err := r.st.SetEncodedObject(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.head = h
	if err := r.st.SetReference(plumbing.NewHashReference("refs/heads/main", h)); err != nil {
		r.t.Fatal(err)
	}
}

func contractFile(name, phase, market, gpus string) string {
	return fmt.Sprintf("metadata: {name: %s, namespace: vision}\nspec:\n  intent: {name: train}\n  consumer: rome\n  provider: paris\n  flavor: h100\n  slice: %s\n"+
		"  resources: {cpu: \"4\", nvidia.com/gpu: %q}\ndecision: {market: %s}\nstatus: {phase: %s}\n", name, name, gpus, market, phase)
}

func sliceFile(name, create, gpus string) string {
	return fmt.Sprintf("kind: ResourceSlice\nmetadata:\n  name: %s\n  labels: {fleetbroker.io/contract: %s}\n  annotations: {liqo.io/create-virtual-node: %q}\nspec:\n  resources: {cpu: \"4\", nvidia.com/gpu: %q}\n",
		name, name, create, gpus)
}

func message(lines ...string) string {
	return "subject\n\n" + strings.Join(append(lines, "Inputs: 1", "Market: 2", "Plan: sha256:3", "Now: 4"), "\n") + "\n"
}

const (
	contractPath = "contracts/vision/ab/train/%s.yaml"
	slicePath    = "manifests/rome/vision/ab/%s-slice.yaml"
)

func files(kv ...string) map[string]string {
	out := map[string]string{"intents/vision/train.yaml": "x"}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}

func TestCheck(t *testing.T) {
	const flavors = "kind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"64\", gpu: 8}\n  used: {gpu: 1}\n  held: {gone: {gpu: \"1\"}}\n"
	c := func(n string) string { return fmt.Sprintf(contractPath, n) }
	s := func(n string) string { return fmt.Sprintf(slicePath, n) }
	cases := map[string]struct {
		reason string
		build  func(r *ledgerRepo, market string)
		want   string
	}{
		"Good": {
			reason: "a contract placed, released and gone breaks nothing",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(c("a"), contractFile("a", "Reserved", m, "4"), s("a"), sliceFile("a", "true", "4")), message("Contract: a - -> Reserved"))
				r.commit(files(c("a"), contractFile("a", "Releasing", m, "4"), s("a"), sliceFile("a", "false", "4")), message("Contract: a Reserved -> Releasing"))
				r.commit(files(c("a"), contractFile("a", "Released", m, "4")), message("Contract: a Releasing -> Released"))
				r.commit(files(), message())
			},
		},
		"Oversold": {
			reason: "1 used, 1 held by an unknown, 4 + 3 contracted of 8",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(c("a"), contractFile("a", "Reserved", m, "4"), s("a"), sliceFile("a", "true", "4"),
					c("b"), contractFile("b", "Reserved", m, "3"), s("b"), sliceFile("b", "true", "3")),
					message("Contract: a - -> Reserved", "Contract: b - -> Reserved"))
			},
			want: "OVERSOLD paris/h100: gpu",
		},
		"NoTrailer": {
			reason: "a contract may not appear unsaid",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(c("a"), contractFile("a", "Reserved", m, "4"), s("a"), sliceFile("a", "true", "4")), message())
			},
			want: "without a trailer",
		},
		"EndsWithoutReleasing": {
			reason: "ends are reached only through Releasing",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(c("a"), contractFile("a", "Reserved", m, "4"), s("a"), sliceFile("a", "true", "4")), message("Contract: a - -> Reserved"))
				r.commit(files(c("a"), contractFile("a", "Released", m, "4")), message("Contract: a Reserved -> Released"))
			},
			want: "goes from Reserved to Released",
		},
		"NoSlice": {
			reason: "manifests ride in the contract's own commit",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(c("a"), contractFile("a", "Reserved", m, "4")), message("Contract: a - -> Reserved"))
			},
			want: "has no slice",
		},
		"StraySlice": {
			reason: "a slice of an ended contract is a gift",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(s("z"), sliceFile("z", "true", "4")), message())
			},
			want: "belongs to no contract",
		},
		"Empty": {
			reason: "a round that changes nothing makes no commit",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(), message())
				r.commit(files(), message())
			},
			want: "changes nothing",
		},
		"Vanished": {
			reason: "a held contract may not disappear",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(c("a"), contractFile("a", "Reserved", m, "4"), s("a"), sliceFile("a", "true", "4")), message("Contract: a - -> Reserved"))
				r.commit(files(), message())
			},
			want: "goes from Reserved to -",
		},
		"SliceDiffers": {
			reason: "the slice asks for what was contracted",
			build: func(r *ledgerRepo, m string) {
				r.commit(files(c("a"), contractFile("a", "Reserved", m, "4"), s("a"), sliceFile("a", "true", "5")), message("Contract: a - -> Reserved"))
			},
			want: `has nvidia.com/gpu "5", its contract "4"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			market := r.store(map[string]string{"paris.yaml": flavors})
			tc.build(r, market.String())
			res, err := Check(r.st, "main")
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, v := range res.Violations {
				all = append(all, v.What)
			}
			got := strings.Join(all, "\n")
			if tc.want == "" && got != "" {
				t.Errorf("%s: found\n%s", tc.reason, got)
			}
			if tc.want != "" && !strings.Contains(got, tc.want) {
				t.Errorf("%s: want a violation with %q, found\n%s", tc.reason, tc.want, got)
			}
		})
	}
}
