package anthropic

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com"

// Versions of the API. The newer one refuses temperature, top_p and top_k.
const (
	Version2023    = "2023-06-01"
	Version2026    = "2026-10-21"
	DefaultVersion = Version2023 // which all compatible servers know, too
)

// Platforms that serve the API in their own form.
const (
	Vertex  = "vertex"
	Bedrock = "bedrock"
)

// Access is the access to a provider.
type Access struct {
	// Provider is the configured name. Thinking is stored and replayed under
	// it; errors contain it, too.
	Provider string
	// BaseURL without /v1; that of Anthropic or the platform when empty.
	BaseURL string
	// Key is sent as x-api-key, and Token as a bearer token. A platform takes only
	// a token; without one it finds its credentials in its own usual places.
	Key, Token string
	// Version of the API; DefaultVersion when empty.
	Version string
	// Platform is empty, Vertex or Bedrock. Both have a Region, and Vertex has a Project.
	Platform, Region, Project string
	// Idle is how long the stream may be silent; 0 is no limit.
	Idle time.Duration
}

func (a Access) secret() string { return cmp.Or(a.Token, a.Key) }

// Client sends requests to one provider. It is safe for concurrent use, and all
// models of the provider share it and its credentials.
type Client struct {
	access Access
	auth   transport.Auth
	header http.Header
	// version is that of the API where the request's body names it; a platform's address names the model instead.
	version string
}

// Connect returns a client. It opens no connection yet and reads no credentials of
// a platform.
func Connect(a Access) *Client {
	a.Version = cmp.Or(a.Version, DefaultVersion)
	c := &Client{access: a, header: http.Header{"Accept": {"application/json"}}}
	switch a.Platform {
	case "":
		c.header.Set("Anthropic-Version", a.Version)
		c.auth = transport.Header("X-Api-Key", a.Key)
	case Vertex:
		c.version, c.auth = old(a, "vertex-2023-10-16"), transport.Google(a.Provider)
	case Bedrock:
		c.version, c.auth = old(a, "bedrock-2023-05-31"), transport.AWS(a.Provider, "bedrock", a.Region)
	}
	if a.Token != "" {
		c.auth = transport.Bearer(a.Token)
	}
	return c
}

// old returns a platform's own name of the old version, which predates the common one.
func old(a Access, name string) string {
	if a.Version == Version2023 {
		return name
	}
	return a.Version
}

// address returns the address of a model.
func (c *Client) address(model string) (string, error) {
	a := c.access
	switch a.Platform {
	case Vertex:
		host := a.Region + "-aiplatform.googleapis.com"
		switch a.Region {
		case "global":
			host = "aiplatform.googleapis.com"
		case "us", "eu":
			host = "aiplatform." + a.Region + ".rep.googleapis.com"
		}
		return transport.Address(cmp.Or(a.BaseURL, "https://"+host), "v1", "projects", a.Project, "locations", a.Region, "publishers", "anthropic", "models", model+":streamRawPredict")
	case Bedrock:
		return transport.Address(cmp.Or(a.BaseURL, "https://bedrock-runtime."+a.Region+".amazonaws.com"), "model", model, "invoke-with-response-stream")
	}
	return transport.Address(cmp.Or(a.BaseURL, DefaultBaseURL), "v1", "messages")
}

// post sends the request once.
func (c *Client) post(ctx context.Context, w *transport.Watch, model string, body []byte) (*http.Response, error) {
	address, err := c.address(model)
	if err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	return w.Post(ctx, address, c.header, c.auth, body)
}
