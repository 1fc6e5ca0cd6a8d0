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

// target is the destination of a request: a name in its normal form, or an address.
type target struct {
	name string     // lower case, ASCII, without a trailing dot; empty for an address
	addr netip.Addr // valid for an address; never IPv4 in IPv6
	port uint16
}

// host returns the name or the address, without brackets.
func (t target) host() string {
	if t.addr.IsValid() {
		return t.addr.String()
	}
	return t.name
}

// authority returns host:port, with brackets where needed.
func (t target) authority() string { return net.JoinHostPort(t.host(), strconv.Itoa(int(t.port))) }

// header returns the value of the Host header: without the port if that is the scheme's default.
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

// parseAuthority parses host:port. A missing port is replaced by port; if that is zero, it is an error.
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
		err = fmt.Errorf("%q: brackets are only for IPv6 addresses", s)
	}
	t.port = port
	return t, err
}

// parseHost returns the normal form of a host. It refuses unusual forms of addresses (octal, hexadecimal,
// one number, too few parts): some programs read them as addresses, and others as names.
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

// names maps names as a browser does, and applies the rules of the DNS.
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
	// If a second pass changes the name, the next reader would see another name.
	if again, err := names.ToASCII(name); err != nil || again != name || name != strings.ToLower(name) {
		return "", fmt.Errorf("%q is not a host name", s)
	}
	if strings.HasSuffix(name, ".") || endsInNumber(name) {
		return "", fmt.Errorf("%q is neither a name nor an address in its usual form", s)
	}
	return name, nil
}

// endsInNumber reports whether some programs take the name for an IPv4 address.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}
