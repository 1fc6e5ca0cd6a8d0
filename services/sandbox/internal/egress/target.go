package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// target is where a request goes: a name in its one normal form, or an address.
type target struct {
	name string     // lower case, ASCII, without a trailing dot; empty for an address
	addr netip.Addr // valid for an address; never IPv4 in IPv6
	port uint16
}

// host is the name or the address, as in a URL but without brackets.
func (t target) host() string {
	if t.addr.IsValid() {
		return t.addr.String()
	}
	return t.name
}

// authority is host:port, with brackets where they belong.
func (t target) authority() string { return net.JoinHostPort(t.host(), strconv.Itoa(int(t.port))) }

// header is what the Host header says: without the port when it is the scheme's.
func (t target) header(scheme string) string {
	if t.port != defaultPort(scheme) {
		return t.authority()
	}
	if t.addr.Is6() {
		return "[" + t.host() + "]"
	}
	return t.host()
}

func defaultPort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// parseAuthority reads host:port. Without a port it is the given one; zero means
// that there must be one.
func parseAuthority(s string, port uint16) (target, error) {
	u := url.URL{Host: s}
	host, digits := u.Hostname(), u.Port()
	rest := strings.TrimPrefix(s, host)
	if strings.HasPrefix(s, "[") {
		rest = strings.TrimPrefix(s, "["+host+"]")
	}
	if rest != "" && rest != ":"+digits {
		return target{}, fmt.Errorf("%q is not host:port", s)
	}
	switch {
	case digits != "":
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 {
			return target{}, fmt.Errorf("%q is not a port", digits)
		}
		port = uint16(n)
	case port == 0 || rest == ":":
		return target{}, fmt.Errorf("%q has no port", s)
	}
	t, err := parseHost(host)
	if err == nil && strings.HasPrefix(s, "[") != strings.Contains(host, ":") {
		err = fmt.Errorf("%q: brackets are for IPv6 addresses, and for them alone", s)
	}
	t.port = port
	return t, err
}

// parseHost brings a host into its one normal form. Forms of addresses other than
// the usual ones (octal, hexadecimal, one number, too few parts) are refused: some
// program would read them as an address, and another one as a name.
func parseHost(s string) (target, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return target{}, fmt.Errorf("%q names an interface of the machine", s)
		}
		return target{addr: a.Unmap()}, nil
	}
	name, err := normalName(s)
	return target{name: name}, err
}

// names maps as a browser does, then holds to what a name in the DNS may be.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

func normalName(s string) (string, error) {
	if s == "" {
		return "", errors.New("there is no host")
	}
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%q is not a host name", s)
	}
	name, err := names.ToASCII(strings.TrimSuffix(s, "."))
	if err != nil {
		return "", fmt.Errorf("%q is not a host name", s)
	}
	// A name that changes when it is read again would be another one to the next reader.
	if again, err := names.ToASCII(name); err != nil || again != name || name != strings.ToLower(name) {
		return "", fmt.Errorf("%q is not a host name", s)
	}
	if strings.HasSuffix(name, ".") || endsInNumber(name) {
		return "", fmt.Errorf("%q is neither a name nor an address in its usual form", s)
	}
	return name, nil
}

// endsInNumber tells names that some programs take for an IPv4 address.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}
