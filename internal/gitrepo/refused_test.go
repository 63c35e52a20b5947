package gitrepo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// gitBomb commits to a branch a file that a delta of some bytes makes.
func gitBomb(t *testing.T, dir, branch string) string {
	t.Helper()
	pack, small, large := memremote.DeltaBomb(257)
	run := func(stdin io.Reader, args ...string) string {
		t.Helper()
		cmd := gitCmd(dir, args...)
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+filepath.Join(dir, "bomb-index"))
		cmd.Stdin = stdin
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	run(bytes.NewReader(pack), "index-pack", "--stdin")
	parent := run(nil, "rev-parse", "refs/heads/"+branch)
	run(nil, "read-tree", parent)
	for name, h := range map[string]string{"small": small, "large": large} {
		run(nil, "update-index", "--add", "--cacheinfo", "100644,"+h+",intents/vision/"+name)
	}
	c := run(strings.NewReader("bomb\n"), "commit-tree", run(nil, "write-tree"), "-p", parent)
	run(nil, "update-ref", "refs/heads/"+branch, c)
	return c
}

// A head that brings more than is taken in is refused by itself: the other
// branch is read, what stood before it stays, and what comes after it is set back
// counts. It is asked for once.
func TestBombOnABranchStopsThatBranchAlone(t *testing.T) {
	dir := bare(t)
	ways := urls(t, dir)
	for bombed, way := range map[string]string{"main": "http", "ledger": "file"} {
		url := ways[way]
		t.Run(bombed+" over "+way, func(t *testing.T) {
			state := t.TempDir()
			onDisk := options(func(o *gitrepo.Options) { o.Dir = state })
			r := open(t, dial(t, url, gitrepo.Auth{}), onDisk)
			commit(t, r, request(fetch(t, r), contract(bombed+way, "a", "1")))
			before := fetch(t, r)
			bomb := gitBomb(t, dir, bombed)
			other := map[string]string{"main": "ledger", "ledger": "main"}[bombed]
			moved := gitPut(t, dir, other, "intents/vision/"+bombed+way+".yaml", "kind: ResourceIntent\n")
			for range 2 {
				h := fetch(t, r)
				at := map[string]string{"main": h.Inputs.Commit.Hash.String(), "ledger": h.Ledger.Commit.Hash.String()}
				stood := map[string]string{"main": before.Inputs.Commit.Hash.String(), "ledger": before.Ledger.Commit.Hash.String()}
				if at[bombed] != stood[bombed] || at[other] != moved {
					t.Errorf("heads %v, want %s at %s and %s at %s", at, bombed, stood[bombed], other, moved)
				}
				if len(h.Alarms) != 1 || !strings.Contains(h.Alarms[0], bombed+" is at "+bomb[:7]) || !strings.Contains(h.Alarms[0], "git push --force-with-lease origin <commit>:"+bombed) {
					t.Errorf("alarms %q", h.Alarms)
				}
			}
			fresh := open(t, dial(t, url, gitrepo.Auth{}), options(func(o *gitrepo.Options) { o.Dir = t.TempDir() }))
			if h := fetch(t, fresh); h.Ledger.Commit.Hash != before.Ledger.Commit.Hash && bombed == "ledger" || h.Inputs.Commit.Hash != before.Inputs.Commit.Hash && bombed == "main" || len(h.Alarms) != 1 {
				t.Errorf("a start with nothing but the remote's notes: heads %v and %v, alarms %q", h.Inputs.Commit.Hash, h.Ledger.Commit.Hash, h.Alarms)
			}
			bare := filepath.Join(t.TempDir(), "without-notes.git")
			git(t, dir, "clone", "-q", "--bare", dir, bare)
			if _, err := open(t, dial(t, "file://"+bare, gitrepo.Auth{}), options(func(o *gitrepo.Options) { o.Dir = t.TempDir() })).Fetch(t.Context()); !errors.Is(err, gitobj.ErrPackTooLarge) {
				t.Errorf("without any memory of the branch: got %v, want a refusal", err)
			}
			if bombed == "main" {
				commit(t, r, request(fetch(t, r), contract(bombed+way, "b", "1")))
			}
			git(t, dir, "update-ref", "refs/heads/"+bombed, bomb+"^")
			last := gitPut(t, dir, bombed, "intents/vision/later-"+way+".yaml", "kind: ResourceIntent\n")
			h := fetch(t, r)
			if at := map[string]string{"main": h.Inputs.Commit.Hash.String(), "ledger": h.Ledger.Commit.Hash.String()}; at[bombed] != last || len(h.Alarms) > 0 {
				t.Errorf("after it was set back: heads %v, alarms %q, want %s at %s", at, h.Alarms, bombed, last)
			}
		})
	}
}

// A server that says of every push that it took a ref, and refused one that nobody pushed, is
// asked to take it back once.
func TestServerThatTakesEveryPushInPart(t *testing.T) {
	pushes := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-receive-pack-advertisement")
			_, _ = io.WriteString(w, pkt("# service=git-receive-pack\n")+"0000"+pkt(strings.Repeat("1", 40)+" refs/heads/ledger\x00report-status delete-refs atomic\n")+"0000")
			return
		}
		if pushes++; pushes > 10 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
		_, _ = io.WriteString(w, pkt("unpack ok\n")+pkt("ok refs/heads/ledger\n")+pkt("ng refs/heads/other no\n")+"0000")
	}))
	defer srv.Close()
	budgeted := 0
	remote := dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Another: func(context.Context) error { budgeted++; return nil }})
	err := remote.Push(t.Context(), []gitrepo.Command{{Ref: "refs/heads/ledger", New: tree.Hash{1}}}, []byte("PACK"))
	if pushes != 2 || budgeted != 1 || err == nil || !strings.Contains(err.Error(), "was not taken back") {
		t.Errorf("%d pushes, %d of them asked for, and %v", pushes, budgeted, err)
	}
}
