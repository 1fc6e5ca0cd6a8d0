package rpc

import (
	"net/http"
	"strings"
	"testing"
)

func TestTheClientIsTheFirstAddressFromTheRightThatIsNoProxys(t *testing.T) {
	trusted, err := parseProxies([]string{"10.0.0.0/8", "192.0.2.1", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		remote string
		header http.Header
		want   string
	}{
		"without a header":                         {remote: "10.0.0.1:5", want: "10.0.0.1:5"},
		"a stranger that names another client":     {remote: "198.51.100.9:5", header: xff("203.0.113.7"), want: "198.51.100.9:5"},
		"one proxy":                                {remote: "10.0.0.1:5", header: xff("203.0.113.7"), want: "203.0.113.7:0"},
		"a client that forges the beginning":       {remote: "10.0.0.1:5", header: xff("6.6.6.6, 7.7.7.7, 203.0.113.7"), want: "203.0.113.7:0"},
		"a client that forges a line of its own":   {remote: "10.0.0.1:5", header: xff("6.6.6.6", "203.0.113.7"), want: "203.0.113.7:0"},
		"two proxies":                              {remote: "10.0.0.1:5", header: xff("6.6.6.6, 203.0.113.7, 192.0.2.1"), want: "203.0.113.7:0"},
		"two proxies in two lines":                 {remote: "10.0.0.1:5", header: xff("203.0.113.7", "10.1.1.1"), want: "203.0.113.7:0"},
		"a client inside the proxies' network":     {remote: "10.0.0.1:5", header: xff("10.9.9.9"), want: "10.9.9.9:0"},
		"a proxy of IPv6, a client with a port":    {remote: "[2001:db8::1]:5", header: xff("[2a00::7]:4711"), want: "[2a00::7]:0"},
		"a client of IPv6 without brackets":        {remote: "10.0.0.1:5", header: xff("2a00::7"), want: "[2a00::7]:0"},
		"an address of IPv4 in the form of IPv6":   {remote: "[::ffff:10.0.0.1]:5", header: xff("::ffff:203.0.113.7"), want: "203.0.113.7:0"},
		"nonsense left of the client":              {remote: "10.0.0.1:5", header: xff(`",,unknown, 203.0.113.7`), want: "203.0.113.7:0"},
		"nonsense where the client should be":      {remote: "10.0.0.1:5", header: xff("203.0.113.7, unknown"), want: "10.0.0.1:5"},
		"nonsense behind a proxy":                  {remote: "10.0.0.1:5", header: xff("x, 192.0.2.1"), want: "192.0.2.1:0"},
		"an empty header":                          {remote: "10.0.0.1:5", header: xff(""), want: "10.0.0.1:5"},
		"an empty entry at the end":                {remote: "10.0.0.1:5", header: xff("203.0.113.7,"), want: "10.0.0.1:5"},
		"a name instead of an address":             {remote: "10.0.0.1:5", header: xff("evil.example"), want: "10.0.0.1:5"},
		"Forwarded":                                {remote: "10.0.0.1:5", header: fwd(`for=6.6.6.6, For="203.0.113.7:80";proto=https;by=10.0.0.1`), want: "203.0.113.7:0"},
		"Forwarded with IPv6":                      {remote: "10.0.0.1:5", header: fwd(`for="[2a00::7]:4711"`), want: "[2a00::7]:0"},
		"Forwarded without an address":             {remote: "10.0.0.1:5", header: fwd("for=203.0.113.7, for=_hidden"), want: "10.0.0.1:5"},
		"Forwarded without for":                    {remote: "10.0.0.1:5", header: fwd("proto=https"), want: "10.0.0.1:5"},
		"Forwarded with two of them":               {remote: "10.0.0.1:5", header: fwd("for=203.0.113.7;for=6.6.6.6"), want: "10.0.0.1:5"},
		"Forwarded with a comma in a quoted host":  {remote: "10.0.0.1:5", header: fwd(`for=203.0.113.7;host="a,for=6.6.6.6"`), want: "10.0.0.1:5"},
		"Forwarded with an escaped quote":          {remote: "10.0.0.1:5", header: fwd(`for=203.0.113.7;host="a,for=6.6.6.6;b=\""`), want: "10.0.0.1:5"},
		"both headers that agree":                  {remote: "10.0.0.1:5", header: both("203.0.113.7", "for=203.0.113.7"), want: "203.0.113.7:0"},
		"a client's Forwarded that contradicts":    {remote: "10.0.0.1:5", header: both("203.0.113.7", "for=6.6.6.6"), want: "10.0.0.1:5"},
		"a socket that has no address of a client": {remote: "@", header: xff("203.0.113.7"), want: "@"},
	} {
		if got := trusted.ofRequest(c.remote, c.header); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := proxies(nil).ofRequest("10.0.0.1:5", xff("203.0.113.7")); got != "10.0.0.1:5" {
		t.Errorf("without trusted proxies: %s", got)
	}
}

func xff(lines ...string) http.Header { return http.Header{"X-Forwarded-For": lines} }
func fwd(lines ...string) http.Header { return http.Header{"Forwarded": lines} }
func both(x, f string) http.Header {
	return http.Header{"X-Forwarded-For": {x}, "Forwarded": {f}}
}

func TestTrustedProxiesAreNetworks(t *testing.T) {
	err := Config{Grace: 1, TrustedProxies: []string{"10.0.0.0/8", "::1", "192.0.2.7/24", "proxy.example", "0.0.0.0/0", "::/0", "10.0.0.0/33", "fe80::1%eth0", "::ffff:10.0.0.0/104"}}.Validate()
	if err == nil {
		t.Fatal("nonsense is taken")
	}
	for _, want := range []string{"proxy.example", "0.0.0.0/0", "::/0", "10.0.0.0/33", "fe80::1%eth0", "::ffff:10.0.0.0/104"} {
		if !strings.Contains(err.Error(), `trusted-proxies: `) || !strings.Contains(err.Error(), `"`+want+`"`) {
			t.Errorf("%s is not named in %v", want, err)
		}
	}
	for _, good := range []string{"10.0.0.0/8", `"::1"`, "192.0.2.7/24"} {
		if strings.Contains(err.Error(), `"`+good+`"`) {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
}
