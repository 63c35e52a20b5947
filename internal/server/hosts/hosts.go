// Package hosts tells hosts apart by their addresses, before anything else is known of who
// connects. Callers: server (places of a port) and login (floods). It has no state.
package hosts

import "net/netip"

// Of is an address without a zone; of IPv6 the /64, which one host has to itself.
func Of(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if prefix, err := address.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return address
}
