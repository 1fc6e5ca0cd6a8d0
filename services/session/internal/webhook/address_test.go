package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOnlyPublicAddressesAreCalled(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1:443": true, "[2606:4700:4700::1111]:443": true,
		"127.0.0.1:443": false, "10.0.0.1:443": false, "169.254.169.254:80": false, "[::1]:443": false, "[64:ff9b::7f00:1]:443": false, "none": false,
	} {
		if err := control("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s is dialed: %v", address, err)
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
