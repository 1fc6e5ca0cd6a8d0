package mcp

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// wellKnown is where clients find out how to log in (RFC 9728).
const wellKnown = "/.well-known/oauth-protected-resource"

// clientPath is where Fairlead says who it is as a client of MCP servers' authorization servers, and callbackPath is
// where these send browsers back: a client id metadata document, whose address is the client's id. The tools service
// derives the address from its mcp-login-callback.
const clientPath, callbackPath = "/v1/mcp/client", "/v1/mcp/callback"

// metadataOf returns the path whose metadata a path has, and whether it has any.
func metadataOf(path string) (resource string, ok bool) {
	resource, ok = strings.CutPrefix(path, wellKnown)
	return resource, ok && (resource == "" || pattern(resource) != "")
}

// Metadata is the door of the documents with which clients and authorization servers find out who Fairlead is: the
// metadata of the paths of the protocol, if tokens of an issuer open them, and the client id metadata document, where
// authorization servers can reach it.
type Metadata struct{ *Server }

// Match implements door.Door.
func (s Metadata) Match(_, path string) *door.Route {
	if path == clientPath && strings.HasPrefix(s.PublicURL, "https://") {
		return published(clientPath, func(*http.Request) any { return s.client() })
	}
	resource, ok := metadataOf(path)
	if !ok || len(s.Issuers) == 0 {
		return nil
	}
	return published(wellKnown, func(r *http.Request) any {
		return metadata{wire.Base(s.PublicURL, r) + resource, s.Issuers, []string{"header"}, "Fairlead"}
	})
}

// published returns the route of a document that everyone may read.
func published(pattern string, of func(*http.Request) any) *door.Route {
	return &door.Route{Pattern: pattern, Open: true, Serve: func(w http.ResponseWriter, r *http.Request) error {
		allowed := []string{http.MethodGet, http.MethodHead, http.MethodOptions}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		switch r.Method {
		case http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
			return nil
		case http.MethodGet, http.MethodHead:
			w.Header().Set("Content-Type", "application/json")
			// The client has gone if it cannot be written.
			_ = json.NewEncoder(w).Encode(of(r))
			return nil
		default:
			return problem.MethodNotAllowed(r.Method, r.URL.Path, allowed)
		}
	}}
}

// client is Fairlead as a client of authorization servers: a public one, which uses PKCE.
type client struct {
	ID              string   `json:"client_id"`
	Name            string   `json:"client_name"`
	URI             string   `json:"client_uri"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	TokenAuth       string   `json:"token_endpoint_auth_method"`
	ApplicationType string   `json:"application_type"`
}

func (s *Server) client() client {
	at := strings.TrimSuffix(s.PublicURL, "/")
	return client{at + clientPath, "Fairlead", at, []string{at + callbackPath}, []string{"authorization_code", "refresh_token"}, []string{"code"}, "none", "web"}
}

// metadata is what a client must know of a path to log in.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

// Resource returns the address that a path has as a resource of its own, for which an authorization server makes tokens;
// "" if it is no path of the protocol, or public-url is not set: the Host of a request is the client's word.
func (s *Server) Resource(path string) string {
	if s.PublicURL == "" || pattern(path) == "" {
		return ""
	}
	return strings.TrimSuffix(s.PublicURL, "/") + path
}

// Challenge tells a client without a valid credential where it finds out how to log in.
func (s *Server) Challenge(w http.ResponseWriter, r *http.Request) {
	if pattern(r.URL.Path) == "" || len(s.Issuers) == 0 {
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+wire.Base(s.PublicURL, r)+wellKnown+r.URL.Path+`"`)
}
