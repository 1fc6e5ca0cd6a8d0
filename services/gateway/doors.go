package gateway

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/forward"
	"github.com/fairlead/fairlead/services/gateway/internal/grpcweb"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/mcp"
	"github.com/fairlead/fairlead/services/gateway/internal/modelproxy"
	"github.com/fairlead/fairlead/services/gateway/internal/rest"
	"github.com/fairlead/fairlead/services/gateway/internal/socket"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/transfer"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/a2a"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/agui"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/aisdk"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/managed"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/openaiagents"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// doors are all that the gateway answers over HTTP, and the doors that also serve something else.
type doors struct {
	rows   []door.Row
	mcp    *mcp.Server
	agents *a2a.Server
}

// newDoors returns the table of the doors. To add a wire, write its package and add a row.
//
// Every route needs a credential, unless its door says that it is open: the specification, the metadata of MCP, and RPCs
// and deliveries whose requests have a secret of their own. A body has at most max-body bytes, and the door's own limit
// if that is smaller. The streams of REST and of wires leave their handlers while they are quiet (idle); those of the
// other doors keep them. testdata/doors/table.txt lists every path.
func newDoors(ctx context.Context, c Config, d Deps, methods *forward.Table, streams *limit.Streams, feeds stream.Shared) (*doors, error) {
	session, maxBody := d.Session, int64(c.MaxBody)
	api, err := rest.New(ctx, rest.Config{
		Stream: stream.Config{
			Heartbeat: c.Heartbeat, Reconnect: c.Reconnect, WriteTimeout: c.WriteTimeout,
			OpenTimeout: c.Timeout, MaxBody: maxBody, BodyTimeout: c.BodyTimeout,
		},
		MaxBody: maxBody, BodyTimeout: c.BodyTimeout, Timeout: c.Timeout,
	}, rest.Deps{Session: session, Tools: d.Tools, Streams: streams, Shared: feeds, Log: d.Log})
	if err != nil {
		return nil, err
	}
	shared, err := wire.New(wire.Config{
		Heartbeat: c.Heartbeat, WriteTimeout: c.WriteTimeout, Timeout: c.Timeout, BodyTimeout: c.BodyTimeout, MaxBody: maxBody,
	}, session, streams, feeds, d.Log)
	if err != nil {
		return nil, err
	}
	sockets, err := socket.New(shared, c.AllowedOrigins)
	if err != nil {
		return nil, err
	}
	web := &grpcweb.Server{
		Methods: methods, Streams: streams, MaxBody: maxBody, Log: d.Log,
		Timeout: c.Timeout, BodyTimeout: c.BodyTimeout, WriteTimeout: c.WriteTimeout,
	}
	files := &transfer.Server{
		Client: sessionv1.NewSessionServiceClient(session), Files: sessionv1.NewSessionFileServiceClient(session),
		Blobs: sessionv1.NewFileServiceClient(session), Triggers: sessionv1.NewTriggerServiceClient(session),
		WriteTimeout: c.WriteTimeout, BodyTimeout: c.BodyTimeout, Log: d.Log,
	}
	models := modelproxy.New(modelproxy.Config{MaxBody: maxBody, BodyTimeout: c.BodyTimeout, WriteTimeout: c.WriteTimeout}, session, d.Log)
	tools := mcp.New(mcp.Config{
		Sessions: c.MCPSessions, PublicURL: c.PublicURL, Secret: secret(d.Secret), Version: d.Version, Issuers: d.Auth.Issuers(),
		Heartbeat: c.Heartbeat, WriteTimeout: c.WriteTimeout, Timeout: c.Timeout, BodyTimeout: c.BodyTimeout, MaxBody: maxBody,
	}, session, d.Log)
	agents := a2a.New(a2a.Config{PublicURL: c.PublicURL, PublicGRPC: c.PublicGRPC, MaxDepth: c.A2AMaxDepth}, shared, session)
	return &doors{mcp: tools, agents: agents, rows: []door.Row{
		// Errors are a google.rpc.Status in JSON.
		{Under: under("/openapi.json"), Door: rest.Specification{}, Bare: true},
		{Under: under("/.well-known/oauth-protected-resource", "/v1/mcp/client"), Door: mcp.Metadata{Server: tools}},
		// Errors are trailers. The content type makes a request one of this door, whatever its path.
		{Under: under("/"), Form: grpcweb.Is, Door: web},
		// Errors are a google.rpc.Status in JSON. Files have no limit of the gateway; a delivery has 256 KiB.
		{Under: under("/v1/"), Door: files, Counted: true, Bare: true},
		// Errors before the protocol begins are a google.rpc.Status in JSON. A body has 4 MiB.
		{Under: under("/mcp"), Door: tools, Counted: true, Resource: tools.Resource, Challenge: tools.Challenge},
		// Errors are in the form of the wire.
		{Under: under("/v1/ai-sdk/"), Door: aisdk.New(shared, session), Counted: true, Text: true},
		{Under: under("/v1/agui/"), Door: agui.New(shared, session, d.Tools), Counted: true, Text: true},
		{Under: under("/a2a/"), Door: agents, Counted: true, Text: true},
		{Under: under("/anthropic/v1/"), Door: managed.New(shared, session), Credential: modelproxy.Identify, Text: true},
		{Under: under("/openai/v1/"), Door: openaiagents.New(shared, session), Credential: modelproxy.Identify, Text: true}, //nolint:contextcheck // a request brings its own
		// Errors before the upgrade are a google.rpc.Status in JSON.
		{Under: under("/v1/ws", "/v1/sessions/"), Door: sockets, Credential: socket.Identify, Counted: true, Text: true},
		// Errors are in the form of Anthropic's or OpenAI's API. A body has almost 16 MiB.
		{Under: under("/anthropic/", "/openai/"), Door: models, Credential: modelproxy.Identify, Counted: true},
		// Errors are a google.rpc.Status in JSON. A body without content has 1 MiB.
		{Under: under("/v1/"), Door: api, Bare: true},
	}}, nil
}

func under(prefixes ...string) []string { return prefixes }
