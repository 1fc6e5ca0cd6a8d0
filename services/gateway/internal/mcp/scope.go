package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

const (
	// sessionKey is the key of the session that a user has for an agent here.
	sessionKey = "mcp"
	// fresh is how long a list of tools is used; listening is how often it is renewed for clients that wait for
	// changes.
	fresh, listening = 2 * time.Second, 10 * time.Second
	// pageSize is the size of a page of tools.
	pageSize = 100
	// clientCache is how long clients may keep a list of tools.
	clientCache = 5 * time.Second
)

// scopeKey is what a scope is for.
type scopeKey struct{ tenant, user, credential, path string }

// scope is one user's view of one session: an MCP server with what the session has.
type scope struct {
	s      *Server
	server *sdk.Server
	used   time.Time // guarded by the Server

	mu      sync.Mutex
	session string // as sessions/{session}; "" before the first use
	renewed time.Time
	tools   map[string][sha256.Size]byte // of the server, by name
	parts   map[string]part              // what it has besides, by kind and name

	subscriptions subscriptions
}

// scope returns the scope of a request, with a fresh list of tools.
func (s *Server) scope(r *http.Request) (*scope, error) {
	p, ok := principal.From(r.Context())
	if !ok {
		return nil, errNoPrincipal
	}
	key := scopeKey{p.Tenant, p.User, p.Credential, r.URL.Path}
	found := s.keep(key)
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	return found, found.renew(ctx, r.URL.Path)
}

// keep returns a scope, which is made if there is none.
func (s *Server) keep(key scopeKey) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.scopes[key]
	if !ok {
		if len(s.scopes) >= maxScopes {
			s.forget()
		}
		found = s.newScope()
		s.scopes[key] = found
	}
	found.used = time.Now()
	return found
}

// forget makes room: it ends the scope that has not been used for the longest time. Its clients begin anew.
func (s *Server) forget() {
	var oldest scopeKey
	for key, sc := range s.scopes {
		if o := s.scopes[oldest]; o == nil || sc.used.Before(o.used) {
			oldest = key
		}
	}
	s.scopes[oldest].close()
	delete(s.scopes, oldest)
}

// close ends the sessions of the protocol that the scope has, and what they watch.
func (sc *scope) close() {
	for _, session := range slices.Collect(sc.server.Sessions()) {
		_ = session.Close() // it may have ended already
	}
	sc.subscriptions.end()
}

func (s *Server) newScope() *scope {
	sc := &scope{s: s, tools: map[string][sha256.Size]byte{}, parts: map[string]part{}}
	sc.server = sdk.NewServer(&sdk.Implementation{Name: "fairlead", Title: "Fairlead", Version: s.Version}, &sdk.ServerOptions{
		Instructions: "The tools work in one workspace, one call after the other. A call may wait until a person allows it.",
		Logger:       s.log, PageSize: pageSize,
		Capabilities:      &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}, Logging: &sdk.LoggingCapabilities{}}, //nolint:staticcheck // older revisions have it
		CompletionHandler: sc.complete, SubscribeHandler: sc.subscribe, UnsubscribeHandler: sc.unsubscribe,
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
			c.TTLMs, c.CacheScope = int(clientCache.Milliseconds()), "private"
		},
	})
	sc.server.AddReceivingMiddleware(sc.onlyWhatIsThere)
	return sc
}

// renew reads the session's tools if they are not fresh.
func (sc *scope) renew(ctx context.Context, path string) error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if time.Since(sc.renewed) < fresh {
		return nil
	}
	own := paths.FindStringSubmatch(path)[2] == ""
	for first := true; ; first = false {
		if err := sc.find(ctx, path); err != nil {
			return err
		}
		listed, err := sc.list(ctx)
		if own && first && apierr.Code(err) == codes.NotFound {
			sc.session = "" // it was deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		sc.replace(listed)
		if err := sc.replaceContents(ctx, listed); err != nil {
			return err
		}
		sc.renewed = time.Now()
		return nil
	}
}

