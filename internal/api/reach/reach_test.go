package reach_test

import (
	"net/netip"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/reach"
)

// No address is allowed at which a cloud hands out credentials, in none of the forms in
// which that is reached.
func TestAllowed(t *testing.T) {
	for ip, may := range map[string]bool{
		"192.0.2.7": true, "10.0.0.8": true, "127.0.0.1": true, "::1": true, "2001:db8::1": true, "fd12::1": true, "64:ff9b::c000:207": true, "2002:c000:207::1": true, "168.63.129.17": true,
		"169.254.169.254": false, "169.254.170.23": false, "::ffff:169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "224.0.0.1": false, "ff02::1": false, "0.0.0.0": false, "::": false,
		"fd00:ec2::254": false, "fd00:ec2::23": false, "fd20:ce::254": false, "168.63.129.16": false, "100.100.100.200": false, "192.0.0.192": false,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b:1::a9fe:a9fe": false, "2002:a9fe:a9fe::1": false, "::169.254.169.254": false, "64:ff9b::a83f:8110": false,
	} {
		if got := reach.Allowed(netip.MustParseAddr(ip)); got != may {
			t.Errorf("%s: %v, want %v", ip, got, may)
		}
	}
}
