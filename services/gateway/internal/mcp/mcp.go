// Package mcp serves the tools of sessions as a server of the Model Context Protocol, over streamable HTTP.
//
// A request's path names the session: one of the caller's that exists, or the one that the caller has for an agent,
// which is made on first use. Each session and user has an MCP server of the SDK, which is renewed from the session's
// list of tools. A call is SessionToolService.CallTool, so everything that holds for calls holds here: permission,
// journal, budget, audit. The package keeps nothing that a call needs: it attaches again after a failure of the
// session service, and what an approval needs is in the client's request state, under a MAC.
//
// Clients of revision 2026-07-28 and later are served without sessions of the protocol. For earlier ones such a
// session lives in this process, if Sessions is set; otherwise they, too, are served without.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// modern is the first revision of the protocol without sessions.
const modern = "2026-07-28"

const (
	// sessionTimeout is how long a session of the protocol may be idle.
	sessionTimeout = time.Hour
	// maxScopes bounds the MCP servers that are kept.
	maxScopes = 2000
	// maxBody is enough for the largest arguments that a call may have.
	maxBody = 4 << 20
	// eventBytes bounds what is kept for clients that come back to a stream, of all sessions of the protocol.
	eventBytes = 64 << 20
)

// Config configures the server.
type Config struct {
	// Sessions gives clients of revisions before 2026-07-28 a session in this process.
	Sessions bool
	// Secret authenticates what clients bring back. All replicas have the same.
	Secret  []byte
	Version string
	// Heartbeat is the interval of comments in a quiet stream; WriteTimeout is how long one write may take.
	Heartbeat, WriteTimeout time.Duration
	// Timeout bounds a request to a service; BodyTimeout and MaxBody bound a body.
	Timeout, BodyTimeout time.Duration
	MaxBody              int64
	// Issuers are the issuers of tokens, for clients that log in. PublicURL is where clients reach the server; empty:
	// where the request did.
	Issuers   []string
	PublicURL string
}

// Server serves MCP.
type Server struct {
	door.Problems
	Config
	sessions sessionv1.SessionServiceClient
	tools    sessionv1.SessionToolServiceClient
	servers  sessionv1.McpServiceClient
	log      *slog.Logger

	mu     sync.Mutex
	scopes map[scopeKey]*scope

	stateful, stateless http.Handler
}

// New returns a server for the session service behind a connection.
func New(c Config, session grpc.ClientConnInterface, log *slog.Logger) *Server {
	s := &Server{
		Config: c, sessions: sessionv1.NewSessionServiceClient(session), tools: sessionv1.NewSessionToolServiceClient(session),
		servers: sessionv1.NewMcpServiceClient(session), log: log, scopes: map[scopeKey]*scope{},
	}
	s.MaxBody = min(s.MaxBody, maxBody)
	events := sdk.NewMemoryEventStore(nil)
	events.SetMaxBytes(eventBytes)
	options := sdk.StreamableHTTPOptions{
		Logger: log, MaxRequestBodyBytes: s.MaxBody, PropagateRequestCancellation: true, SessionTimeout: sessionTimeout,
		DisableLocalhostProtection: true, // the listener checks Host and Origin
	}
	stateful, stateless := options, options
	stateful.EventStore, stateless.Stateless = events, true
	identify := auth.RequireBearerToken(identified, nil)
	s.stateful = identify(sdk.NewStreamableHTTPHandler(serverOf, &stateful))
	s.stateless = identify(sdk.NewStreamableHTTPHandler(serverOf, &stateless))
	return s
}

// Close ends the sessions of the protocol. No request is being served any more.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, sc := range s.scopes {
		sc.close()
		delete(s.scopes, key)
	}
}

// methods are the methods that the paths take.
var methods = []string{http.MethodDelete, http.MethodGet, http.MethodOptions, http.MethodPost}

var paths = regexp.MustCompile(`^/mcp(?:/agents/([a-z][a-z0-9-]{0,62})|/sessions/([a-z0-9][a-z0-9-]{0,62}))?$`)

// pattern returns the path for people and for traces; "" for a path of something else.
func pattern(path string) string {
	switch m := paths.FindStringSubmatch(path); {
	case m == nil:
		return ""
	case m[1] != "":
		return "/mcp/agents/{agent}"
	case m[2] != "":
		return "/mcp/sessions/{session}"
	default:
		return "/mcp"
	}
}

// Match implements door.Door.
func (s *Server) Match(method, path string) *door.Route {
	at := pattern(path)
	if at == "" {
		return nil
	}
	rt := &door.Route{Allow: methods, Pattern: at}
	if method != http.MethodOptions && slices.Contains(methods, method) {
		rt.Serve = s.serve
	}
	return rt
}

