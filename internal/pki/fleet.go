package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// fleetPrefix begins the SAN URI that carries a fleet's id.
const fleetPrefix = "urn:fleetbroker:fleet:"

// fleetID is the form of a fleet's id (package trust).
var fleetID = regexp.MustCompile(`^[0-9a-v]{10}$`)

// FleetOf is the id of the fleet whose daemon holds a certificate, "" where it names none:
// those that were issued before fleets were named. More than one, or no id, is an error.
func FleetOf(cert *x509.Certificate) (string, error) {
	found := ""
	for _, uri := range cert.URIs {
		id, ok := strings.CutPrefix(uri.String(), fleetPrefix)
		switch {
		case !ok:
			continue
		case found != "":
			return "", errors.New("it names more than one fleet")
		case !fleetID.MatchString(id):
			return "", fmt.Errorf("%.40q is not the id of a fleet", id)
		}
		found = id
	}
	return found, nil
}

// SameFleet is an error unless the certificate of another daemon is of the fleet that this
// daemon's own one names. An own one that names none takes every fleet.
func SameFleet(own, other *x509.Certificate) error {
	mine, err := FleetOf(own)
	if err != nil {
		return fmt.Errorf("read this daemon's certificate (%s): %w", own.Subject.CommonName, err)
	}
	theirs, err := FleetOf(other)
	switch {
	case err != nil:
		return fmt.Errorf("read the certificate of %s: %w", other.Subject.CommonName, err)
	case mine == "" || mine == theirs:
		return nil
	case theirs == "":
		return fmt.Errorf("the certificate of %s names no fleet, and this daemon's names %s; issue it with `fleetbroker pki issue --role server --fleet-id %[2]s`", other.Subject.CommonName, mine)
	}
	return fmt.Errorf("the certificate of %s is of fleet %s, and this daemon's of %s", other.Subject.CommonName, theirs, mine)
}

// fleetURI is the SAN URI of a fleet's id; none without one.
func fleetURI(id string) []*url.URL {
	if id == "" {
		return nil
	}
	return []*url.URL{{Scheme: "urn", Opaque: strings.TrimPrefix(fleetPrefix, "urn:") + id}}
}
