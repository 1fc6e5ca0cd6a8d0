package gateway

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// Config configures the limits of the gateway. rpc.Config configures its listeners, and its caller connects
// its peers.
type Config struct {
	Heartbeat           time.Duration `key:"heartbeat" help:"interval of comments in a quiet event stream; proxies cut silent streams"`
	Reconnect           time.Duration `key:"reconnect" help:"time after which clients of event streams reconnect (the retry field)"`
	WriteTimeout        time.Duration `key:"write-timeout" help:"how long a stream waits for a client that reads nothing before it ends"`
	Timeout             time.Duration `key:"timeout" help:"how long a service may take to answer a request, or to open a stream"`
	BodyTimeout         time.Duration `key:"body-timeout" help:"how long the body of a request may take to arrive"`
	MaxBody             config.Size   `key:"max-body" help:"how large the body of a request may be"`
	MaxStreams          int           `key:"max-streams" help:"the most streams at a time, of all clients; 0 for no limit"`
	MaxStreamsPerClient int           `key:"max-streams-per-client" help:"the most streams at a time of one client address; 0 for no limit"`
	MaxStreamsPerUser   int           `key:"max-streams-per-user" help:"the most streams at a time of one user, below what one address may have, so that a user behind a shared address leaves some to the others; 0 for no limit"`
	Rate                float64       `key:"rate" help:"how many requests a second one client address may make; 0 for no limit"`
	Burst               int           `key:"burst" help:"how many requests one client address may make at once, where rate is not 0"`
	PublicURL           string        `key:"public-url" help:"where clients, and authorization servers of MCP, reach the server, such as https://agents.example.com, if not at the address of their request"`
	PublicGRPC          string        `key:"public-grpc" help:"where clients reach gRPC, such as agents.example.com:443, for the cards of A2A; without it, cards name the other bindings alone"`
	MCPSessions         bool          `key:"mcp-sessions" help:"whether MCP clients of revisions before 2026-07-28 get sessions, which live in this process: they can be asked, and hear of changed tools. With several replicas, send requests with the same Mcp-Session-Id to the same one"`
	A2AMaxDepth         int           `key:"a2a-max-depth" help:"through how many agents a message of A2A may have come; the one beyond is refused, so that agents do not ask each other for ever"`
	AllowedOrigins      []string      `key:"allowed-origins" help:"origins of web pages that may call from a browser, such as https://app.example.com; none by default"`
}

// minBody is enough for every request without content.
const minBody = 4 << 10

// maxHeartbeat is well below the silence after which common proxies and browsers give up.
const maxHeartbeat = 15 * time.Second

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Heartbeat:           5 * time.Second,
		Reconnect:           time.Second,
		WriteTimeout:        30 * time.Second,
		Timeout:             time.Minute,
		BodyTimeout:         time.Minute,
		MaxBody:             16 << 20,
		MaxStreams:          10_000,
		MaxStreamsPerClient: 450,
		MaxStreamsPerUser:   300,
		Burst:               50,
		MCPSessions:         true,
		A2AMaxDepth:         4,
	}
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"heartbeat", c.Heartbeat}, {"reconnect", c.Reconnect}, {"write-timeout", c.WriteTimeout},
		{"timeout", c.Timeout}, {"body-timeout", c.BodyTimeout},
	} {
		if d.value < time.Millisecond {
			fault("%s: %s is less than 1ms", d.key, d.value)
		}
	}
	if c.Heartbeat > maxHeartbeat {
		fault("heartbeat: %s is more than %s; proxies would cut quiet streams", c.Heartbeat, maxHeartbeat)
	}
	if c.MaxBody < minBody {
		fault("max-body: %s is less than %s", c.MaxBody, config.Size(minBody))
	}
	if c.MaxStreams < 0 {
		fault("max-streams: %d is negative; 0 is no limit", c.MaxStreams)
	}
	if c.MaxStreamsPerClient < 0 {
		fault("max-streams-per-client: %d is negative; 0 is no limit", c.MaxStreamsPerClient)
	}
	if c.MaxStreamsPerUser < 0 {
		fault("max-streams-per-user: %d is negative; 0 is no limit", c.MaxStreamsPerUser)
	}
	if !(c.Rate >= 0) { // also NaN
		fault("rate: %v is not a number of requests per second; 0 is no limit", c.Rate)
	}
	if c.Rate > 0 && c.Burst < 1 {
		fault("burst: %d is less than 1, so that no request would ever be allowed", c.Burst)
	}
	if c.A2AMaxDepth < 0 {
		fault("a2a-max-depth: %d is negative; 0 takes no message that came through another agent", c.A2AMaxDepth)
	}
	if u, err := url.Parse(c.PublicURL); c.PublicURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		fault("public-url: %q is not a URL such as https://agents.example.com", c.PublicURL)
	}
	for _, o := range c.AllowedOrigins {
		if err := headers.CheckOrigin(o); err != nil {
			fault("allowed-origins: %w", err)
		}
	}
	return errors.Join(faults...)
}
