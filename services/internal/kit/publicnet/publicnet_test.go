package publicnet

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
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
		"168.63.129.16":   false, // Azure's own
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
		if got := Public(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s counts as public: %v", a, got)
		}
	}
}
