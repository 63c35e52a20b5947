package gitrepo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// signedOptions are those of a daemon of a signed fleet.
func signedOptions(t *testing.T, mod ...func(*gitrepo.Options)) gitrepo.Options {
	t.Helper()
	file, pub := sshKey(t, "ed25519", "")
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	trusted := keys(t, pub)
	return options(append(mod, func(o *gitrepo.Options) {
		o.Identity.Signer, o.Identity.Trusted, o.Identity.Signed = signer, trusted, true
		o.Identity.Fleet, o.Identity.Root = "f3k9q2abu7", "sha256:01"
	})...)
}

// A bomb on the ledger is dropped, with the foreign commits below it, and nothing
// of ours is: neither what stood, nor what another replica committed since.
func TestSetBack_DropsForeignCommitsAlone(t *testing.T) {
	dir := bare(t)
	for scheme, url := range urls(t, dir) {
		t.Run(scheme, func(t *testing.T) {
			branch := "ledger-" + scheme
			opts := signedOptions(t, func(o *gitrepo.Options) { o.Ledger, o.Dir = branch, t.TempDir() })
			r := open(t, dial(t, url, gitrepo.Auth{}), opts)
			commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
			want := fetch(t, r).Ledger.Commit.Hash
			if scheme == "file" {
				other := open(t, dial(t, url, gitrepo.Auth{}), opts)
				want = commit(t, other, request(fetch(t, other), contract("vision", "b", "1"))).Head()
				git(t, dir, "update-ref", "refs/fleetbroker/accepted/ledger", want.String()+"^") // nor does the note show it
			}
			gitPut(t, dir, branch, "notes", "of another account\n")
			bomb := gitBomb(t, dir, branch)
			if h := fetch(t, r); len(h.Alarms) != 1 || !strings.Contains(h.Alarms[0], branch+" is at "+bomb[:7]) {
				t.Fatalf("alarms %q", h.Alarms)
			}
			if to, err := r.SetBack(t.Context(), true); err != nil || to != want {
				t.Fatalf("set back to %s (%v), want %s", to.Short(), err, want.Short())
			}
			h := fetch(t, r)
			if h.Ledger.Commit.Hash != want || len(h.Alarms) > 0 || git(t, dir, "rev-parse", branch) != want.String() {
				t.Errorf("the ledger is at %s, alarms %q, want %s", h.Ledger.Commit.Hash.Short(), h.Alarms, want.Short())
			}
			commit(t, r, request(h, contract("vision", "c", "1")))
			if to, err := r.SetBack(t.Context(), true); err != nil || !to.IsZero() {
				t.Errorf("nothing is refused, and it was set back to %s (%v)", to, err)
			}
		})
	}
}

// Where it cannot be done, the reason and the command for a person are given; it is
// tried again later, and by people's hands it ends at once.
func TestSetBack_SaysWhyNot(t *testing.T) {
	for name, c := range map[string]struct {
		mod  func(*gitrepo.Options)
		may  bool
		want string
	}{
		"server refuses":      {func(*gitrepo.Options) {}, true, "non-fast-forward"},
		"no right to write":   {func(*gitrepo.Options) {}, false, "this daemon may not"},
		"branch of inputs":    {oneBranch, true, "where people merge"},
		"commit of our own":   {func(*gitrepo.Options) {}, true, "a key of the ledger signed it"},
		"history set back":    {func(*gitrepo.Options) {}, true, "no commit below it contains"},
		"too many to be read": {func(*gitrepo.Options) {}, true, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := bare(t)
			now := noon
			opts := signedOptions(t, c.mod, func(o *gitrepo.Options) { o.Now, o.Dir = func() time.Time { return now }, t.TempDir() })
			branch := opts.Ledger
			r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), opts)
			commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
			stood := commit(t, r, request(fetch(t, r), contract("vision", "b", "1"))).Head()
			switch name {
			case "server refuses":
				git(t, dir, "config", "receive.denyNonFastForwards", "true")
			case "history set back":
				git(t, dir, "update-ref", "refs/heads/"+branch, stood.String()+"^")
			case "too many to be read":
				gitPut(t, dir, branch, "notes", "of somebody\n")
				recommit(t, dir, branch, func(c *gitobj.CommitData) { c.Message = strings.Repeat("m", 17<<20) })
			}
			bomb := gitBomb(t, dir, branch)
			if name == "commit of our own" {
				bomb = recommit(t, dir, branch, func(c *gitobj.CommitData) {
					if c.Signature, _ = opts.Identity.Signer.Sign(c.Payload()); c.Signature == "" {
						t.Fatal("no signature")
					}
				})
			}
			fetch(t, r)
			_, err := r.SetBack(t.Context(), c.may)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "git push --force-with-lease="+branch+":"+bomb+" origin "+stood.String()+":"+branch) {
				t.Fatalf("got %v, want %q and the command", err, c.want)
			}
			git(t, dir, "config", "receive.denyNonFastForwards", "false")
			if _, again := r.SetBack(t.Context(), c.may); again == nil || again.Error() != err.Error() {
				t.Errorf("at once after that: %v", again)
			}
			if now = now.Add(5 * time.Minute); name == "server refuses" {
				if to, err := r.SetBack(t.Context(), true); err != nil || to != stood {
					t.Errorf("later it was set back to %s (%v), want %s", to.Short(), err, stood.Short())
				}
				return
			}
			git(t, dir, "update-ref", "refs/heads/"+branch, stood.String())
			if h := fetch(t, r); h.Ledger.Commit.Hash != stood || len(h.Alarms) > 0 {
				t.Errorf("set back by hand: %s, alarms %q", h.Ledger.Commit.Hash.Short(), h.Alarms)
			}
		})
	}
}

