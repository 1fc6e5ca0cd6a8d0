// Package managed serves the wire of Claude Managed Agents: the agents, environments, sessions and files of Anthropic's
// API, for its official clients. It keeps nothing: what our resources have no place for is in their metadata.
package managed

import (
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
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Prefix is where clients find the wire: their base URL ends before "/v1".
const Prefix = "/anthropic"

// Prefixes of ids.
const (
	agentPrefix       = "agent_"
	environmentPrefix = "env_"
	sessionPrefix     = "sesn_"
	threadPrefix      = "sthr_"
	filePrefix        = "file_"
)

// Server serves the wire. It is safe for concurrent use.
type Server struct {
	routes resource.Routes[*request]
	*base
}

// base is what all parts of the wire share.
type base struct {
	wire              *wire.Server
	agentClient       sessionv1.AgentServiceClient
	environmentClient sessionv1.EnvironmentServiceClient
}

// The parts of the wire, by resource.
type (
	agentsServer       struct{ *base }
	environmentsServer struct{ *base }
	filesServer        struct {
		*base
		blobs      sessionv1.FileServiceClient
		workspaces sessionv1.SessionFileServiceClient
	}
	sessionsServer struct {
		*base
		files *filesServer
	}
	eventsServer struct{ *base }
)

// New returns a Server of the session service behind a connection.
func New(shared *wire.Server, session grpc.ClientConnInterface) *Server {
	b := &base{
		wire: shared, agentClient: sessionv1.NewAgentServiceClient(session), environmentClient: sessionv1.NewEnvironmentServiceClient(session),
	}
	environments := &environmentsServer{b}
	files := &filesServer{b, sessionv1.NewFileServiceClient(session), sessionv1.NewSessionFileServiceClient(session)}
	return &Server{base: b, routes: table(
		&agentsServer{b}, environments, &sessionsServer{b, files}, &eventsServer{b}, files, &workServer{environments, sessionv1.NewWorkServiceClient(session)},
	)}
}

// request is one request.
type request struct {
	resource.Request
	caller principal.Principal
	queues []string // the environments to whose work queues the caller is limited
}

type route = resource.Route[*request]

func on(method, template string, serve func(*request) (any, error)) route {
	return resource.On(method, Prefix+"/v1"+template, serve)
}

// workers are the routes besides those of work queues that the keys of environments may use.
var workers = []string{
	"GET " + Prefix + "/v1/sessions/{session}", "POST " + Prefix + "/v1/sessions/{session}/events", "GET " + Prefix + "/v1/sessions/{session}/events",
	"GET " + Prefix + "/v1/sessions/{session}/events/stream",
}

func table(agents *agentsServer, environments *environmentsServer, sessions *sessionsServer, events *eventsServer, files *filesServer, work *workServer) resource.Routes[*request] {
	get, post, remove := http.MethodGet, http.MethodPost, http.MethodDelete
	return resource.Routes[*request]{
		on(post, "/agents", agents.createAgent), on(get, "/agents", agents.listAgents), on(get, "/agents/{agent}", agents.getAgent), on(post, "/agents/{agent}", agents.updateAgent),
		on(post, "/agents/{agent}/archive", agents.archiveAgent), on(get, "/agents/{agent}/versions", agents.listVersions),
		on(post, "/environments", environments.createEnvironment), on(get, "/environments", environments.listEnvironments), on(get, "/environments/{environment}", environments.getEnvironment),
		on(post, "/environments/{environment}", environments.updateEnvironment), on(remove, "/environments/{environment}", environments.deleteEnvironment),
		on(post, "/environments/{environment}/archive", environments.archiveEnvironment),
		on(post, "/sessions", sessions.createSession), on(get, "/sessions", sessions.listSessions), on(get, "/sessions/{session}", sessions.getSession), on(post, "/sessions/{session}", sessions.updateSession),
		on(remove, "/sessions/{session}", sessions.deleteSession), on(post, "/sessions/{session}/archive", sessions.archiveSession),
		on(get, "/sessions/{session}/resources", sessions.listResources),
		on(post, "/sessions/{session}/events", events.sendEvents), on(get, "/sessions/{session}/events", events.listEvents),
		on(get, "/sessions/{session}/events/stream", events.streamEvents),
		on(get, "/sessions/{session}/threads", sessions.listThreads), on(get, "/sessions/{session}/threads/{thread}", sessions.getThread),
		on(get, "/sessions/{session}/threads/{thread}/events", events.listEvents), on(get, "/sessions/{session}/threads/{thread}/stream", events.streamEvents),
		on(get, "/environments/{environment}/work/poll", work.poll), on(get, "/environments/{environment}/work/stats", work.stats), on(get, "/environments/{environment}/work", work.listWork),
		on(get, "/environments/{environment}/work/{work}", work.getWork), on(post, "/environments/{environment}/work/{work}", work.updateWork),
		on(post, "/environments/{environment}/work/{work}/ack", work.acknowledge), on(post, "/environments/{environment}/work/{work}/heartbeat", work.heartbeat),
		on(post, "/environments/{environment}/work/{work}/stop", work.stopWork),
		on(post, "/files", files.uploadFile), on(get, "/files", files.listFiles), on(get, "/files/{file}", files.getFile), on(get, "/files/{file}/content", files.fileContent), on(remove, "/files/{file}", files.deleteFile),
	}
}

// others are resources of the API that are not served.
var others = regexp.MustCompile(`^/anthropic/v1/(agents|environments|sessions|files|vaults|memory_stores|deployments|deployment_runs|skills|dreams|tunnels|user_profiles)(/.*)?$`)

// Match implements door.Door. Paths of the API that are not served are matched, too, so that their errors say so.
func (s *Server) Match(method, path string) *door.Route {
	if !utf8.ValidString(path) { // gRPC cannot transport it
		return nil
	}
	if rt := s.routes.Match(method, path, false, s.serve); rt != nil {
		return rt
	}
	if others.MatchString(path) {
		return door.At(method, Prefix+"/v1/{other}", []string{http.MethodGet, http.MethodPost, http.MethodDelete}, notServed)
	}
	return nil
}

// serve answers a request on a route.
func (s *Server) serve(on route, r resource.Request) (err error) {
	c := &request{Request: r}
	label(c.W)
	if err := c.authorize(on); err != nil {
		return err
	}
	if c.R.Method == http.MethodPost && !isUpload(c.R) {
		if err := c.Read(s.wire); err != nil {
			return err
		}
	}
	if c.R.Method != http.MethodGet && !strings.Contains(on.Template, "/work") { // a work item names its holder
		if c.Key, err = s.claim(c); err != nil {
			return err
		}
	}
	return c.Answer(on.Serve(c))
}

// label sets the header in which the clients look for the id of a request.
func label(w http.ResponseWriter) { w.Header().Set("Request-Id", w.Header().Get(headers.RequestID)) }

// notServed refuses a request for what Fairlead does not have.
func notServed(w http.ResponseWriter, r *http.Request) error {
	label(w)
	return apierr.New(codes.NotFound, problem.Domain, problem.ReasonPathNotFound, strings.TrimPrefix(r.URL.Path, Prefix)+
		" is not served: Fairlead serves agents, environments, sessions with events and threads, and files of this API. It has no vaults, memory stores, deployments or skills under it")
}

// names are our fields that have another name on the wire.
var names = map[string]string{
	"spec.prompt": "system", "spec.model": "model", "spec.tools": "tools", "spec.mcp_servers": "mcp_servers", "spec.description": "description",
	"spec.permissions": "tools", "spec.network": "config.networking", "spec.metadata_json": "metadata", "session.metadata_json": "metadata", "session.title": "title",
	"session.budget": "budget", "session.environment": "environment_id", "session.agent": "agent",
}

// Refuse implements door.Door.
func (s *Server) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	fault := wire.FaultOf(err)
	f := modelapi.Failure{Status: fault.Status, Message: fault.Message, After: fault.After}
	if field := fault.Field; field != "" && !strings.Contains(f.Message, field) {
		if ours, ok := names[field]; ok {
			field = ours
		}
		f.Message = field + ": " + f.Message
		if bad, ok := apierr.Detail[*errdetails.BadRequest](err); ok && !strings.Contains(f.Message, bad.GetFieldViolations()[0].GetDescription()) {
			f.Message += " (" + bad.GetFieldViolations()[0].GetDescription() + ")"
		}
	}
	if f.Status == http.StatusConflict {
		f.Retry = modelapi.Never
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	modelapi.Anthropic.Write(w, f, w.Header().Get(headers.RequestID))
}