// find finds the session of a path, and makes the one that a user has for an agent.
func (sc *scope) find(ctx context.Context, path string) error {
	m := paths.FindStringSubmatch(path)
	if m[2] != "" {
		sc.session = "sessions/" + m[2]
	}
	if sc.session != "" {
		return nil
	}
	agent, key := m[1], sessionKey
	if agent != "" {
		key += "/" + agent
	}
	for range 2 {
		found, err := sc.s.sessions.ListSessions(ctx, &sessionv1.ListSessionsRequest{Key: key, PageSize: 1})
		if err != nil {
			return err
		}
		if len(found.GetSessions()) > 0 {
			sc.session = found.GetSessions()[0].GetName()
			return nil
		}
		made, err := sc.s.sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{
			Session: &sessionv1.Session{Agent: agent, Key: key, Title: "MCP"},
		})
		if apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_KEY_TAKEN) {
			continue // another request has made it
		}
		sc.session = made.GetSession().GetName()
		return err
	}
	return problem.ServiceTimeout(sc.s.Timeout)
}

// list reads the session's tools.
func (sc *scope) list(ctx context.Context) (all []*toolsv1.Tool, err error) {
	for token := ""; ; {
		page, err := sc.s.tools.ListSessionTools(ctx, &sessionv1.ListSessionToolsRequest{Parent: sc.session, PageSize: 1000, PageToken: token})
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetTools()...)
		if token = page.GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}

// replace makes the tools those of the server. Clients are told of changes.
func (sc *scope) replace(listed []*toolsv1.Tool) {
	var gone []string
	for name := range sc.tools {
		if !slices.ContainsFunc(listed, func(t *toolsv1.Tool) bool { return toolName(t) == name }) {
			gone = append(gone, name)
			delete(sc.tools, name)
		}
	}
	if len(gone) > 0 {
		sc.server.RemoveTools(gone...)
	}
	for _, t := range listed {
		tool := toolOf(t)
		b, err := json.Marshal(tool)
		if err != nil {
			sc.s.log.Warn("a tool is not served over MCP: it does not marshal", "session", sc.session, "tool", tool.Name, "error", err)
			continue
		}
		sum := sha256.Sum256(b)
		if sc.tools[tool.Name] == sum {
			continue
		}
		if err := sc.add(tool); err != nil {
			sc.s.log.Warn("a tool is not served over MCP", "session", sc.session, "tool", tool.Name, "error", err)
			continue
		}
		sc.tools[tool.Name] = sum
	}
}

// add adds a tool. The SDK panics about one that it cannot serve.
func (sc *scope) add(t *sdk.Tool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	sc.server.AddTool(t, sc.call)
	return nil
}

func toolName(t *toolsv1.Tool) string { return strings.TrimPrefix(t.GetName(), "tools/") }

// toolOf returns a tool in the form of the protocol.
func toolOf(t *toolsv1.Tool) *sdk.Tool {
	tool := &sdk.Tool{
		Name: toolName(t), Description: t.GetDescription(), InputSchema: inputSchema(t.GetInputSchemaJson()),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.GetReadOnly(), IdempotentHint: t.GetIdempotent()},
	}
	if s := t.GetOutputSchemaJson(); s != "" {
		tool.OutputSchema = json.RawMessage(s)
	}
	return tool
}

// inputSchema returns the schema of a tool's arguments, which the protocol wants to be of an object.
func inputSchema(text string) json.RawMessage {
	var s map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &s) != nil || s == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	if _, ok := s["type"]; !ok {
		s["type"] = json.RawMessage(`"object"`)
		if b, err := json.Marshal(s); err == nil {
			return b
		}
	}
	return json.RawMessage(text)
}

// watch renews the tools while a client waits for changes. The caller calls the result when it has answered.
func (sc *scope) watch(r *http.Request) (stop func()) {
	if r.Method != http.MethodGet && r.Header.Get("Mcp-Method") != "subscriptions/listen" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(listening)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			once, stop := context.WithTimeout(ctx, sc.s.Timeout)
			if err := sc.renew(once, r.URL.Path); err != nil && ctx.Err() == nil {
				sc.s.log.WarnContext(ctx, "cannot renew the tools of an MCP client that listens", "session", sc.session, "error", err)
			}
			stop()
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}
