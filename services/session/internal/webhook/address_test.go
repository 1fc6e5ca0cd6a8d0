package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestOnlyPublicAddressesAreCalled(t *testing.T) {
	for a, want := range map[string]bool{
		"1.1.1.1":              true,
		"172.32.0.1":           true,
		"100.128.0.1":          true,
		"2606:4700:4700::1111": true,
		"2a00:1450:4001::8a":   true,

		"0.0.0.0":         false, // this machine, on Linux
		"0.1.2.3":         false,
		"127.0.0.1":       false,
		"127.255.255.254": false,
		"10.0.0.1":        false,
		"172.16.0.1":      false,
		"172.31.255.255":  false,
		"192.168.1.1":     false,
		"100.64.0.1":      false, // carrier-grade NAT
		"100.127.255.255": false,
		"169.254.169.254": false, // link-local: the metadata of clouds
		"192.0.0.192":     false,
		"192.0.2.1":       false,
		"192.88.99.1":     false,
		"198.18.0.1":      false,
		"198.19.255.255":  false,
		"198.51.100.1":    false,
		"203.0.113.1":     false,
		"224.0.0.1":       false,
		"239.255.255.255": false,
		"240.0.0.1":       false,
		"255.255.255.255": false,

		"::":                     false,
		"::1":                    false,
		"::7f00:1":               false, // IPv4-compatible
		"::ffff:127.0.0.1":       false, // IPv4-mapped
		"::ffff:10.0.0.1":        false,
		"::ffff:1.1.1.1":         false,
		"64:ff9b::7f00:1":        false, // NAT64 of 127.0.0.1
		"64:ff9b::101:101":       false,
		"64:ff9b:1::a00:1":       false, // NAT64 of a network's own prefix
		"100::1":                 false, // discard
		"2001::1":                false, // Teredo
		"2001:db8::1":            false,
		"2002:7f00:1::1":         false, // 6to4 of 127.0.0.1
		"3fff::1":                false,
		"5f00::1":                false,
		"fc00::1":                false, // unique local
		"fd12:3456::1":           false,
		"fe80::1":                false,
		"fe80::1%eth0":           false,
		"2606:4700:4700::1%eth0": false,
		"fec0::1":                false, // site-local
		"ff02::1":                false,
	} {
		if got := public(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s counts as public: %v", a, got)
		}
		err := control("tcp", net.JoinHostPort(a, "443"), nil)
		if (err == nil) != want {
			t.Errorf("%s is dialed: %v", a, err)
		}
	}
}

func TestCheckURL(t *testing.T) {
	open := Config{AllowHTTP: true, AllowPrivate: true}
	for name, c := range map[string]struct {
		url    string
		config Config
		says   string // empty: it is good
	}{
		"https at a name is good":                {"https://example.com/hook?key=1", Config{}, ""},
		"a port is good":                         {"https://example.com:8443/", Config{}, ""},
		"http is refused":                        {"http://example.com/", Config{}, "https://"},
		"http is good where it is allowed":       {"http://example.com/", Config{AllowHTTP: true}, ""},
		"another scheme is refused":              {"ftp://example.com/", open, "https://"},
		"a scheme that runs something":           {"file:///etc/passwd", open, "https://"},
		"no host is refused":                     {"https:///path", open, "no host"},
		"a password is refused":                  {"https://user:secret@example.com/", open, "password"},
		"a fragment is refused":                  {"https://example.com/#here", open, "fragment"},
		"a loopback address is refused":          {"https://127.0.0.1/", Config{}, "not public"},
		"so is one in brackets":                  {"https://[::1]:8443/", Config{}, "not public"},
		"so is a mapped one":                     {"https://[::ffff:10.0.0.1]/", Config{}, "not public"},
		"so is localhost":                        {"https://LocalHost./", Config{}, "not public"},
		"so is a name below localhost":           {"https://a.localhost/", Config{}, "not public"},
		"a loopback address where it is allowed": {"http://127.0.0.1:8080/", open, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.config.CheckURL(c.url)
			if c.says == "" && err == nil {
				return
			}
			if c.says == "" || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.url, err)
			}
		})
	}
}

// A name that looks harmless when the webhook is made may mean this machine when
// the message is sent: what counts is the address that is dialed.
func TestANameIsJudgedByTheAddressThatIsDialled(t *testing.T) {
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(Config{AllowHTTP: true}, "test")
	defer s.client.CloseIdleConnections()
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		a := s.send(context.Background(), message{id: "m", url: "http://" + net.JoinHostPort(strings.Trim(host, "[]"), port) + "/", secrets: [][]byte{[]byte("k")}})
		if a.err == nil || a.err.Error() != errNotPublic.Error() || a.status != 0 {
			t.Errorf("%s: %+v", host, a)
		}
	}
	if called {
		t.Error("the server was called")
	}
}
