package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// crl signs a list as no command of ours would.
func crl(t *testing.T, a *Authority, change func(*x509.RevocationList)) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(7), ThisUpdate: now(), NextUpdate: now().Add(time.Hour)}
	change(list)
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return encode("X509 CRL", der)
}

func TestRevocationListsAreBounded(t *testing.T) {
	a, _ := newCA(t)
	good := crl(t, a, func(*x509.RevocationList) {})
	cases := map[string]struct {
		data []byte
		want string
	}{
		"too large": {bytes.Repeat([]byte("x"), MaxRevokedBytes+1), "at most"},
		"from the future": {crl(t, a, func(l *x509.RevocationList) {
			l.ThisUpdate, l.NextUpdate = now().Add(time.Hour), now().Add(2*time.Hour)
		}), "is in the future"},
		"twice":              {append(append([]byte(nil), good...), good...), "two lists"},
		"with a tail":        {append(append([]byte(nil), good...), "tail"...), "no PEM"},
		"a certificate":      {a.CA(), "no PEM revocation list"},
		"cut off":            {good[:len(good)/2], "no PEM revocation list"},
		"changed":            {changed(good), "read revocation list"},
		"without end":        {many(t, a), "read revocation list"},
		"only its armour":    {encode("X509 CRL", nil), "read revocation list"},
		"nonsense in armour": {encode("X509 CRL", []byte("nonsense")), "read revocation list"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if r, err := ParseRevoked(tc.data, a.CA(), now()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, %v; want %q", r, err, tc.want)
			}
		})
	}
	if _, err := ParseRevoked(good, a.CA(), now()); err != nil {
		t.Error(err)
	}
}

// changed turns one character of the signature.
func changed(data []byte) []byte {
	lines := strings.Split(string(data), "\n")
	last := []byte(lines[len(lines)-3])
	if last[4]++; last[4] > 'y' {
		last[4] = 'a'
	}
	lines[len(lines)-3] = string(last)
	return []byte(strings.Join(lines, "\n"))
}

func many(t *testing.T, a *Authority) []byte {
	return crl(t, a, func(l *x509.RevocationList) {
		for i := range maxRevoked + 1 {
			l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(int64(i + 1)), RevocationTime: now()})
		}
	})
}

func TestAnOlderListDoesNotFollow(t *testing.T) {
	a, _ := newCA(t)
	b, _ := newCA(t)
	both := append(append([]byte(nil), a.CA()...), b.CA()...)
	parse := func(data []byte) *Revoked {
		t.Helper()
		r, err := ParseRevoked(data, both, now())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	number := func(a *Authority, n int64) []byte {
		return crl(t, a, func(l *x509.RevocationList) { l.Number = big.NewInt(n) })
	}
	former := parse(append(number(a, 7), number(b, 3)...))
	cases := map[string]struct {
		data []byte
		want string
	}{
		"the same":         {append(number(a, 7), number(b, 3)...), ""},
		"newer":            {append(number(a, 8), number(b, 3)...), ""},
		"in another order": {append(number(b, 4), number(a, 7)...), ""},
		"older":            {append(number(a, 6), number(b, 4)...), "number 7 was in force"},
		"one is gone":      {number(a, 8), "is gone"},
		"all are gone":     {nil, "is gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := parse(tc.data).Follows(former)
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v; want %q", err, tc.want)
			}
		})
	}
	if err := parse(nil).Follows(nil); err != nil {
		t.Error(err)
	}
}

func TestAnOverdueListIsTold(t *testing.T) {
	a, _ := newCA(t)
	r, err := ParseRevoked(crl(t, a, func(*x509.RevocationList) {}), a.CA(), now().Add(48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if why := r.Overdue(now()); why != "" {
		t.Errorf("overdue before its time: %s", why)
	}
	if why := r.Overdue(now().Add(48 * time.Hour)); !strings.Contains(why, "was to be renewed by 2026-11-20T13:00:00Z") {
		t.Errorf("got %q", why)
	}
}

func TestTheListIsWrittenWhereTheFleetRepoHasIt(t *testing.T) {
	a, _ := newCA(t)
	_, cert := issue(t, a, Request{Name: "paris"})
	if _, err := a.Revoke("paris"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pki", RevokedFile)
	for range 2 {
		if err := a.WriteCRL(path); err != nil {
			t.Fatal(err)
		}
	}
	if revoked := readCRL(t, a); !revoked.Has(cert) {
		t.Error("the certificate is not in the list")
	}
}

// FuzzRevoked: nothing that is not signed by the authority is believed.
func FuzzRevoked(f *testing.F) {
	dir := f.TempDir()
	a, err := InitCA(filepath.Join(dir, "ca"), "acme", now)
	if err != nil {
		f.Fatal(err)
	}
	good, err := a.CRL()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(a.CA())
	f.Add([]byte("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRevoked(data, a.CA(), now())
		if err == nil && r.Len() > 0 {
			t.Fatalf("%d certificates are revoked by a list that the authority never made:\n%s", r.Len(), data)
		}
	})
}
