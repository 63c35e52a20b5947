//go:build e2e

package hostile

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// bomb is a commit on another, with a file of 257 MiB that a delta of some bytes
// makes.
func (d *daemon) bomb(on string) string {
	d.t.Helper()
	pack, small, large := memremote.DeltaBomb(257)
	file := filepath.Join(d.repo, "objects", "pack", "pack-bomb.pack")
	if _, err := os.Stat(file); err != nil {
		if err := os.WriteFile(file, pack, 0o600); err != nil {
			d.t.Fatal(err)
		}
		git(d.t, d.repo, "index-pack", file)
	}
	tree := store(d.t, d.repo, append(rootOf(d.t, d.repo, on), Entry{Mode: "100644", Name: "zx", Blob: "=" + small}, Entry{Mode: "100644", Name: "zz", Blob: "=" + large}))
	return git(d.t, d.repo, "commit-tree", tree, "-p", on, "-m", "bomb")
}

// ready is what /readyz answers.
func (d *daemon) ready() (int, string) {
	d.t.Helper()
	res, err := http.Get("http://" + d.operators + "/readyz")
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// until waits for what the daemon does by itself.
func (d *daemon) until(what string, is func() (bool, string)) {
	d.t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(wall); ; <-ticker.C {
		ok, last := is()
		if ok {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("%s: not so after %s; last: %s", what, wall, last)
		}
	}
}

// TestDaemon_BombsOnItsRefsStopNothing: packs that make more than is taken in, on
// the ledger and on the refs of the fleet. The ledger is set back, other refs are
// ignored and put right, and orderly requests are decided. Where the server does not
// let the ledger be set back, /readyz gives the reason and the command that ends it.
func TestDaemon_BombsOnItsRefsStopNothing(t *testing.T) {
	d := startDaemon(t)
	d.decides("the start")
	for _, ref := range []string{"refs/fleetbroker/accepted/inputs", "refs/fleetbroker/accepted/ledger", "refs/fleetbroker/offered"} {
		for what, h := range map[string]string{"a bomb": d.bomb("main"), "a blob": git(t, d.repo, "rev-parse", "main:fleet.yaml")} {
			git(t, d.repo, "update-ref", ref, h)
			d.push()
			// Before anybody asks: a commit for a client that waits writes the note anew.
			d.until("the log names "+ref, func() (bool, string) {
				log, err := os.ReadFile(d.LogFile())
				return err == nil && strings.Contains(string(log), ref+" names "+h[:7]), ""
			})
			d.decides(what + " on " + ref)
		}
	}
	stood := git(t, d.repo, "rev-parse", "ledger")
	bomb := d.bomb("ledger")
	git(t, d.repo, "update-ref", "refs/heads/ledger", bomb)
	d.push()
	d.decides("a bomb on the ledger")
	if has := strings.Fields(git(t, d.repo, "rev-list", "ledger")); slices.Contains(has, bomb) || !slices.Contains(has, stood) {
		t.Errorf("the ledger contains the bomb, or not what stood before it")
	}

	git(t, d.repo, "config", "receive.denyNonFastForwards", "true")
	stood, bomb = git(t, d.repo, "rev-parse", "ledger"), d.bomb("ledger")
	git(t, d.repo, "update-ref", "refs/heads/ledger", bomb)
	d.push()
	command := "git push --force-with-lease=ledger:" + bomb + " origin " + stood + ":ledger"
	d.until("/readyz gives the reason and the command", func() (bool, string) {
		status, body := d.ready()
		return status != http.StatusOK && strings.Contains(body, "non-fast-forward") && strings.Contains(body, command), body
	})
	git(t, d.repo, "config", "receive.denyNonFastForwards", "false")
	git(t, d.repo, "update-ref", "refs/heads/ledger", stood)
	d.push()
	d.until("it is ready once people have set the ledger back", func() (bool, string) { // its rounds rest the longer the more failed
		status, body := d.ready()
		return status == http.StatusOK, body
	})
	d.decides("what people set back")
}
