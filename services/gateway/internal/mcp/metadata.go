package mcp

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// wellKnown is where clients find out how to log in (RFC 9728).
const wellKnown = "/.well-known/oauth-protected-resource"

// metadataOf returns the path whose metadata a path has, and whether it has any.
func metadataOf(path string) (resource string, ok bool) {
	resource, ok = strings.CutPrefix(path, wellKnown)
	return resource, ok && (resource == "" || Match(resource))
}

// ServeMetadata answers a request for the metadata of a path here, and reports whether it was one. Without issuers
// there are none.
func (s *Server) ServeMetadata(w http.ResponseWriter, r *http.Request) bool {
	resource, ok := metadataOf(r.URL.Path)
	if !ok || len(s.Issuers) == 0 {
		return false
	}
	r.Pattern = wellKnown
	allowed := []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	switch r.Method {
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
		return true
	case http.MethodGet, http.MethodHead:
	default:
		problem.Write(w, problem.MethodNotAllowed(r.Method, r.URL.Path, allowed))
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	// The client has gone if it cannot be written.
	_ = json.NewEncoder(w).Encode(metadata{s.base(r) + resource, s.Issuers, []string{"header"}, "Fairlead"}) //nolint:errchkjson // strings always marshal
	return true
}

// metadata is what a client must know of a path to log in.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

// Challenge tells a client without a valid credential where it finds out how to log in.
func (s *Server) Challenge(w http.ResponseWriter, r *http.Request) {
	if !Match(r.URL.Path) || len(s.Issuers) == 0 {
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.base(r)+wellKnown+r.URL.Path+`"`)
}

// base returns the URL at which the client reached the server.
func (s *Server) base(r *http.Request) string {
	switch {
	case s.PublicURL != "":
		return strings.TrimSuffix(s.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	default:
		return "http://" + r.Host
	}
}
