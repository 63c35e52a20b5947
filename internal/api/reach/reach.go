package reach

import (
	"net/netip"
	"slices"
)

// metadata are the addresses outside the link-local ones at which clouds hand out their
// metadata and credentials: AWS (also of pods), Google, Azure, Alibaba, Oracle.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("192.0.0.192/32"),
}

// embedding are prefixes of IPv6 whose addresses stand for one of IPv4, with the byte at which
// that begins: NAT64, 6to4, and the form that was given up.
var embedding = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("64:ff9b:1::/48"): 12, netip.MustParsePrefix("2002::/16"): 2, netip.MustParsePrefix("::/96"): 12,
}

// Allowed reports whether something may be read from an address: not from a link-local one
// or another where clouds keep their metadata, however it is written.
func Allowed(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return false
	}
	for prefix, at := range embedding {
		if b := ip.As16(); ip.Is6() && !ip.IsLoopback() && prefix.Contains(ip) && !Allowed(netip.AddrFrom4([4]byte(b[at:at+4]))) {
			return false
		}
	}
	return !slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(ip) })
}
