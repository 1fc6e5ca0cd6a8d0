package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// proxies are the networks of the proxies that may name the client of a request.
type proxies []netip.Prefix

// parseProxies reads the entries of trusted-proxies: networks and single addresses.
func parseProxies(entries []string) (proxies, error) {
	var all proxies
	var faults []error
	for _, entry := range entries {
		network, err := netip.ParsePrefix(entry)
		if ip, single := netip.ParseAddr(entry); single == nil && ip.Zone() == "" {
			network, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%q is not a network such as 10.0.0.0/8, and not an address", entry))
		case network.Bits() == 0:
			faults = append(faults, fmt.Errorf("%q has every address, so that each client could name another one; list the networks of the proxies", entry))
		case network.Addr().Is4In6():
			faults = append(faults, fmt.Errorf("%q is a network of IPv4 in the form of IPv6; write %s", entry, network.Addr().Unmap()))
		default:
			all = append(all, network.Masked())
		}
	}
	return all, errors.Join(faults...)
}

func (p proxies) trust(ip netip.Addr) bool {
	for _, network := range p {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// client returns the address of the client of a request that arrived from remote. Each proxy appends the address that it
// got the request from, so the headers are read from the right: the first address that is no proxy's is the client's.
// What is left of it is the client's own word. Where the headers make no sense or contradict each other, the client is
// the last proxy that is known.
func (p proxies) client(remote netip.Addr, forwardedFor, forwarded []string) netip.Addr {
	if !p.trust(remote) {
		return remote
	}
	switch {
	case len(forwarded) == 0:
		return p.last(remote, forwardedFor, addressOf)
	case len(forwardedFor) == 0:
		return p.last(remote, forwarded, forwardedOf)
	}
	// A proxy that writes one of the headers may pass on the other one as the client sent it.
	if c := p.last(remote, forwardedFor, addressOf); c == p.last(remote, forwarded, forwardedOf) {
		return c
	}
	return remote
}

// last walks the entries of a header from the right, for as long as they are proxies.
func (p proxies) last(remote netip.Addr, lines []string, read func(entry string) (netip.Addr, bool)) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			var entry string
			if at := strings.LastIndexByte(line, ','); at >= 0 {
				line, entry = line[:at], line[at+1:]
			} else {
				entry, more = line, false
			}
			ip, ok := read(strings.Trim(entry, " \t"))
			if !ok {
				return remote
			}
			if remote = ip; !p.trust(ip) {
				return ip
			}
		}
	}
	return remote
}

// addressOf reads an address, with or without a port.
func addressOf(text string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return plainIP(ap.Addr()), true
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	ip, err := netip.ParseAddr(text)
	return plainIP(ip), err == nil
}

// forwardedOf reads the parameter for of an element of the header Forwarded (RFC 7239). Quotes and backslashes could hide
// a comma of a client's text, so an element with such quotes is none.
func forwardedOf(element string) (ip netip.Addr, ok bool) {
	if strings.Contains(element, `\`) || strings.Count(element, `"`)%2 != 0 {
		return ip, false
	}
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if ok {
			return netip.Addr{}, false // there are two
		}
		if ip, ok = addressOf(strings.Trim(value, `"`)); !ok {
			return ip, false
		}
	}
	return ip, ok
}

// ofRequest returns the remote address of an HTTP request's client, in the form of http.Request.RemoteAddr.
func (p proxies) ofRequest(remote string, header map[string][]string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil || len(p) == 0 {
		return remote
	}
	from := plainIP(ap.Addr())
	client := p.client(from, header["X-Forwarded-For"], header["Forwarded"])
	if client == from {
		return remote
	}
	return netip.AddrPortFrom(client, 0).String()
}

// ofCall returns the address of the client of a gRPC call, without its port.
func (p proxies) ofCall(ctx context.Context) string {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	remote := from.Addr.String()
	if len(p) > 0 {
		remote = p.ofRequest(remote, map[string][]string{
			"X-Forwarded-For": metadata.ValueFromIncomingContext(ctx, "x-forwarded-for"),
			"Forwarded":       metadata.ValueFromIncomingContext(ctx, "forwarded"),
		})
	}
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}
