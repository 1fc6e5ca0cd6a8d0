package anthropic

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/fairlead/fairlead/services/session/internal/model/wire"
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
	sdk    sdk.Client
	// last are the options of a request that come after its HTTP client: a
	// platform wraps it.
	last []option.RequestOption
	// version is that of the request's body; empty where the SDK writes it.
	version string
}

// telemetry are the headers in which the SDK describes itself and the machine.
var telemetry = []string{"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"}

// Connect returns a client. It opens no connection yet and reads no credentials of
// a platform.
func Connect(a Access) *Client {
	a.Version = cmp.Or(a.Version, DefaultVersion)
	c := &Client{access: a}
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(), // the turn has its own spans
		option.WithMaxRetries(0),      // the turn loop retries, visibly
		option.WithHeader("User-Agent", "fairlead"),
		option.WithHeader("anthropic-version", a.Version),
	}
	for _, name := range telemetry {
		opts = append(opts, option.WithHeaderDel("X-Stainless-"+name))
	}
	switch {
	case a.Platform == Vertex:
		c.last, c.version = []option.RequestOption{vertexOption(a)}, old(a, "vertex-2023-10-16")
	case a.Platform == Bedrock:
		c.last, c.version = []option.RequestOption{bedrockOption(a)}, old(a, "bedrock-2023-05-31")
	case a.Token != "":
		opts = append(opts, option.WithAuthToken(a.Token))
	case a.Key != "":
		opts = append(opts, option.WithHeader("x-api-key", a.Key)) // The SDK's own option sends it as a bearer token.
	}
	if a.BaseURL != "" {
		c.last = append(c.last, option.WithBaseURL(a.BaseURL))
	}
	c.sdk = sdk.NewClient(opts...)
	return c
}

// old returns a platform's own name of the old version, which predates the common one.
func old(a Access, name string) string {
	if a.Version == Version2023 {
		return name
	}
	return ""
}

// post sends the request once.
func (c *Client) post(ctx context.Context, w *wire.Watch, body []byte) (raw *http.Response, err error) {
	opts := append([]option.RequestOption{option.WithHTTPClient(&http.Client{Transport: w})}, c.last...)
	if err := c.sdk.Post(ctx, "v1/messages", body, &raw, opts...); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	return raw, nil
}
