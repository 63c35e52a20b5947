package pki

import (
	"crypto/x509"
	"net/url"
	"strings"
	"testing"
)

func TestSameFleet(t *testing.T) {
	a, _ := newCA(t)
	issue := func(fleet string) *x509.Certificate {
		t.Helper()
		b, err := a.Issue(Request{Name: "broker", Role: Server, Hosts: []string{"broker.example.org"}, Fleet: fleet})
		if err != nil {
			t.Fatal(err)
		}
		cert, err := parseCert(b.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := IdentityOf(cert); err != nil || id.Role != Server {
			t.Fatalf("of fleet %q: %+v, %v", fleet, id, err)
		}
		if got, err := FleetOf(cert); err != nil || got != fleet {
			t.Fatalf("it is of fleet %q, %v; want %q", got, err, fleet)
		}
		return cert
	}
	const ours, others = "a123456789", "b123456789"
	twice, odd := *issue(ours), *issue("")
	second, err := url.Parse(fleetPrefix + others)
	if err != nil {
		t.Fatal(err)
	}
	twice.URIs = append(twice.URIs, second)
	odd.URIs = append(odd.URIs, &url.URL{Scheme: "urn", Opaque: "fleetbroker:fleet:*"})
	for name, test := range map[string]struct {
		own, other *x509.Certificate
		problem    string
	}{
		"the same":                   {own: issue(ours), other: issue(ours)},
		"another":                    {own: issue(ours), other: issue(others), problem: "is of fleet b123456789"},
		"one that names none":        {own: issue(ours), other: issue(""), problem: "--fleet-id a123456789"},
		"none, as before an upgrade": {own: issue(""), other: issue("")},
		"none, and another has one":  {own: issue(""), other: issue(others)},
		"two":                        {own: issue(ours), other: &twice, problem: "more than one fleet"},
		"no id":                      {own: issue(""), other: &odd, problem: "not the id of a fleet"},
		"an own one with two":        {own: &twice, other: issue(ours), problem: "this daemon's certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			err := SameFleet(test.own, test.other)
			if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, want %q", err, test.problem)
			}
		})
	}
	for _, request := range []Request{
		{Name: "broker", Role: Server, Hosts: []string{"x.example.org"}, Fleet: "Acme"},
		{Name: "paris", Fleet: ours},
	} {
		if _, err := a.Issue(request); err == nil {
			t.Errorf("issued %+v", request)
		}
	}
}
