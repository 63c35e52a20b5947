package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"testing"
)

// FuzzCertificate: whatever a certificate holds, it speaks for nobody, or for a
// name that a cluster may have in one known role; only a server's serves.
func FuzzCertificate(f *testing.F) {
	a, err := InitCA(f.TempDir()+"/ca", "acme", now)
	if err != nil {
		f.Fatal(err)
	}
	for _, q := range []Request{{Name: "paris"}, {Name: "ops", Role: Operator}, {Name: "broker", Role: Server, Hosts: []string{"127.0.0.1"}}} {
		b, err := a.Issue(q)
		if err != nil {
			f.Fatal(err)
		}
		block, _ := pem.Decode(b.Cert)
		f.Add(block.Bytes, "paris", rolePrefix+"operator")
	}
	f.Add(a.CA(), "../x", rolePrefix+"king")
	f.Add([]byte{}, "PARIS", rolePrefix)
	f.Add([]byte{0x30, 0x80}, "p\u0430ris", "urn:x")
	f.Fuzz(func(t *testing.T, der []byte, name, uri string) {
		cert, err := x509.ParseCertificate(der)
		if err != nil { // as if its parts had come through a parser
			cert = &x509.Certificate{}
			cert.Subject.CommonName = name
			if u, err := url.Parse(uri); err == nil {
				cert.URIs = []*url.URL{u, u}[:1+len(der)%2]
			}
		}
		id, err := IdentityOf(cert)
		if err != nil {
			if id != (Identity{}) {
				t.Fatalf("%+v beside %v", id, err)
			}
		} else if !id.Role.valid() || !clusterID.MatchString(id.Name) || id.Name != cert.Subject.CommonName {
			t.Fatalf("%q with %v speaks for %+v", cert.Subject.CommonName, cert.URIs, id)
		}
		if VerifyServer(tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}) == nil {
			if role, err := roleOf(cert); err != nil || role != Server {
				t.Fatalf("%v serves as %q, %v", cert.URIs, role, err)
			}
		}
		if c, err := parseCert(encode("CERTIFICATE", der)); err == nil && !c.Equal(cert) {
			t.Fatal("the certificate in PEM is another")
		}
	})
}
