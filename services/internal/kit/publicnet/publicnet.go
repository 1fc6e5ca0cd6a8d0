// Package publicnet tells addresses of the public Internet from all others. A service
// that connects to an address of a user's choice checks it when it connects, so that the
// user reaches nothing in the service's own network.
package publicnet

import "net/netip"

// notPublic lists addresses that are not public unicast, besides those that
// package netip knows: this machine, private networks, and every form of an
// IPv4 address inside an IPv6 one, which a translator would resolve.
var notPublic = prefixes(
	"0.0.0.0/8",        // this network
	"100.64.0.0/10",    // carrier-grade NAT
	"168.63.129.16/32", // Azure's answers to its own machines
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"240.0.0.0/4",      // reserved, broadcast
	"2001::/23",        // protocol assignments, Teredo
	"2001:db8::/32",    // documentation
	"2002::/16",        // 6to4
	"3fff::/20",        // documentation
)

// global is the public unicast range of IPv6. It excludes unique local, link
// and site local, IPv4-mapped, IPv4-compatible and NAT64 addresses.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, p := range all {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// Public reports whether an address belongs to the public Internet.
func Public(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" || a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
