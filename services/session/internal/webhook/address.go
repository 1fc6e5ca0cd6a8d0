package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// errNotPublic refuses an address. It does not name the address, which would
// reveal the internal network.
var errNotPublic = errors.New("the host has an address that is not public")

// notPublic lists addresses that are not public unicast, besides those that
// package netip knows: this machine, private networks, and every form of an
// IPv4 address inside an IPv6 one, which a translator would resolve.
var notPublic = prefixes(
	"0.0.0.0/8",       // this network
	"100.64.0.0/10",   // carrier-grade NAT
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, broadcast
	"2001::/23",       // protocol assignments, Teredo
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4
	"3fff::/20",       // documentation
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

// public reports whether an address belongs to the public Internet.
func public(a netip.Addr) bool {
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

// control checks the address just before a connection is made, after the host's
// name is resolved: an earlier resolution does not count.
func control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address cannot be read: %w", err)
	}
	if !public(to.Addr()) {
		return errNotPublic
	}
	return nil
}

// CheckURL returns the fault of a webhook's address, as far as it can be found
// without resolving its name.
func (c Config) CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Scheme == "http" && !c.AllowHTTP:
		return errors.New("it begins with http://; use https://")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it does not begin with https://")
	case u.Hostname() == "":
		return errors.New("it names no host")
	case u.User != nil:
		return errors.New("it holds a user name or a password; messages are signed instead")
	case u.Fragment != "":
		return errors.New("it has a fragment (#…), which is never sent")
	case c.AllowPrivate:
		return nil
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return errNotPublic
	}
	if a, err := netip.ParseAddr(host); err == nil && !public(a) {
		return errNotPublic
	}
	return nil
}
