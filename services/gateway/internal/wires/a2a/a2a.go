// Package a2a serves the protocol A2A (Agent2Agent), version 1.0, to other agents: over JSON-RPC, over HTTP
// with JSON, and over gRPC.
// A context is a session, and a task is a turn of it.
//
// A fold makes a task and its updates from the session's log. What the wire is, follows from the protocol's definition
// (a2aproject/A2A, specification/a2a.proto); the types here are written for what is served of it.
package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// Config configures the protocol.
type Config struct {
	// PublicURL is where clients reach the server; empty: at the address of their requests.
	PublicURL string
	// PublicGRPC is where clients reach gRPC; empty: cards do not name it.
	PublicGRPC string
	// MaxDepth is the most agents that a message may have come through.
	MaxDepth int
}

// Server serves the protocol. It is safe for concurrent use.
type Server struct {
	wire *wire.Server
	Config
	agents sessionv1.AgentServiceClient
}

// New returns a Server.
func New(c Config, shared *wire.Server, session grpc.ClientConnInterface) *Server {
	return &Server{wire: shared, Config: c, agents: sessionv1.NewAgentServiceClient(session)}
}

// prefix begins all paths.
const prefix = "/a2a/"

// Media types of answers.
const mediaType, jsonType = "application/a2a+json", "application/json"

// version is the version of the protocol.
const version = "1.0"

// split returns the agent of a path, and the rest behind it.
func split(path string) (agent, rest string, ok bool) {
	tail, ok := strings.CutPrefix(path, prefix)
	agent, rest, _ = strings.Cut(tail, "/")
	return agent, rest, ok && agent != "" && utf8.ValidString(path)
}

// call is one request.
type call struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	agent string
	// params are the request of the protocol, as JSON.
	params json.RawMessage
	// rpc is whether it is a call of JSON-RPC, and id its id.
	rpc bool
	id  json.RawMessage
	// send takes the updates of a stream over gRPC; nil: the stream is the HTTP answer.
	send func(update) error
}

// operation does what a request asks for. It returns the answer, or nil if it has answered itself.
type operation func(c *call) (any, error)

// operations are those of the protocol, by their names in JSON-RPC.
var operations = map[string]operation{
	"SendMessage": (*call).sendMessage, "SendStreamingMessage": (*call).sendStreaming, "GetTask": (*call).get, "ListTasks": (*call).list,
	"CancelTask": (*call).cancel, "SubscribeToTask": (*call).subscribe, "GetExtendedAgentCard": (*call).extendedCard,
	"CreateTaskPushNotificationConfig": (*call).push, "GetTaskPushNotificationConfig": (*call).push, "ListTaskPushNotificationConfigs": (*call).push,
	"DeleteTaskPushNotificationConfig": (*call).push,
}

// route is a path of the binding to HTTP.
type route struct {
	template string
	path     *regexp.Regexp
	methods  map[string]string // the operations
	names    []string          // what the parts of the path are
}

func on(template string, methods map[string]string, names ...string) route {
	pattern := regexp.MustCompile(`\\\{[A-Za-z]+\\\}`).ReplaceAllString(regexp.QuoteMeta(template), `([^/:]+)`)
	return route{template, regexp.MustCompile("^" + pattern + "$"), methods, names}
}

const cardPath = ".well-known/agent-card.json"

var routes = []route{
	on("message:send", map[string]string{http.MethodPost: "SendMessage"}),
	on("message:stream", map[string]string{http.MethodPost: "SendStreamingMessage"}),
	on("tasks", map[string]string{http.MethodGet: "ListTasks"}),
	on("tasks/{id}", map[string]string{http.MethodGet: "GetTask"}, "id"),
	on("tasks/{id}:cancel", map[string]string{http.MethodPost: "CancelTask"}, "id"),
	on("tasks/{id}:subscribe", map[string]string{http.MethodPost: "SubscribeToTask", http.MethodGet: "SubscribeToTask"}, "id"),
	on("tasks/{id}/pushNotificationConfigs", map[string]string{http.MethodPost: "CreateTaskPushNotificationConfig", http.MethodGet: "ListTaskPushNotificationConfigs"}, "taskId"),
	on("tasks/{id}/pushNotificationConfigs/{config}", map[string]string{http.MethodGet: "GetTaskPushNotificationConfig", http.MethodDelete: "DeleteTaskPushNotificationConfig"}, "taskId", "id"),
	on("extendedAgentCard", map[string]string{http.MethodGet: "GetExtendedAgentCard"}),
}

// Match implements door.Door.
func (s *Server) Match(method, path string) *door.Route {
	agent, rest, ok := split(path)
	at := func(template string, methods []string, serve func(c *call) error) *door.Route {
		return door.At(method, prefix+"{agent}"+template, methods, func(w http.ResponseWriter, r *http.Request) error {
			return serve(&call{Server: s, w: w, r: r, agent: agent, rpc: rest == ""})
		})
	}
	switch {
	case !ok:
		return nil
	case rest == "":
		return at("", []string{http.MethodPost}, (*call).serveRPC)
	case rest == cardPath:
		return at("/"+cardPath, []string{http.MethodGet, http.MethodHead}, (*call).card)
	}
	for _, rt := range routes {
		if found := rt.path.FindStringSubmatch(rest); found != nil {
			return at("/"+rt.template, slices.Sorted(maps.Keys(rt.methods)), func(c *call) error { return c.serveREST(rt, found[1:]) })
		}
	}
	return nil
}