// Refs of the fleet that name what cannot be taken in, or what is no commit, are
// ignored with an alarm and put right. The branches are read.
func TestIgnoresHintsThatCannotBeTakenIn(t *testing.T) {
	for _, what := range []string{"bomb", "blob", "tag", "tree"} {
		for i, ref := range []string{"accepted/inputs", "accepted/ledger", "offered"} {
			t.Run(what+" as "+ref, func(t *testing.T) {
				dir := bare(t)
				opts := options(func(o *gitrepo.Options) { o.Dir = t.TempDir() })
				if (i+len(what))%2 == 0 {
					opts = signedOptions(t, func(o *gitrepo.Options) { o.Dir = t.TempDir() })
				}
				r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), opts)
				commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
				before := fetch(t, r)
				h := hint(t, dir, what)
				git(t, dir, "update-ref", "refs/fleetbroker/"+ref, h)
				after := fetch(t, r)
				if after.Ledger.Commit.Hash != before.Ledger.Commit.Hash || after.Inputs.Commit.Hash != before.Inputs.Commit.Hash || after.Accepted != before.Accepted {
					t.Errorf("heads %v, %v, accepted %v; want them as before", after.Inputs.Commit.Hash, after.Ledger.Commit.Hash, after.Accepted)
				}
				if len(after.Alarms) != 1 || !strings.Contains(after.Alarms[0], "refs/fleetbroker/"+ref+" names "+h[:7]) {
					t.Errorf("alarms %q", after.Alarms)
				}
				if what != "tag" { // a commit puts it right too
					if err := r.PutRight(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				commit(t, r, request(after, contract("vision", "b", "1")))
				if _, err := r.Offer(t.Context(), request(fetch(t, r), contract("vision", "c", "1"))); err != nil {
					t.Error(err)
				}
				if h := fetch(t, r); len(h.Alarms) > 0 && (what != "tag" || ref != "accepted/inputs") {
					t.Errorf("after it was put right: %q", h.Alarms)
				}
			})
		}
	}
}

// hint makes what a ref may be put on by anybody who may push.
func hint(t *testing.T, dir, what string) string {
	t.Helper()
	switch what {
	case "bomb":
		git(t, dir, "branch", "aside", "main")
		h := gitBomb(t, dir, "aside")
		git(t, dir, "update-ref", "-d", "refs/heads/aside")
		return h
	case "tag":
		git(t, dir, "tag", "-a", "-m", "tag", "mark", "main")
		return git(t, dir, "rev-parse", "mark")
	}
	return git(t, dir, "rev-parse", map[string]string{"blob": "main:intents/vision/a.yaml", "tree": "main:intents"}[what])
}

// gitObject stores an object with the real git.
func gitObject(t *testing.T, dir, kind, content string) string {
	t.Helper()
	cmd := gitCmd(dir, "hash-object", "-w", "-t", kind, "--stdin")
	cmd.Stdin = strings.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// recommit puts another commit in the place of a branch's head.
func recommit(t *testing.T, dir, branch string, edit func(*gitobj.CommitData)) string {
	t.Helper()
	raw, err := gitCmd(dir, "cat-file", "commit", branch).Output()
	if err != nil {
		t.Fatal(err)
	}
	c, err := gitobj.ParseCommit(raw)
	if err != nil {
		t.Fatal(err)
	}
	edit(&c)
	h := gitObject(t, dir, "commit", string(c.Encode()))
	git(t, dir, "update-ref", "refs/heads/"+branch, h)
	return h
}
