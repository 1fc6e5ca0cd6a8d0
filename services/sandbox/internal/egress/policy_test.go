package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHostsHaveOneForm(t *testing.T) {
	for _, x := range []struct{ name, in, want string }{
		{"a name", "example.com", "example.com"},
		{"capitals", "ExAmPlE.COM", "example.com"},
		{"a trailing dot", "example.com.", "example.com"},
		{"two trailing dots", "example.com..", ""},
		{"an empty label", "a..example.com", ""},
		{"a leading dot", ".example.com", ""},
		{"a name in another script", "bücher.example", "xn--bcher-kva.example"},
		{"full-width letters", "ｅxample.com", "example.com"},
		{"an ideographic full stop", "example。com", "example.com"},
		{"a sharp s is not two", "straße.de", "xn--strae-oqa.de"},
		{"a soft hyphen is nothing", "exam\u00adple.com", "example.com"},
		{"an underscore", "a_b.example.com", ""},
		{"a blank", "exam ple.com", ""},
		{"a line break", "example.com\r\nx", ""},
		{"a zero byte", "example.com\x00.evil.org", ""},
		{"a slash", "example.com/evil", ""},
		{"a user", "user@example.com", ""},
		{"a per cent sign", "example%2ecom", ""},
		{"invalid punycode", "xn--a.example", ""},
		{"a label that is too long", strings.Repeat("a", 64) + ".com", ""},
		{"a name that is too long", strings.Repeat("a.", 127) + "com", ""},
		{"an address", "192.0.2.1", "192.0.2.1"},
		{"an address with a trailing dot", "127.0.0.1.", ""},
		{"octal", "0177.0.0.1", ""},
		{"hexadecimal", "0x7f.0.0.1", ""},
		{"hexadecimal in one", "0x7f000001", ""},
		{"hexadecimal at the end", "foo.0x1", ""},
		{"one number", "2130706433", ""},
		{"two parts", "127.1", ""},
		{"leading zeros", "127.000.000.001", ""},
		{"full-width digits", "１２７.０.０.１", ""},
		{"circled digits", "①②⑦.⓪.⓪.①", ""},
		{"a name that ends in a number", "example.1", ""},
		{"IPv6", "2001:DB8::1", "2001:db8::1"},
		{"IPv4 in IPv6", "::ffff:127.0.0.1", "127.0.0.1"},
		{"IPv4 in IPv6, hexadecimal", "::ffff:7f00:1", "127.0.0.1"},
		{"IPv6 with a zone", "fe80::1%eth0", ""},
		{"nothing", "", ""},
		{"a dot", ".", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := parseHost(x.in)
			if (err != nil) != (x.want == "") || err == nil && got.host() != x.want {
				t.Errorf("parseHost(%q) = %q, %v; want %q", x.in, got.host(), err, x.want)
			}
		})
	}
}

func TestAuthoritiesAreHostAndPort(t *testing.T) {
	for _, x := range []struct {
		in, want string
		port     uint16
	}{
		{"a.com:443", "a.com:443", 0}, {"a.com", "a.com:80", 80}, {"a.com:0443", "a.com:443", 0}, {"[::1]:443", "[::1]:443", 0}, {"[2001:db8::1]", "[2001:db8::1]:80", 80},
		{"[::ffff:127.0.0.1]:80", "127.0.0.1:80", 0},
		{"a.com", "", 0}, {"a.com:", "", 0}, {"a.com:0", "", 0}, {"a.com:65536", "", 0}, {"a.com:+80", "", 0}, {"a.com:-1", "", 0}, {"a.com:80:80", "", 0},
		{"a.com:http", "", 0}, {"::1:443", "", 0}, {"[a.com]:443", "", 0}, {"[127.0.0.1]:443", "", 0}, {"[::1", "", 0}, {"[::1]443", "", 0}, {":443", "", 0}, {"", "", 80},
		{"a.com:80@b.com:80", "", 0}, {"a.com:80#", "", 0}, {"a.com :80", "", 0}, {"[fe80::1%25lo]:80", "", 0},
	} {
		got, err := parseAuthority(x.in, x.port)
		if (err != nil) != (x.want == "") || err == nil && got.authority() != x.want {
			t.Errorf("parseAuthority(%q) = %s, %v; want %q", x.in, got.authority(), err, x.want)
		}
	}
}

func TestParsingAHostAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9.\-:\[\]xX%ßé。１]{0,40}`)).Draw(t, "host")
		first, err := parseHost(s)
		if err != nil {
			return
		}
		second, err := parseHost(first.host())
		if err != nil || second != first {
			t.Fatalf("%q is %q, and that is %q (%v)", s, first.host(), second.host(), err)
		}
		if _, err := netip.ParseAddr(first.name); err == nil {
			t.Fatalf("%q became the name %q, which is an address", s, first.name)
		}
	})
}

func TestSpecialAddresses(t *testing.T) {
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"168.63.129.16", "192.88.99.1",
		"::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "100::1", "5f00::1",
		"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1", "2002:808:808::1", "2001::1", "2001:0:7f00:1::", "2001:db8::1", "2001:20::1", "3fff::1", "4000::1",
	} {
		if !isSpecial(netip.MustParseAddr(a)) {
			t.Errorf("%s is not taken for special", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "169.253.1.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"} {
		if isSpecial(netip.MustParseAddr(a)) {
			t.Errorf("%s is taken for special", a)
		}
	}
}

func TestOnlyARangeThatMeansItOpensASpecialAddress(t *testing.T) {
	for _, x := range []struct {
		prefix, addr string
		want         bool
	}{
		{"10.0.0.0/8", "10.1.2.3", true}, {"10.1.0.0/16", "10.1.2.3", true}, {"10.1.2.3/32", "10.1.2.3", true}, {"10.1.0.0/16", "10.2.0.1", false},
		{"0.0.0.0/0", "10.1.2.3", false}, {"8.0.0.0/5", "10.1.2.3", false}, {"127.0.0.0/8", "127.0.0.1", true}, {"10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"169.254.0.0/16", "169.254.169.254", false}, {"169.254.169.254/32", "169.254.169.254", true}, {"169.254.169.254/32", "64:ff9b::a9fe:a9fe", true},
		{"::/0", "::1", false}, {"::1/128", "::1", true}, {"fc00::/7", "fd00::1", true}, {"fc00::/7", "fd00:ec2::254", false}, {"fd00:ec2::254/128", "fd00:ec2::254", true},
		{"2000::/3", "2002:7f00:1::1", false}, {"2002::/16", "2002:7f00:1::1", true}, {"2000::/7", "2001:db8::1", false}, {"64:ff9b:1::/48", "64:ff9b:1::1", true},
		{"100.64.0.0/10", "100.100.100.200", false},
	} {
		if got := opens(netip.MustParsePrefix(x.prefix), netip.MustParseAddr(x.addr)); got != x.want {
			t.Errorf("%s opens %s: %v, want %v", x.prefix, x.addr, got, x.want)
		}
	}
}

func TestFaultyRulesAreExplained(t *testing.T) {
	for _, x := range []struct {
		name string
		rule Rule
		want string
	}{
		{"no host", Rule{}, "there is no host"},
		{"a star inside", Rule{Host: "a*.example.com"}, "a star is allowed alone"},
		{"a star in the middle", Rule{Host: "a.*.com"}, "a star is allowed alone"},
		{"two stars", Rule{Host: "*.*.com"}, "a star is allowed alone"},
		{"a star before an address", Rule{Host: "*.1.2.3.4"}, "range of addresses"},
		{"a range with bits beyond", Rule{Host: "10.0.0.1/8"}, "10.0.0.0/8 is the range"},
		{"a range of IPv4 in IPv6", Rule{Host: "::ffff:0:0/96"}, "write them as such"},
		{"a host with a port", Rule{Host: "a.com:80"}, "not a host name"},
		{"a URL", Rule{Host: "https://a.com"}, "not a host name"},
		{"a port out of range", Rule{Host: "a.com", Ports: []int{70000}}, "70000 is not a port"},
		{"a method in small letters", Rule{Host: "a.com", Methods: []string{"get"}}, "capital letters"},
		{"CONNECT as a method", Rule{Host: "a.com", Methods: []string{"CONNECT"}}, "cannot be allowed"},
		{"a path without a slash", Rule{Host: "a.com", Paths: []string{"x"}}, "does not begin with /"},
		{"a path that is no pattern", Rule{Host: "a.com", Paths: []string{"/[x"}}, "not a pattern"},
		{"a path of many stars", Rule{Host: "a.com", Paths: []string{"/" + strings.Repeat("*a", 20)}}, "stars"},
		{"an unknown way with TLS", Rule{Host: "a.com", TLS: "terminate"}, "not one of pass"},
		{"a path of many alternatives", Rule{Host: "a.com", Paths: []string{"/" + strings.Repeat("{"+strings.Repeat("a,", 50)+"a}", 4)}}, "more than 256 paths"},
		{"raw bytes with paths", Rule{Host: "a.com", TLS: Raw, Ports: []int{22}, Paths: []string{"/"}}, "cannot see"},
		{"raw bytes without ports", Rule{Host: "a.com", TLS: Raw}, "name its ports"},
		{"a credential in clear text", Rule{Host: "a.com", Credential: "key"}, "set tls to"},
		{"an unknown credential", Rule{Host: "a.com", TLS: Upgrade, Credential: "nokey"}, "no such credential"},
		{"a credential for another host", Rule{Host: "b.com", TLS: Upgrade, Credential: "key"}, "not meant for this host"},
		{"a credential for more hosts than it is meant for", Rule{Host: "*.a.com", TLS: Upgrade, Credential: "key"}, "not meant for this host"},
		{"a host above the ceiling", Rule{Host: "c.org"}, "above what the operator allows"},
		{"a wildcard above the ceiling", Rule{Host: "*"}, "above what the operator allows"},
		{"a port above the ceiling", Rule{Host: "a.com", Ports: []int{22}}, "22: above what"},
		{"a range above the ceiling", Rule{Host: "10.0.0.0/8"}, "above what"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, err := New(Options{
				Ceiling:     []Rule{{Host: "*.com"}, {Host: "a.com"}, {Host: "10.1.0.0/16"}},
				Credentials: map[string]Credential{"key": {Hosts: []string{"a.com"}, Secret: "s3cret"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Policy([]Rule{x.rule})
			if !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want ErrPolicy with %q", err, x.want)
			}
		})
	}
}

func TestFaultyCredentialsAreExplained(t *testing.T) {
	for _, x := range []struct {
		name string
		c    Credential
		want string
	}{
		{"no hosts", Credential{Secret: "s3cret"}, "name at least one host"},
		{"every host", Credential{Hosts: []string{"*"}, Secret: "s3cret"}, "cannot be for every host"},
		{"no secret", Credential{Hosts: []string{"a.com"}}, "exactly one"},
		{"a secret with a line break", Credential{Hosts: []string{"a.com"}, Secret: "s3cret\r\nX: y"}, "cannot have"},
		{"a header that frames", Credential{Hosts: []string{"a.com"}, Secret: "s3cret", Header: "content-length"}, "cannot carry"},
		{"an invalid header", Credential{Hosts: []string{"a.com"}, Secret: "s3cret", Header: "a b"}, "cannot carry"},
		{"a file that is not there", Credential{Hosts: []string{"a.com"}, File: "/nonexistent"}, "read the secret's file"},
		{"two ways at once", Credential{Hosts: []string{"a.com"}, Secret: "s3cret", Prefix: "Bearer ", Username: "u"}, "only one"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := New(Options{Credentials: map[string]Credential{"key": x.c}})
			if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %q and no secret", err, x.want)
			}
		})
	}
}

func TestPathsThatCanBeReadInTwoWaysMatchNothing(t *testing.T) {
	for _, p := range []string{
		"/pub/../admin", "/pub/./x", "/pub/..;/admin", "/pub/%2e%2e/admin", "/pub/..%2fadmin", "/pub%2f..%2fadmin", "/pub/%252e%252e/admin", "/pub/%25252e%25252e/admin", "/pub/..\\admin", "/pub/%5c..%5cadmin", "/pub/x%00",
		"/pub/.. /admin", "/pub/ ../admin", "/pub/. ./admin", "/pub/.. ./admin", "/pub/..\t/admin", "/pub/..\u00a0/admin", "/pub/.. ;x/admin", "/pub/.. ", "/pub/\xc0\xae\xc0\xae/admin", "/pub/\xff",
	} {
		if checkPath(p, p) == nil {
			t.Errorf("%s is let through", p)
		}
	}
	for _, p := range []string{"/", "", "/pub/a.b", "/pub/...", "/pub/.well-known/x", "/pub/a;b=c", "/pub//x", "/pub/ä", "/pub/a .b", "/pub/ ", "/pub/.. x"} {
		if err := checkPath(p, p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// A star is one segment. An empty one is none to servers that merge slashes, and one of
// parameters alone is none to those that take them out.
func TestAStarIsNoSegmentThatServersDrop(t *testing.T) {
	r, err := compile(Rule{Host: "a.com", Paths: []string{"/v1/*/items", "/pub/**", "/{a,b}/*/x", "/"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/v1//items", "/v1/;/items", "/v1/;x=y/items", "/a//x", "//v1/x/items", "/v1/items"} {
		if r.path(p) {
			t.Errorf("%s is let through", p)
		}
	}
	for _, p := range []string{"/v1/x/items", "/v1/x;y/items", "/pub/", "/pub//", "/pub//x", "/pub/x//y/", "/pub/;x/y", "/b/1/x", "/"} {
		if !r.path(p) {
			t.Errorf("%s is not", p)
		}
	}
}

// If a name is at a private address, the proxy cannot know what its requests do
// there: a range that allows some of them alone is for those who name the address.
func TestARangeThatLooksAtRequestsOpensNoName(t *testing.T) {
	w := newWorld(t, func(plain, _ int) []Rule {
		return []Rule{{Host: "*", Ports: []int{plain}}, {Host: "127.0.0.0/8", Ports: []int{plain}, Methods: []string{"GET"}}}
	})
	c := w.client(nil)
	for _, x := range []struct {
		method, host string
		want         int
	}{{"GET", "127.0.0.1", 200}, {"POST", "127.0.0.1", 403}, {"GET", "at-loopback.org", 403}, {"POST", "at-loopback.org", 403}} {
		if got, body := w.ask(c, x.method, fmt.Sprintf("http://%s:%d/", x.host, port(w.web))); got != x.want {
			t.Errorf("%s %s: %d %s", x.method, x.host, got, body)
		}
	}
}