// serveRPC answers a call of JSON-RPC. Its errors are in the answer.
func (c *call) serveRPC() error {
	var in struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if err := c.wire.Decode(c.w, c.r, &in); err != nil {
		code := rpcCode(err)
		if code == rpcInvalidParams {
			code = rpcParseError
			if wire.FaultOf(err).Field != "" {
				code = rpcInvalidRequest
			}
		}
		return refuseRPC(c.w, nil, code, err)
	}
	if id := strings.TrimSpace(string(in.ID)); in.JSONRPC != "2.0" || id == "" || len(id) > wire.MostID || strings.ContainsAny(id[:1], "{[tf") {
		return refuseRPC(c.w, nil, rpcInvalidRequest, bad("jsonrpc",
			fmt.Sprintf(`has to be "2.0", beside an id, which is a text or a number of at most %d bytes`, wire.MostID)))
	}
	c.id, c.params = in.ID, in.Params
	do, ok := operations[in.Method]
	if !ok {
		return refuseRPC(c.w, c.id, rpcMethodNotFound, bad("method", problem.Excerpt(in.Method)+" is not served here; the methods are those of A2A 1.0, such as SendMessage"))
	}
	if err := c.do(do, jsonType); err != nil {
		return refuseRPC(c.w, c.id, rpcCode(err), err)
	}
	return nil
}

// serveREST answers a request of the binding to HTTP, whose path has these parts.
func (c *call) serveREST(rt route, parts []string) error {
	params, err := c.query()
	if err != nil {
		return err
	}
	if c.r.Method == http.MethodPost && c.r.ContentLength != 0 {
		if err := c.wire.Decode(c.w, c.r, &params); err != nil {
			return err
		}
		if params == nil { // it was null
			params = map[string]json.RawMessage{}
		}
	}
	for i, name := range rt.names {
		params[name], _ = json.Marshal(parts[i]) //nolint:errchkjson // a text
	}
	if c.params, err = json.Marshal(params); err != nil {
		return err
	}
	return c.do(operations[rt.methods[c.r.Method]], mediaType)
}

// numbers are the parameters of a query that are numbers, and flags those that are true or false.
var numbers, flags = []string{"pageSize", "historyLength"}, []string{"includeArtifacts"}

// query returns the parameters of the query as JSON.
func (c *call) query() (map[string]json.RawMessage, error) {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, problem.BadQuery(err)
	}
	params := map[string]json.RawMessage{}
	for name, values := range q {
		v := values[0]
		switch {
		case name == "A2A-Version":
			continue
		case slices.Contains(numbers, name):
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil {
				return nil, bad(name, "is no number: "+problem.Excerpt(v))
			}
			params[name] = json.RawMessage(strconv.FormatInt(n, 10)) // +5 and 05 are no JSON
		case slices.Contains(flags, name):
			if v != "true" && v != "false" {
				return nil, bad(name, "is neither true nor false")
			}
			params[name] = json.RawMessage(v)
		default:
			params[name], _ = json.Marshal(v) //nolint:errchkjson // a text
		}
	}
	return params, nil
}

// do answers with what an operation returns.
func (c *call) do(do operation, kind string) error {
	if err := c.checkVersion(); err != nil {
		return err
	}
	answer, err := do(c)
	if err != nil || answer == nil {
		return err
	}
	if c.rpc {
		answer = object{"jsonrpc": "2.0", "id": c.id, "result": answer}
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", kind)
	c.w.Header().Set("Cache-Control", "no-store")
	_, _ = c.w.Write(b) // the client may have gone
	return nil
}

// checkVersion refuses other versions of the protocol. A client that names none speaks 0.3.
func (c *call) checkVersion() error {
	asked := c.r.Header.Get("A2A-Version")
	if asked == "" {
		asked = c.r.URL.Query().Get("A2A-Version")
	}
	if asked == version {
		return nil
	}
	if asked == "" {
		return fail(versionUnsupported, "the request names no version, which means 0.3; this server speaks 1.0: send the header A2A-Version: 1.0")
	}
	return fail(versionUnsupported, fmt.Sprintf("this server speaks A2A %s, not %s; send the header A2A-Version: %s", version, problem.Excerpt(asked), version))
}

// decode reads the request of the protocol.
func (c *call) decode(to any) error {
	if len(c.params) == 0 || string(c.params) == "null" {
		return nil
	}
	return wire.DecodeJSON(c.params, to)
}

// within bounds the requests to services.
func (c *call) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), c.wire.Timeout)
}

// stream follows a task: from the event with a number, to its end.
func (c *call) stream(e *encoder, after int64) error {
	if c.send != nil {
		return c.feed(e, after)
	}
	e.frame, e.fault = sse, func(dst []byte, why error) []byte {
		b, _ := json.Marshal(restError(why)) //nolint:errchkjson // it is all text
		return fmt.Appendf(dst, "event: error\ndata: %s\n\n", b)
	}
	if c.rpc {
		e.frame = func(dst []byte, v any) ([]byte, error) {
			return sse(dst, object{"jsonrpc": "2.0", "id": c.id, "result": v})
		}
		e.fault = func(dst []byte, why error) []byte {
			b, _ := sse(dst, rpcError(c.id, rpcCode(why), why))
			return b
		}
	}
	f := c.wire.Follow(c.r.Context(), e.session(), after)
	defer f.Close()
	return c.wire.Send(c.w, c.r, "a2a", f, e)
}
