package rpc

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// hostGuard refuses requests that name another host than this listener. A page can point its own name at this
// address (DNS rebinding); its browser then takes both for one site, and only the name in Host and Origin
// differs.
//
// The gRPC listeners need no guard: they use only HTTP/2 without an upgrade, and browsers start that only
// inside TLS.
type hostGuard struct {
	next    http.Handler
	bound   netip.Addr // address of the listener; invalid if it is not an IP address
	names   []string   // lower case; may begin with "*."
	origins []string   // of pages on other hosts that may send requests
	proxies proxies    // they name the client of a request
}

func newHostGuard(c Config, address string, l net.Listener, origins []string, next http.Handler) *hostGuard {
	g := &hostGuard{next: next, names: []string{"localhost"}, origins: origins}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		g.bound = plainIP(tcp.AddrPort().Addr())
	}
	if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
		g.names = append(g.names, strings.ToLower(host))
	}
	g.proxies, _ = parseProxies(c.TrustedProxies) // Validate has checked them
	for _, name := range c.AllowedHosts {
		g.names = append(g.names, strings.ToLower(name))
	}
	return g
}

// ServeHTTP implements http.Handler.
func (g *hostGuard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// What may be cached replaces the first.
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	r.RemoteAddr = g.proxies.ofRequest(r.RemoteAddr, r.Header)
	local := localIP(r)
	// Only HTTP/1.0 has requests without a host, and browsers do not send them. A page cannot point an
	// address elsewhere, and behind address translation the address is not this machine's own.
	if _, isIP := address(r.Host); r.Host != "" && !isIP && !g.own(r.Host, local) {
		refuse(w, http.StatusMisdirectedRequest, apierr.ReasonHostNotAllowed, fmt.Sprintf(
			"this server does not answer for the host %q; call it by an address or as localhost, or add the name to allowed-hosts", short(r.Host)))
		return
	}
	for _, origin := range r.Header.Values("Origin") {
		if !g.ownOrigin(origin, local) {
			refuse(w, http.StatusForbidden, apierr.ReasonOriginNotAllowed, fmt.Sprintf(
				"pages from %q may not call this server; add the origin to the gateway's allowed-origins, or its host to allowed-hosts", short(origin)))
			return
		}
	}
	g.next.ServeHTTP(w, r)
}

// own reports whether host, with or without a port, is a name of this listener.
func (g *hostGuard) own(host string, local netip.Addr) bool {
	name := hostname(host)
	if ip, isIP := address(host); isIP {
		if ip.IsLoopback() || ip == g.bound || ip == local {
			return true
		}
		name = ip.String()
	}
	return slices.ContainsFunc(g.names, func(pattern string) bool { return matchesHost(pattern, name) })
}

// hostname returns host without its port, in lower case.
func hostname(host string) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: host}).Hostname(), "."))
}

// address returns the IP address in host, with or without a port.
func address(host string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(hostname(host))
	return plainIP(ip), err == nil
}

func (g *hostGuard) ownOrigin(origin string, local netip.Addr) bool {
	if slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && g.own(u.Host, local)
}

// matchesHost reports whether a pattern matches a name: "*" matches all, "*.example.com" names that end in
// .example.com.
func matchesHost(pattern, name string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(name, suffix) && len(name) > len(suffix)
	}
	return pattern == name
}

// checkHost returns the fault of an entry of allowed-hosts.
func checkHost(pattern string) error {
	name := strings.TrimPrefix(pattern, "*.")
	if _, err := netip.ParseAddr(name); err == nil || pattern == "*" {
		return nil
	}
	if name == "" || strings.ContainsAny(name, "*/:@[] \t") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%q is not a host such as api.example.com or *.example.com; leave out scheme and port", pattern)
	}
	return nil
}

// localIP returns the address that the client connected to.
func localIP(r *http.Request) netip.Addr {
	if tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return plainIP(tcp.AddrPort().Addr())
	}
	return netip.Addr{}
}

// plainIP normalizes an address that has two forms.
func plainIP(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// maxShown is how much of a client's header an error repeats, in bytes.
const maxShown = 200

func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxShown)], "\uFFFD") }

// refuse answers with a google.rpc.Status as JSON, the form of every error of the REST interface.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	refuseWith(w, code, apierr.New(codes.PermissionDenied, apierr.Domain, reason, message))
}

func refuseWith(w http.ResponseWriter, code int, err error) {
	st := status.Convert(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	body, _ := jsontext.AppendMessage(nil, st.Proto()) // valid text and known details cannot fail
	_, _ = w.Write(append(body, '\n'))                 //nolint:gosec // JSON, of a type that no browser takes for a page
}
