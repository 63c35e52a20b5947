package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// A list of revoked certificates that was to be renewed stays in force, and the log says so.
func TestDaemon_ListOfRevokedIsOld(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.InitCA(filepath.Join(dir, "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []pki.Request{{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}}, {Name: "paris"}} {
		bundle, err := ca.Issue(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := bundle.WriteDir(filepath.Join(dir, r.Name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ca.Revoke("paris"); err != nil {
		t.Fatal(err)
	}
	crl, err := ca.CRL()
	if err != nil {
		t.Fatal(err)
	}
	certs, err := pki.OpenFiles(filepath.Join(dir, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	var lines logtest.Lines
	now := time.Now()
	d := &daemon{log: lines.Logger(), certs: certs, now: func() time.Time { return now }}
	revoke := func() {
		t.Helper()
		if err := d.revoke(crl); err != nil || d.revocations.Len() != 1 {
			t.Fatalf("%d certificates are revoked, want 1: %v", d.revocations.Len(), err)
		}
	}
	if revoke(); strings.Contains(lines.String(), "is old") {
		t.Errorf("before its time:\n%s", lines.String())
	}
	now = now.AddDate(50, 0, 0)
	revoke()
	lines.Wants(t, "FB1054")
}