// serve answers a request whose caller is known.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) (err error) {
	if r, err = s.buffered(w, r); err != nil {
		return err
	}
	found, err := s.scope(r)
	if err != nil {
		return err
	}
	out := newStream(w, s.Heartbeat, s.WriteTimeout)
	defer out.close()
	ctx := context.WithValue(context.WithValue(r.Context(), scopeValue{}, found), streamValue{}, out)
	r = r.WithContext(ctx)
	r.Header = r.Header.Clone()
	r.Header.Set("Authorization", "Bearer known") // the credential ends here
	defer found.watch(r)()
	if s.Sessions && r.Header.Get("Mcp-Protocol-Version") < modern {
		s.stateful.ServeHTTP(out, r)
	} else {
		s.stateless.ServeHTTP(out, r)
	}
	return nil
}

// buffered reads the body, within its limits, so that no deadline of reading remains for the answer.
func (s *Server) buffered(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	if err := codec.CheckContentEncoding(r.Header); err != nil {
		return nil, err
	}
	data, err := codec.NewBody(w, r, s.MaxBody, s.BodyTimeout).Bytes()
	if err == nil {
		err = checkBatch(data)
	}
	if err != nil {
		return nil, err
	}
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(keepDigits(data)))
	return r, nil
}

// mostBatch is how many messages one body may have. Each needs far more memory than its bytes.
const mostBatch = 32

// checkBatch judges the number of messages and of JSON values, and what answers repeat, before the SDK reads them.
func checkBatch(data []byte) error {
	if err := codec.CheckValues(data); err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return checkRepeated(data)
	}
	batch := first[[]json.RawMessage](data)
	if len(batch) > mostBatch {
		return problem.BodyMalformed("", fmt.Sprintf("it is a batch of %d messages; send at most %d", len(batch), mostBatch))
	}
	for _, message := range batch {
		if err := checkRepeated(message); err != nil {
			return err
		}
	}
	return nil
}

// checkRepeated judges the parts of a message that an answer to it, or a report of its progress, repeats.
func checkRepeated(message []byte) error {
	envelope := first[members](message)
	meta := first[members](first[members](envelope["params"])["_meta"])
	for name, value := range map[string]json.RawMessage{
		"id": envelope["id"], "jsonrpc": envelope["jsonrpc"], "method": envelope["method"], "params._meta.progressToken": meta["progressToken"],
	} {
		if len(value) > wire.MostID {
			return problem.BodyMalformed(name, fmt.Sprintf("%s has %d bytes; send at most %d", name, len(value), wire.MostID))
		}
	}
	return nil
}

// members are those of an object, by their exact names: the SDK tells id from ID.
type members map[string]json.RawMessage

// first returns the first JSON value of a text, as the SDK reads it: whatever follows does not count. It returns the zero
// value for what is malformed, which the SDK reports.
func first[T any](text []byte) (value T) {
	if json.NewDecoder(bytes.NewReader(text)).Decode(&value) != nil {
		return *new(T)
	}
	return value
}

type scopeValue struct{}

// serverOf returns the MCP server of a request.
func serverOf(r *http.Request) *sdk.Server {
	found, ok := r.Context().Value(scopeValue{}).(*scope)
	if !ok {
		return nil
	}
	return found.server
}

// requestContext is the key of the HTTP request's context in what the SDK hands on with a message.
const requestContext = "fairlead.request"

var errNoPrincipal = errors.New("the request has no principal")

// identified tells the SDK who calls: a session of the protocol belongs to one user.
func identified(ctx context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
	p, ok := principal.From(ctx)
	if !ok {
		return nil, errNoPrincipal
	}
	return &auth.TokenInfo{
		UserID: p.Tenant + "/" + p.User, Expiration: time.Now().Add(sessionTimeout),
		Extra: map[string]any{requestContext: r.Context()},
	}, nil
}

// lent is a context with the values of another: the SDK cancels a call by its own context, and the caller is known by
// the request's.
type lent struct {
	context.Context                 //nolint:containedctx // it is a context
	values          context.Context //nolint:containedctx // as above
}

// Value implements context.Context.
func (l lent) Value(key any) any { return l.values.Value(key) }

// caller returns the context in which a message's requests to services are made.
func caller(ctx context.Context, extra *sdk.RequestExtra) context.Context {
	if extra == nil || extra.TokenInfo == nil {
		return ctx
	}
	values, ok := extra.TokenInfo.Extra[requestContext].(context.Context)
	if !ok {
		return ctx
	}
	return lent{ctx, values}
}
