package verify

import (
	"bytes"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Whatever the shape of the history: when nobody signs, nothing changes; when
// the fleet's signer signs all, everything does; and it is the same in one step
// as in several.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, base := newHistory(t)
		all := rapid.Bool().Draw(rt, "signed")
		commits := []tree.Hash{base}
		head := base
		var line []tree.Hash
		for i := range rapid.IntRange(1, 12).Draw(rt, "commits") {
			parents := []tree.Hash{rapid.SampledFrom(commits).Draw(rt, "parent")}
			for range rapid.IntRange(0, 2).Draw(rt, "more") {
				parents = append(parents, rapid.SampledFrom(commits).Draw(rt, "another"))
			}
			if rapid.Bool().Draw(rt, "on the line") {
				parents[0] = head
			}
			files := map[string]string{}
			for range rapid.IntRange(0, 3).Draw(rt, "files") {
				content := rapid.SampledFrom([]string{"-", "1", "2", "3"}).Draw(rt, "content")
				files[rapid.SampledFrom([]string{visionA, visionB, audio, rome, "prices/x/y.yaml"}).Draw(rt, "file")] = content
			}
			by := ""
			if all {
				by = "root"
			}
			c := h.commit(by, parents, files)
			commits = append(commits, c)
			if i == 0 || parents[0] == head {
				head, line = c, append(line, c)
			}
		}
		if len(line) == 0 || h.commits[head] == nil {
			return
		}
		v := h.verify(base, head)
		want := base
		if all {
			want = head
		}
		raw, err := h.Tree(want)
		if err != nil {
			rt.Fatal(err)
		}
		changes, err := diff(raw, v.Tree)
		if err != nil || len(changes) > 0 {
			rt.Fatalf("signed %v: what may be acted on differs from %s: %v, %v", all, want.Short(), changes, err)
		}
		if all && v.Clean != head {
			rt.Fatal("not clean")
		}
	})
}

// How often the branch is looked at makes no difference.
func TestStepByStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, base := newHistory(t)
		line := []tree.Hash{base}
		side := base
		for range rapid.IntRange(1, 10).Draw(rt, "commits") {
			head := line[len(line)-1]
			by := rapid.SampledFrom([]string{"", "root", "ada", "bob", "carl", "eve"}).Draw(rt, "by")
			file := rapid.SampledFrom([]string{visionA, visionB, audio, rome, "tenants/vision.yaml"}).Draw(rt, "file")
			content := rapid.SampledFrom([]string{"-", "1", "2"}).Draw(rt, "content")
			if file == "tenants/vision.yaml" {
				content = h.tenantFile("vision", "", rapid.SampledFrom([]string{"ada", "eve"}).Draw(rt, "signer"))
			}
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				side = h.commit(by, on(side), put(file, content))
			case 1:
				line = append(line, h.commit(by, on(head, side), put(file, content)))
			default:
				line = append(line, h.commit(by, on(head), put(file, content)))
			}
		}
		v := New(h, clockOf(h))
		accepted := base
		var last *State
		for _, c := range line {
			s, err := v.Verify(t.Context(), accepted, c, nil)
			if err != nil {
				rt.Fatal(err)
			}
			accepted, last = s.Clean, s
		}
		once := h.verify(base, line[len(line)-1])
		if once.Tree.Root != last.Tree.Root || fmt.Sprint(once.Findings) != fmt.Sprint(last.Findings) || once.Clean != last.Clean {
			rt.Fatalf("at once: %v\nstep by step: %v", once.Findings, last.Findings)
		}
	})
}

// An OpenPGP key signs until it expires, by our clock and not by the commit's.
func TestOpenPGP(t *testing.T) {
	h, start := newHistory(t)
	now := time.Now()
	e, err := openpgp.NewEntity("Grace", "", "grace@example.org", &packet.Config{KeyLifetimeSecs: 3600, DefaultHash: crypto.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	armored := func(kind string, write func(*bytes.Buffer) error) string {
		var raw, out bytes.Buffer
		if err := write(&raw); err != nil {
			t.Fatal(err)
		}
		w, err := armor.Encode(&out, kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(raw.Bytes()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	file := filepath.Join(t.TempDir(), "key.asc")
	private := armored(openpgp.PrivateKeyType, func(b *bytes.Buffer) error { return e.SerializePrivate(b, nil) })
	if err := os.WriteFile(file, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := gitrepo.OpenPGPSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	public := armored(openpgp.PublicKeyType, func(b *bytes.Buffer) error { return e.Serialize(b) })
	h.keys["grace"] = key{signer, public}
	base := h.commit("root", on(start), put("tenants/vision.yaml", h.tenantFile("vision", "", "ada", "grace")))
	head := h.commit("grace", on(base), put(visionA, "a 2"))

	h.at = now.Add(time.Minute)
	h.verify(base, head).finds("")
	h.at = now.Add(2 * time.Hour)
	v := h.verify(base, head)
	v.has(visionA, "a 1")
	v.finds("expired", visionA)
	root, err := trust.Parse("root.yaml", fmt.Appendf(nil, "apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"+
		"  policy: [{principal: grace, publicKey: %q}]\n  ledger: [{principal: fleetbroker, publicKey: %q}]\n", public, h.keys["carl"].public))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(h, clockOf(h)).Trust(root).Base(t.Context(), head); err == nil || !strings.Contains(err.Error(), "The newest signed one, "+head.Short()) || !strings.Contains(err.Error(), "expired") || !strings.Contains(err.Error(), "new expiry date") {
		t.Errorf("where to begin, with an expired key: %v", err)
	}
	h.at = now.Add(time.Minute)
	h.verify(start, head).finds("") // the key was added on the line before
	other := strings.Replace(string(h.commits[head]), "change", "chance", 1)
	h.verify(base, h.store([]byte(other), h.mem.Build(h.files[head]).Root)).finds("does not count", visionA)
}

// BenchmarkTenThousandCommits verifies a range of 10,000 signed commits, every
// tenth a merge of a branch.
func BenchmarkTenThousandCommits(b *testing.B) {
	h, base := newHistory(b)
	head := base
	for i := range 9000 {
		path := fmt.Sprintf("intents/vision/%d.yaml", i%500)
		if i%9 != 8 {
			head = h.commit("ada", on(head), put(path, fmt.Sprint(i)))
			continue
		}
		side := h.commit("bob", on(head), put(path, fmt.Sprint(i)))
		head = h.commit("", on(head, side), put(path, fmt.Sprint(i)))
	}
	b.ResetTimer()
	for range b.N {
		if v := h.verify(base, head); v.Clean != head {
			b.Fatal("not clean")
		}
	}
}
