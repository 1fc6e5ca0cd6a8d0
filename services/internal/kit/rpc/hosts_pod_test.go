package rpc

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// boundTo is a listener with an address that a test cannot listen on.
type boundTo struct {
	net.Listener
	address string
}

// Addr implements net.Listener.
func (b boundTo) Addr() net.Addr { a, _ := net.ResolveTCPAddr("tcp", b.address); return a }

// Probes and scrapes call a pod by its address, which the listener on 0.0.0.0 learns from the connection.
func TestAListenerForAllAnswersToTheAddressOfTheConnection(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, c := range []struct {
		address, local, host string
		want                 int
	}{
		{"0.0.0.0:9290", "10.1.2.3:9290", "10.1.2.3:9290", 200},
		{"[::]:9290", "[::ffff:10.1.2.3]:9290", "10.1.2.3:9290", 200},
		{"[::]:9290", "[2001:db8::7]:9290", "[2001:db8::7]:9290", 200},
		{"[::]:9290", "[fe80::7%1]:9290", "[fe80::7%251]:9290", 200},
		{"0.0.0.0:9290", "127.0.0.1:9290", "0.0.0.0:9290", 200},
		{"10.1.2.3:9290", "10.1.2.3:9290", "10.1.2.3", 200},
		{"0.0.0.0:9290", "10.1.2.3:9290", "localhost:9290", 200},
		{"0.0.0.0:9290", "10.1.2.3:9290", "10.1.2.4:9290", 200}, // by way of address translation
		{"0.0.0.0:9290", "10.1.2.3:9290", "evil.example:9290", 421},
		{"node1:9290", "10.1.2.3:9290", "node1:9290", 200},
		{"node1:9290", "10.1.2.3:9290", "node2:9290", 421},
	} {
		local, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		bound := boundTo{address: c.address}
		if strings.HasPrefix(c.address, "node1") {
			bound.address = c.local
		}
		g := newHostGuard(Config{}, c.address, bound, nil, ok)
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local)), http.MethodGet, "/metrics", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s, reached at %s as %s: %d, want %d", c.address, c.local, c.host, w.Code, c.want)
		}
	}
}
