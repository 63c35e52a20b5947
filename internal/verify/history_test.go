package verify

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// key is a person's key pair.
type key struct {
	gitrepo.Signer
	public string
}

// history is commits in memory.
type history struct {
	t       testing.TB
	mem     *tree.Memory
	commits map[tree.Hash][]byte
	files   map[tree.Hash]map[string][]byte
	keys    map[string]key
	at      time.Time
}

// RawCommit implements History.
func (h *history) RawCommit(c tree.Hash) ([]byte, error) {
	raw, ok := h.commits[c]
	if !ok {
		return nil, fmt.Errorf("commit %s: %w", c, fs.ErrNotExist)
	}
	return raw, nil
}

// Tree implements History.
func (h *history) Tree(c tree.Hash) (tree.Tree, error) {
	if c.IsZero() {
		return tree.Tree{}, nil
	}
	raw, err := h.RawCommit(c)
	if err != nil {
		return tree.Tree{}, err
	}
	d, err := gitobj.ParseCommit(raw)
	return tree.Tree{Store: h.mem, Root: d.Tree}, err
}

const people = "root ada bob carl eve"

// newHistory is a fleet in which root may sign everything, ada and bob the
// intents of vision, carl those of audio, and eve nothing.
func newHistory(t testing.TB) (*history, tree.Hash) {
	t.Helper()
	h := &history{t: t, mem: tree.NewMemory(), commits: map[tree.Hash][]byte{}, files: map[tree.Hash]map[string][]byte{}, keys: map[string]key{}, at: noon}
	maps.Copy(h.keys, peoplesKeys(t))
	return h, h.commit("", nil, map[string]string{
		"fleet.yaml":              h.fleetFile("signed", "root"),
		"tenants/vision.yaml":     h.tenantFile("vision", "", "ada", "bob"),
		"tenants/audio.yaml":      h.tenantFile("audio", "", "carl"),
		"clusters/rome.yaml":      "rome 1",
		"intents/vision/a.yaml":   "a 1",
		"intents/vision/b.yaml":   "b 1",
		"intents/audio/deaf.yaml": "deaf 1",
		"README.md":               "readme",
	})
}

// peoplesKeys are made once: many histories are tried.
func peoplesKeys(t testing.TB) map[string]key {
	keysOnce.Lock()
	defer keysOnce.Unlock()
	for i, name := range strings.Fields(people) {
		if _, ok := keysMade[name]; !ok {
			signer, public := memremote.KeyPair(t, string(rune('a'+i)))
			keysMade[name] = key{signer, public}
		}
	}
	return keysMade
}

var (
	keysOnce sync.Mutex
	keysMade = map[string]key{}
)

func (h *history) signers(names []string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf("{principal: %s@example.org, publicKey: %q}", n, h.keys[n].public))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (h *history) fleetFile(mode string, signers ...string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec: {verification: {mode: " + mode + ", signers: " + h.signers(signers) + "}}\n"
}

func (h *history) tenantFile(name, approvers string, signers ...string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: " + name + "}\nspec: {consumers: [rome], approvers: [" + approvers + "], signers: " + h.signers(signers) + "}\n"
}

// commit adds a commit by somebody, signed with his key ("" for nobody), on top
// of parents: the tree of the first, with some files written or ("-") removed.
func (h *history) commit(by string, parents []tree.Hash, files map[string]string) tree.Hash {
	h.t.Helper()
	return h.add(h.draft(by, parents, files), by)
}

// draft is a commit without a signature.
func (h *history) draft(author string, parents []tree.Hash, files map[string]string) gitobj.CommitData {
	if author == "" {
		author = "eve"
	}
	h.at = h.at.Add(time.Second)
	content := map[string][]byte{}
	if len(parents) > 0 {
		maps.Copy(content, h.files[parents[0]])
	}
	for name, text := range files {
		content[name] = []byte(text)
		if text == "-" {
			delete(content, name)
		}
	}
	t := h.mem.Build(content)
	h.files[t.Root] = content
	who := gitobj.Person{Name: author, Email: author + "@example.org", When: h.at}
	return gitobj.CommitData{Tree: t.Root, Parents: parents, Author: who, Committer: who, Message: "change\n"}
}

// add signs a draft and stores it.
func (h *history) add(d gitobj.CommitData, by string) tree.Hash {
	h.t.Helper()
	if by != "" {
		sig, err := h.keys[by].Sign(d.Payload())
		if err != nil {
			h.t.Fatal(err)
		}
		d.Signature = sig
	}
	return h.store(d.Encode(), d.Tree)
}

func (h *history) store(raw []byte, root tree.Hash) tree.Hash {
	c := gitobj.Object{Type: gitobj.Commit, Data: raw}.Hash()
	h.commits[c], h.files[c] = raw, h.files[root]
	return c
}

// verified is what may be acted on.
type verified struct {
	*State
	t testing.TB
}

func (h *history) verify(accepted, head tree.Hash) verified {
	h.t.Helper()
	s, err := New(h, func() time.Time { return h.at }).Verify(h.t.Context(), accepted, head, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return verified{s, h.t}
}

// has demands the content of a path; "-" that it is not there.
func (v verified) has(path, want string) {
	v.t.Helper()
	got := "-"
	if b, err := v.Tree.ReadFile(path, 0); err == nil {
		got = string(b)
	}
	if got != want {
		v.t.Errorf("%s: got %q, want %q", path, got, want)
	}
}

// finds demands the paths that are held back, and what is said of the first.
func (v verified) finds(why string, paths ...string) {
	v.t.Helper()
	var got []string
	for _, f := range v.Findings {
		got = append(got, f.Path)
	}
	if strings.Join(got, " ") != strings.Join(paths, " ") {
		v.t.Errorf("held back are %q, want %q", got, paths)
		return
	}
	if len(got) > 0 && !strings.Contains(v.Findings[0].String(), why) {
		v.t.Errorf("it says %q, and not %q", v.Findings[0], why)
	}
}
