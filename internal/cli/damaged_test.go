package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// laidOut is a bare repository with the fleet that `fleetbroker init` makes.
func laidOut(t *testing.T, dir string) (bare string) {
	t.Helper()
	work, bare := filepath.Join(dir, "fleet"), filepath.Join(dir, "fleet.git")
	if code, out := command(t, "init", work); code != 0 {
		t.Fatal(out)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "A fleet"}, {"clone", "-q", "--bare", ".", bare}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return bare
}

// damage overwrites every file of a state directory whose path contains the
// part, and returns how many there were.
func damage(t *testing.T, state, part string, content []byte) (files int) {
	t.Helper()
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(path, part) {
			return err
		}
		files++
		if err := os.Chmod(path, 0o600); err != nil { // packs are read-only
			return err
		}
		return os.WriteFile(path, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// `run` starts whatever its state directory holds: a damaged notify.json or
// accepted.json is set aside and named, a damaged cache is made again, and the
// daemon becomes ready and goes on with the same ledger.
func TestRun_StartsWithDamagedState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bare, state := laidOut(t, dir), filepath.Join(dir, "state")
	ledger := func() string {
		out, err := exec.Command("git", "-C", bare, "rev-list", "--count", "ledger").Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	start := func() *running {
		return startRun(t, "--notify=true", "--state-dir", state, "--repo", "file://"+bare, "--poll-interval", "1s")
	}
	settled := func(d *running) {
		t.Helper()
		d.await("/readyz", http.StatusOK)
		deadline := time.After(time.Minute)
		for _, err := os.Stat(filepath.Join(state, "notify.json")); err != nil || ledger() == ""; _, err = os.Stat(filepath.Join(state, "notify.json")) {
			select {
			case <-deadline:
				t.Fatalf("no commit and no notify.json: %v\n%s", err, d.logged())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	// Until a start has nothing left to write: the first may be ended between two commits.
	for last, n := "", 0; n == 0 || ledger() != last; n++ {
		if n == 10 {
			t.Fatalf("each start writes: the ledger has %s commits", ledger())
		}
		last = ledger()
		d := start()
		settled(d)
		d.end()
		unlock(t, bare)
	}
	for _, content := range [][]byte{nil, []byte("{"), bytes.Repeat([]byte{0}, 4096)} {
		for _, what := range []string{"notify.json", "accepted.json", "cache-", ""} {
			if n := damage(t, state, what, content); n == 0 {
				t.Fatalf("no file of the state directory is called %q", what)
			}
			before := ledger()
			d := start()
			settled(d)
			if strings.HasSuffix(what, ".json") {
				d.setAside(filepath.Join(state, what))
			}
			if what == "accepted.json" && strings.Contains(d.logged(), "another account") {
				t.Errorf("%s holding %.5q: another account is named: %s", what, content, d.logged())
			}
			if strings.HasPrefix(what, "cache-") {
				d.setAside(filepath.Join(state, "cache-*"))
			}
			d.end()
			unlock(t, bare)
			if got := ledger(); got != before {
				t.Errorf("%s holding %.5q: the ledger has %s commits, and had %s", what, content, got, before)
			}
			removeAside(t, state)
		}
	}
}

// TestRun_SaysThatItsStateDirectoryCannotBeWritten: a read-only or full directory is
// on /readyz with its path and reason and in a metric, for as long as it lasts; it
// is logged once, and decisions go on.
func TestRun_SaysThatItsStateDirectoryCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bare, state := laidOut(t, dir), filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatalf("mount a tmpfs (these tests run as root): %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", state, "", unix.MS_REMOUNT|flags, "size=2m"); err != nil {
			t.Fatal(err)
		}
	}
	fill := filepath.Join(state, "full")
	for _, c := range []struct {
		name         string
		break_, undo func()
		want         string
	}{
		{"read-only", func() { remount(unix.MS_RDONLY) }, func() { remount(0) }, "read-only file system"},
		{"full", func() {
			if err := os.WriteFile(fill, make([]byte, 4<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("filling the directory gives %v", err)
			}
		}, func() { _ = os.Remove(fill) }, "no space left on device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.break_()
			d := startRun(t, "--notify=true", "--state-dir", state, "--repo", "file://"+bare, "--poll-interval", "1s")
			reason := d.awaitReason("/readyz", c.want)
			if !strings.Contains(reason, state) {
				t.Errorf("not ready: %q, want the directory's path and %q", reason, c.want)
			}
			if text := d.page("/metrics"); strings.Contains(text, "fleetbroker_state_unwritten 0\n") || !strings.Contains(text, "fleetbroker_state_unwritten ") {
				t.Error("the metric shows nothing")
			}
			c.undo()
			d.await("/readyz", http.StatusOK)
			if !strings.Contains(d.page("/metrics"), "fleetbroker_state_unwritten 0\n") {
				t.Error("the metric does not recover")
			}
			if n := strings.Count(d.logged(), `path=`+state+` error=`); n != 1 || !strings.Contains(d.logged(), "is written again\" path="+state+" code=") {
				t.Errorf("logged %d times, want once, and its end:\n%s", n, d.logged())
			}
			d.end()
			unlock(t, bare)
		})
	}
}

// awaitReason waits until a probe fails with a reason that has a text in it.
func (r *running) awaitReason(path, want string) string {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		_, reason := r.probe(path)
		if strings.Contains(reason, want) {
			return reason
		}
		select {
		case <-deadline:
			r.t.Fatalf("%s says %q, want %q:\n%s", path, reason, want, r.logged())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// page is what a page of the operators' port shows.
func (r *running) page(path string) string {
	r.t.Helper()
	answer, err := http.Get("http://" + r.operators + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// setAside waits until a state file is set aside under a name that the log gives.
func (r *running) setAside(file string) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		aside, err := filepath.Glob(file + ".damaged-*")
		if err != nil {
			r.t.Fatal(err)
		}
		if len(aside) == 1 && strings.Contains(r.logged(), aside[0]) {
			return
		}
		select {
		case <-deadline:
			r.t.Fatalf("%s is set aside as %v, want one name that the log gives:\n%s", file, aside, r.logged())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// removeAside removes what was set aside, so that the next damage is told apart.
func removeAside(t *testing.T, state string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(state, "*.damaged-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
}
