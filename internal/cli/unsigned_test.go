package cli

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// A fleet that `fleetbroker init` has just made is signed by default: a daemon
// that knows no trust root refuses to start, and each remedy is one line. One with
// --unsigned runs, and says so in its log, at /readyz, in its metrics, and in what
// people look at.
func TestRun_IsSignedByDefault(t *testing.T) {
	dir := t.TempDir()
	bare := laidOut(t, dir)
	code, out := command(t, "run", "--repo", "file://"+bare, "--state-dir", filepath.Join(dir, "a"), "--agents-address", "", "--operators-address", freeAddress(t))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code == 0 || len(lines) != 3 || !strings.Contains(lines[0], "nothing says whose signatures count") ||
		!strings.HasPrefix(lines[1], "hint: --trust-root FILE ") || !strings.HasPrefix(lines[2], "hint: --unsigned ") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}

	d := startRun(t, "--state-dir", filepath.Join(dir, "b"), "--repo", "file://"+bare, "--poll-interval", "1s")
	d.await("/readyz", http.StatusOK)
	get := func(path string) string {
		t.Helper()
		answer, err := http.Get("http://" + d.operators + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	market := "http://" + d.operators + "/market"
	_, status := command(t, "status", "--market", market, "-C", filepath.Join(dir, "fleet"))
	_, plan := command(t, "plan", "--market", market, filepath.Join(dir, "fleet"))
	for where, is := range map[string][2]string{
		"the log":            {d.logged(), "this fleet is unsigned: everyone who may push"},
		"/readyz":            {strings.ReplaceAll(get("/readyz"), ": ", ":"), `"unsigned":true`},
		"the metrics":        {get("/metrics"), `fleetbroker_unsigned{root=""} 1`},
		"fleetbroker status": {status, "UNSIGNED: whoever may push gives rights and writes the ledger"},
		"fleetbroker plan":   {plan, "daemon UNSIGNED"},
	} {
		if !strings.Contains(is[0], is[1]) {
			t.Errorf("%s does not show %q: %.600s", where, is[1], is[0])
		}
	}
	d.end()
}
