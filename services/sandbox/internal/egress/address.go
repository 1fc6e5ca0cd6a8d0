package egress

import "net/netip"

// special are the addresses that are not ordinary internet addresses: the registries of special-purpose
// addresses (RFC 6890 and its successors), and the few public addresses at which a cloud answers its own
// machines.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// metadata are the addresses at which clouds hand out credentials. Only a rule for exactly that address
// opens one.
var metadata = prefixes(
	"169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
	"fd00:ec2::/32", "fd20:ce::254/128",
)

var (
	unicast6 = netip.MustParsePrefix("2000::/3")
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(all ...string) []netip.Prefix {
	p := make([]netip.Prefix, len(all))
	for i, s := range all {
		p[i] = netip.MustParsePrefix(s)
	}
	return p
}

// unmap unwraps an address: IPv4 in IPv6, and addresses that a NAT64 would send to IPv4.
func unmap(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// isSpecial reports whether an address needs a rule of its own. For IPv6, every address does except global
// unicast; addresses that lead to IPv4 (6to4, Teredo, NAT64) are special too.
func isSpecial(a netip.Addr) bool {
	a = unmap(a)
	return !a.IsValid() || (a.Is6() && !unicast6.Contains(a)) || within(special, a)
}

func within(all []netip.Prefix, a netip.Addr) bool {
	for _, p := range all {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// opens reports whether a rule for a range of addresses applies to a special address. The whole range must
// be special, so that a rule for the whole internet opens no special address. A metadata address must be
// named alone.
func opens(p netip.Prefix, a netip.Addr) bool {
	if a = unmap(a); !p.Contains(a) {
		return false
	}
	if within(metadata, a) {
		return p.IsSingleIP()
	}
	if p.Addr().Is6() && p.Bits() >= 7 && !p.Overlaps(unicast6) {
		return true // fc00::/7 is the widest range in use
	}
	for _, s := range special {
		if s.Bits() <= p.Bits() && s.Contains(p.Addr()) {
			return true
		}
	}
	return p.IsSingleIP() // an address of the node itself
}
