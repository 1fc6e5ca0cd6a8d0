// Package openaiagents serves the wire of OpenAI's Agents API: agents, sessions with their events, turns, items,
// artifacts and subagents, for the official OpenAI clients. It keeps nothing: what our resources have no place for is in their
// metadata.
package openaiagents

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
)

// Prefix is where clients find the wire: their base URL. The model proxy serves other paths below it.
const Prefix = "/openai/v1"

// Server serves the wire. It is safe for concurrent use.
type Server struct {
	routes resource.Routes[*request]
	*base
}

// base is what all parts of the wire share.
type base struct {
	wire         *wire.Server
	agentClient  sessionv1.AgentServiceClient
	environments sessionv1.EnvironmentServiceClient
	files        sessionv1.SessionFileServiceClient
}

// The parts of the wire, by resource.
type (
	agentsServer    struct{ *base }
	sessionsServer  struct{ *base }
	eventsServer    struct{ *base }
	artifactsServer struct{ *base }
)

// New returns a Server of the session service behind a connection.
func New(shared *wire.Server, session grpc.ClientConnInterface) *Server {
	b := &base{
		wire: shared, agentClient: sessionv1.NewAgentServiceClient(session), environments: sessionv1.NewEnvironmentServiceClient(session),
		files: sessionv1.NewSessionFileServiceClient(session),
	}
	return &Server{base: b, routes: table(&agentsServer{b}, &sessionsServer{b}, &eventsServer{b}, &artifactsServer{b}, &subagentsServer{&eventsServer{b}})}
}

// request is one request.
type request struct{ resource.Request }

type (
	handler = func(c *request) (any, error)
	route   = resource.Route[*request]
)

func on(method, template string, serve handler) route {
	return resource.On(method, Prefix+template, serve)
}

func table(agents *agentsServer, sessions *sessionsServer, events *eventsServer, artifacts *artifactsServer, subagents *subagentsServer) resource.Routes[*request] {
	get, post, remove := http.MethodGet, http.MethodPost, http.MethodDelete
	const session = "/agents/sessions/{session}"
	const subagent = session + "/subagents/{subagent}"
	return resource.Routes[*request]{
		on(post, "/agents/sessions", sessions.createSession), on(get, "/agents/sessions", sessions.listSessions),
		on(get, session, sessions.getSession), on(post, session, sessions.updateSession), on(remove, session, sessions.deleteSession),
		on(post, session+"/events", events.sendEvents), on(get, session+"/events", events.streamEvents),
		on(get, session+"/items", events.listItems),
		on(get, session+"/turns", events.listTurns), on(get, session+"/turns/{turn}", events.getTurn), on(get, session+"/turns/{turn}/items", events.listTurnItems),
		on(get, session+"/artifacts", artifacts.listArtifacts), on(get, session+"/artifacts/{artifact}", artifacts.getArtifact),
		on(remove, session+"/artifacts/{artifact}", artifacts.deleteArtifact), on(get, session+"/artifacts/{artifact}/content", artifacts.artifactContent),
		on(get, session+"/subagents", subagents.listSubagents), on(get, subagent, subagents.getSubagent), on(get, subagent+"/items", subagents.inChild(events.listItems)),
		on(get, subagent+"/turns", subagents.turnOf(events.listTurns)), on(get, subagent+"/turns/{turn}", subagents.turnOf(events.getTurn)),
		on(get, subagent+"/turns/{turn}/items", subagents.inChild(events.listTurnItems)),
		on(post, "/agents", agents.createAgent), on(get, "/agents", agents.listAgents),
		on(get, "/agents/{agent}", agents.getAgent), on(post, "/agents/{agent}", agents.updateAgent), on(remove, "/agents/{agent}", agents.deleteAgent),
	}
}

// all are the paths of the API; never are those below them that look like others and are not served.
var (
	all   = regexp.MustCompile(`^/openai/v1/(agents|vaults)(/.*)?$`)
	never = regexp.MustCompile(`^/openai/v1/(vaults|agents/(environments|automations))(/.*)?$`)
)

// Match implements door.Door. Paths of the API that are not served are matched, too, so that their errors say so. The
// routes of a path have one template.
func (s *Server) Match(method, path string) *door.Route {
	if !all.MatchString(path) || !utf8.ValidString(path) { // gRPC cannot transport it
		return nil
	}
	if !never.MatchString(path) {
		if rt := s.routes.Match(method, path, true, s.serve); rt != nil {
			return rt
		}
	}
	return door.At(method, Prefix+"/{other}", []string{http.MethodGet, http.MethodPost, http.MethodDelete}, notServed)
}

// serve answers a request on a route.
func (s *Server) serve(on route, r resource.Request) (err error) {
	c := &request{r}
	if c.R.Method == http.MethodPost {
		if err := c.Read(s.wire); err != nil {
			return err
		}
	}
	if c.R.Method != http.MethodGet {
		if c.Key, err = s.wire.Claim(c.R, "openai-agents", c.Body); err != nil {
			return err
		}
	}
	return c.Answer(on.Serve(c))
}

// notServed refuses a request for what Fairlead does not have.
func notServed(_ http.ResponseWriter, r *http.Request) error {
	return apierr.New(codes.NotFound, problem.Domain, problem.ReasonPathNotFound, strings.TrimPrefix(r.URL.Path, Prefix)+
		" is not served: Fairlead serves agents and sessions of this API, with events, turns, items, artifacts and subagents. "+
		"It has no automations, vaults, environments or traces under it; schedules and environments of its own are at /v1")
}

// names are our fields that have another name on the wire.
var names = map[string]string{
	"spec.prompt": "instructions", "spec.model": "model", "spec.tools": "tools", "spec.mcp_servers": "tools", "spec.output_schema_json": "text.format.schema",
	"spec.metadata_json": "metadata", "session.metadata_json": "metadata", "session.budget": "spend_control", "session.environment": "environment",
	"session.agent": "agent_id", "client_tools": "agent.tools", "spec.network": "environment.network",
}

// Refuse implements door.Door.
func (s *Server) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	fault := wire.FaultOf(err)
	f := modelapi.Failure{Status: fault.Status, Message: fault.Message, After: fault.After, Param: fault.Field}
	if ours, ok := names[f.Param]; ok {
		f.Param = ours
	}
	if bad, ok := apierr.Detail[*errdetails.BadRequest](err); ok && len(bad.GetFieldViolations()) > 0 {
		if why := bad.GetFieldViolations()[0].GetDescription(); !strings.Contains(f.Message, why) {
			f.Message += " (" + f.Param + ": " + why + ")"
		}
	}
	if fault.Reason == ReasonUnknownCall {
		f.Code, f.Param = "invalid_request_error", ""
	}
	if f.Status == http.StatusConflict {
		f.Retry = modelapi.Never
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Cache-Control", "no-store")
	modelapi.OpenAI.Write(w, f, w.Header().Get(headers.RequestID))
}

// ReasonUnknownCall is the reason of a result for a call that waits for none. Clients ask again for a while.
const ReasonUnknownCall = "UNKNOWN_CALL"

// within bounds a call of a service.
func (s *base) within(c *request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.R.Context(), s.wire.Timeout)
}
