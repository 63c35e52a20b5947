package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Role is what the holder of a certificate may do.
type Role string

// The roles. A certificate that names none is an agent's.
const (
	// Agent reports and asks for its own cluster alone.
	Agent Role = "agent"
	// Operator reads everything, also what is shown to one cluster alone, and
	// changes nothing.
	Operator Role = "operator"
	// Reader reads what everybody may see: the market.
	Reader Role = "reader"
	// Server is the daemon's own.
	Server Role = "server"
)

// rolePrefix begins the SAN URI that carries a role.
const rolePrefix = "urn:fleetbroker:role:"

// Identity is who a certificate speaks for.
type Identity struct {
	// Name is the common name: of an agent, its cluster's id.
	Name string
	// Role is Agent unless the certificate says otherwise.
	Role Role
}

// clusterID is a DNS-1123 label, as every name of a Cluster is.
var clusterID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ErrName is returned for a common name that cannot be a cluster's id.
var ErrName = errors.New("not a name: use lower-case letters, digits and '-', at most 63")

// IdentityOf reads who a verified certificate speaks for. An unknown or second
// role is an error, never a default: a newer CA may have meant less than agent.
func IdentityOf(cert *x509.Certificate) (Identity, error) {
	id := Identity{Name: cert.Subject.CommonName, Role: Agent}
	if !clusterID.MatchString(id.Name) {
		return Identity{}, fmt.Errorf("read the certificate of %q: common name is %w", id.Name, ErrName)
	}
	var err error
	id.Role, err = roleOf(cert)
	if err != nil {
		return Identity{}, fmt.Errorf("read the certificate of %s: %w", id.Name, err)
	}
	return id, nil
}

func roleOf(cert *x509.Certificate) (Role, error) {
	found, seen := Agent, false
	for _, uri := range cert.URIs {
		role, ok := strings.CutPrefix(uri.String(), rolePrefix)
		if !ok {
			continue
		}
		if seen {
			return "", errors.New("it names more than one role")
		}
		found, seen = Role(role), true
	}
	if !found.valid() {
		return "", fmt.Errorf("unknown role %q", found)
	}
	return found, nil
}

// VerifyServer demands that the peer of a verified handshake holds a certificate
// of the daemon, and not that of any cluster that its authority also knows. It
// is the VerifyConnection of who dials the agents' port.
func VerifyServer(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the broker shows no certificate")
	}
	cert := state.PeerCertificates[0]
	role, err := roleOf(cert)
	if err == nil && role != Server {
		err = fmt.Errorf("it has the role %s, not %s", role, Server)
	}
	if err != nil {
		return fmt.Errorf("the broker's certificate (%s) is not a daemon's: %w; issue one with `fleetbroker pki issue --role server`, or elsewhere with the SAN URI %s%s", cert.Subject.CommonName, err, rolePrefix, Server)
	}
	return nil
}

func (r Role) valid() bool { return r == Agent || r == Operator || r == Reader || r == Server }

// uri is the SAN URI of a role; an agent's certificate needs none.
func (r Role) uri() []*url.URL {
	if r == Agent {
		return nil
	}
	return []*url.URL{{Scheme: "urn", Opaque: strings.TrimPrefix(rolePrefix, "urn:") + string(r)}}
}
