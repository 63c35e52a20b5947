package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func newCA(t *testing.T) (*Authority, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	a, err := InitCA(dir, "acme", now)
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func issue(t *testing.T, a *Authority, r Request) (*Bundle, *x509.Certificate) {
	t.Helper()
	b, err := a.Issue(r)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := parseCert(b.Cert)
	if err != nil {
		t.Fatal(err)
	}
	return b, cert
}

func TestIssue(t *testing.T) {
	a, _ := newCA(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.CA())
	cases := map[string]struct {
		request Request
		want    Identity
		usage   x509.ExtKeyUsage
		host    string
		bad     bool
	}{
		"agent":                {request: Request{Name: "paris"}, want: Identity{"paris", Agent}, usage: x509.ExtKeyUsageClientAuth},
		"operator":             {request: Request{Name: "ada", Role: Operator}, want: Identity{"ada", Operator}, usage: x509.ExtKeyUsageClientAuth},
		"server by name":       {request: Request{Name: "broker", Role: Server, Hosts: []string{"broker.example.org", "127.0.0.1"}}, want: Identity{"broker", Server}, usage: x509.ExtKeyUsageServerAuth, host: "broker.example.org"},
		"server by address":    {request: Request{Name: "broker", Role: Server, Hosts: []string{"127.0.0.1"}}, want: Identity{"broker", Server}, usage: x509.ExtKeyUsageServerAuth, host: "127.0.0.1"},
		"server without hosts": {request: Request{Name: "broker", Role: Server}, bad: true},
		"unknown role":         {request: Request{Name: "paris", Role: "root"}, bad: true},
		"upper case":           {request: Request{Name: "Paris"}, bad: true},
		"path":                 {request: Request{Name: "../paris"}, bad: true},
		"too long":             {request: Request{Name: strings.Repeat("a", 64)}, bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.bad {
				if _, err := a.Issue(tc.request); err == nil {
					t.Fatal("issued")
				}
				return
			}
			_, cert := issue(t, a, tc.request)
			options := x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{tc.usage}, DNSName: tc.host, CurrentTime: now().Add(364 * 24 * time.Hour)}
			if _, err := cert.Verify(options); err != nil {
				t.Error(err)
			}
			options.CurrentTime = now().Add(366 * 24 * time.Hour)
			if _, err := cert.Verify(options); err == nil {
				t.Error("valid for more than a year")
			}
			if got, err := IdentityOf(cert); err != nil || got != tc.want {
				t.Errorf("identity %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestClientCertificateDoesNotServe(t *testing.T) {
	a, _ := newCA(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.CA())
	_, cert := issue(t, a, Request{Name: "paris"})
	if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, CurrentTime: now()}); err == nil {
		t.Error("an agent's certificate passes for a server's")
	}
}

func TestIdentityOf(t *testing.T) {
	uri := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	cases := map[string]struct {
		uris []*url.URL
		want Role
		bad  bool
	}{
		"no role":       {want: Agent},
		"foreign URI":   {uris: []*url.URL{uri("spiffe://acme/paris")}, want: Agent},
		"operator":      {uris: []*url.URL{uri("urn:fleetbroker:role:operator")}, want: Operator},
		"unknown role":  {uris: []*url.URL{uri("urn:fleetbroker:role:root")}, bad: true},
		"role of blank": {uris: []*url.URL{uri("urn:fleetbroker:role:")}, bad: true},
		"two roles":     {uris: []*url.URL{uri("urn:fleetbroker:role:agent"), uri("urn:fleetbroker:role:operator")}, bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cert := &x509.Certificate{URIs: tc.uris}
			cert.Subject.CommonName = "paris"
			got, err := IdentityOf(cert)
			if (err != nil) != tc.bad || got.Role != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	cert := &x509.Certificate{}
	if _, err := IdentityOf(cert); !errors.Is(err, ErrName) {
		t.Errorf("empty common name: %v", err)
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	a, dir := newCA(t)
	before, err := os.ReadFile(filepath.Join(dir, caKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := InitCA(dir, "acme", now); err == nil {
		t.Error("a second authority in the same directory")
	}
	after, err := os.ReadFile(filepath.Join(dir, caKeyFile))
	if err != nil || string(before) != string(after) {
		t.Errorf("the key changed (%v)", err)
	}
	b, _ := issue(t, a, Request{Name: "paris"})
	out := filepath.Join(t.TempDir(), "paris")
	if err := b.WriteDir(out); err != nil {
		t.Fatal(err)
	}
	if err := b.WriteDir(out); err == nil {
		t.Error("a bundle overwrote another")
	}
}

func TestKeysAreTheOwnersAlone(t *testing.T) {
	a, dir := newCA(t)
	b, _ := issue(t, a, Request{Name: "paris"})
	out := filepath.Join(t.TempDir(), "paris")
	if err := b.WriteDir(out); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, caKeyFile), filepath.Join(out, KeyFile)} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}

func TestRevoke(t *testing.T) {
	a, dir := newCA(t)
	_, first := issue(t, a, Request{Name: "paris"})
	_, second := issue(t, a, Request{Name: "paris"})
	b, other := issue(t, a, Request{Name: "lyon"})
	if _, err := a.Revoke("nobody"); err == nil {
		t.Error("revoked what was never issued")
	}
	if n, err := a.Revoke("paris"); n != 2 || err != nil {
		t.Fatalf("revoked %d, %v; want 2", n, err)
	}
	if n, err := a.Revoke("paris"); n != 0 || err != nil {
		t.Errorf("again: revoked %d, %v; want 0", n, err)
	}
	reopened, err := OpenCA(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	revoked := readCRL(t, reopened)
	if !revoked.Has(first) || !revoked.Has(second) || revoked.Has(other) || revoked.Len() != 2 {
		t.Errorf("revocation list holds %v", revoked)
	}
	if n, err := reopened.Revoke(strings.ToUpper(b.Serial)); n != 1 || err != nil {
		t.Errorf("by serial: revoked %d, %v; want 1", n, err)
	}
	if revoked = readCRL(t, reopened); !revoked.Has(first) || !revoked.Has(other) {
		t.Error("the list forgot somebody")
	}
}

func readCRL(t *testing.T, a *Authority) *Revoked {
	t.Helper()
	data, err := a.CRL()
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := ParseRevoked(data, a.CA(), now())
	if err != nil {
		t.Fatal(err)
	}
	return revoked
}

func TestForeignRevocationListIsRefused(t *testing.T) {
	a, _ := newCA(t)
	stranger, _ := newCA(t)
	data, err := stranger.CRL()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseRevoked(data, a.CA(), now()); err == nil {
		t.Error("a stranger's list was believed")
	}
	if _, err := ParseRevoked([]byte("nonsense"), a.CA(), now()); err == nil {
		t.Error("nonsense was believed")
	}
	if _, err := ParseRevoked(data, nil, now()); err == nil {
		t.Error("a list was believed without any authority")
	}
	if r, err := ParseRevoked(nil, a.CA(), now()); err != nil || r.Len() != 0 {
		t.Errorf("no list: %v, %v", r, err)
	}
	var none *Revoked
	if none.Has(&x509.Certificate{}) || none.Len() != 0 {
		t.Error("nil knows a revoked certificate")
	}
}

func TestFilesFollowChangesAndKeepTheLastGoodState(t *testing.T) {
	a, _ := newCA(t)
	dir := t.TempDir()
	if _, err := OpenFiles(dir); err == nil {
		t.Fatal("opened an empty directory")
	}
	b, _ := issue(t, a, Request{Name: "paris"})
	if err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	files, err := OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	first, err := files.Load()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := files.Load(); again != first || err != nil {
		t.Errorf("unchanged files gave another state (%v)", err)
	}
	renewed, _ := issue(t, a, Request{Name: "paris"})
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(CertFile, renewed.Cert) // the key is still the old one
	if m, err := files.Load(); m != first || err == nil {
		t.Errorf("half a renewal was used (%v)", err)
	}
	write(KeyFile, renewed.Key)
	if m, err := files.Load(); m == first || err != nil {
		t.Errorf("the renewal was not used (%v)", err)
	}
}

// Files that do not change are read once; one that is replaced is read again at
// once, also when size and time stay as they were.
func TestFiles_AreReadOnceAndAgainOnChange(t *testing.T) {
	a, _ := newCA(t)
	dir := filepath.Join(t.TempDir(), "certs")
	b, err := a.Issue(Request{Name: "paris"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range names {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	first, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	before := f.reads
	for range 100 {
		if m, err := f.Load(); err != nil || m != first {
			t.Fatalf("another state, %v", err)
		}
	}
	if f.reads != before {
		t.Errorf("read %d times, want none", f.reads-before)
	}
	next, err := a.Issue(Request{Name: "milan"})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{CertFile: next.Cert, KeyFile: next.Key} {
		tmp := filepath.Join(dir, name+".new")
		if err := os.WriteFile(tmp, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(tmp, old, old); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := f.Load(); err != nil || m == first {
		t.Errorf("the new certificate is not used, %v", err)
	}
}

func TestVerifyServer_DemandsTheRole(t *testing.T) {
	a, _ := newCA(t)
	for role, want := range map[Role]string{Server: "", Agent: "has the role agent", Reader: "has the role reader"} {
		b, err := a.Issue(Request{Name: "broker", Role: role, Hosts: []string{"broker.example.org"}})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(b.Cert, b.Key)
		if err != nil {
			t.Fatal(err)
		}
		err = VerifyServer(tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "pki issue --role server")) {
			t.Errorf("%s: %v", role, err)
		}
	}
}
