package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// errNotPublic refuses an address. It names none: which addresses a network has
// inside is nobody's business.
var errNotPublic = errors.New("the host has an address that is not public")

// notPublic lists what is no public unicast address, besides what package netip
// knows of: this machine, private networks, and every way to write an IPv4
// address inside an IPv6 one, by which a translator would bring us there.
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

// global is what of IPv6 is unicast to everybody. It leaves out unique local,
// link and site local, IPv4-mapped, IPv4-compatible and NAT64 addresses.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, p := range all {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// public tells whether an address is one of the Internet's.
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

// control refuses a connection just before it is made, when the host's name has
// become an address: what a name meant earlier does not count.
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

// CheckURL tells what is wrong with a webhook's address, as far as that can be
// seen without asking for what its name stands.
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
