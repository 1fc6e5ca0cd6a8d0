package rest

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/grpcweb"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/mcp"
	"github.com/fairlead/fairlead/services/gateway/internal/modelproxy"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/route"
	"github.com/fairlead/fairlead/services/gateway/internal/socket"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/transfer"
	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

type routeKey struct{}

// routeOf returns the route of a request.
func routeOf(ctx context.Context) *route.Route {
	r, ok := ctx.Value(routeKey{}).(*route.Route)
	if !ok {
		return &route.Route{}
	}
	return r
}

// serve finds the route, checks the form of the request, and lets grpc-gateway or a stream answer.
func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// The server reads the rest of a refused body, and must not wait for it for ever. Handlers that read
		// the whole body set a new deadline; for the next request the server does.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(a.cfg.BodyTimeout))
	}
	outer := r
	r, held := idle.Begin(r.WithContext(rpc.WithClient(r.Context(), r.RemoteAddr)))
	defer held.Return()
	defer func() { outer.Pattern = r.Pattern }() // the outer middleware names the span after it
	if err := a.rate.Allow(limit.Of(r)); err != nil {
		a.refuse(w, r, err)
		return
	}
	if r.URL.Path == specificationPath {
		serveSpecification(w, r)
		return
	}
	if a.mcp.ServeMetadata(w, r) {
		return
	}
	if _, ok := modelapi.Match(r.URL.Path); ok {
		modelproxy.Identify(r)
	}
	socket.Identify(r)
	if r.Method != http.MethodOptions && !a.open(r) {
		ctx, stop, err := a.auth.HTTP(r, a.mcp.Resource(r.URL.Path))
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		defer idle.Until(r.Context(), stop)()
		r = r.WithContext(ctx) //nolint:contextcheck // it is made of the request's
	}
	if grpcweb.Is(r) {
		a.serveWeb(w, r)
		return
	}
	if a.serveTransfer(w, r) || a.serveMCP(w, r) || a.serveWire(w, r) || a.serveModels(w, r) {
		return
	}
	candidates := a.table.Match(r.URL.Path)
	if len(candidates) == 0 || !utf8.ValidString(r.URL.Path) { // gRPC cannot transport the name
		problem.Write(w, a.notFound(r.URL.Path))
		return
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", strings.Join(route.Allow(candidates), ", "))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	rt := choose(candidates, r.Method)
	if rt == nil {
		allowed := route.Allow(candidates)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		problem.Write(w, problem.MethodNotAllowed(r.Method, r.URL.Path, allowed))
		return
	}
	a.answer(w, r, rt)
}

// open reports whether a request needs no credential, because it has a secret of its own.
func (a *api) open(r *http.Request) bool {
	if grpcweb.Is(r) {
		return access.Open(r.URL.Path)
	}
	for _, on := range transfer.Match(r.URL.Path) {
		if on.Takes(r.Method) {
			return on.Open
		}
	}
	return a.table.Open(r.Method, r.URL.Path)
}

// refuse answers a request with an error before its form is known.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if grpcweb.Is(r) {
		a.web.Refuse(w, r, err)
		return
	}
	if h, _, _ := a.wireOf(r.URL.Path); h != nil {
		h.Refuse(w, r, err)
		return
	}
	if refuseModel(w, r, err) {
		return
	}
	a.mcp.Challenge(w, r)
	problem.Write(w, err)
}

// serveMCP serves the Model Context Protocol. It reports whether the request is of it.
func (a *api) serveMCP(w http.ResponseWriter, r *http.Request) bool {
	if !mcp.Match(r.URL.Path) {
		return false
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", strings.Join(mcp.Methods, ", "))
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	r.Pattern = mcp.Pattern(r.URL.Path)
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("http.route", r.Pattern))
	a.mcp.Serve(w, r)
	return true
}

// serveWeb serves a call of gRPC-Web.
func (a *api) serveWeb(w http.ResponseWriter, r *http.Request) {
	if a.web.Methods.Find(r.URL.Path) != nil { // keep the number of span names small
		r.Pattern = "gRPC-Web " + r.URL.Path
	}
	a.web.Serve(w, r)
}

// methods returns the methods that a path takes; none for an unknown path.
func (a *api) methods(path string) []string {
	if path == specificationPath {
		return []string{http.MethodGet, http.MethodHead}
	}
	if files := transfer.Match(path); len(files) > 0 {
		return transfer.Allow(files)
	}
	if mcp.Match(path) {
		return mcp.Methods
	}
	if route, ok := modelapi.Match(path); ok && route.Operation != modelapi.Unknown {
		return []string{route.Method}
	}
	if h, _, methods := a.wireOf(path); h != nil {
		return methods
	}
	if a.web.Methods.Find(path) != nil {
		return []string{http.MethodPost}
	}
	if candidates := a.table.Match(path); len(candidates) > 0 {
		return route.Allow(candidates)
	}
	return nil
}

// notFound returns the error for a path without a route.
func (a *api) notFound(path string) error {
	bare := strings.TrimRight(path, "/")
	if bare != path && (len(a.table.Match(bare)) > 0 || len(transfer.Match(bare)) > 0 || bare == specificationPath) {
		return problem.SlashAtTheEnd(path)
	}
	return problem.PathNotFound(path)
}

// choose returns the route for a method, or nil.
func choose(candidates []*route.Route, method string) *route.Route {
	for _, rt := range candidates {
		if rt.Takes(method) {
			return rt
		}
	}
	return nil
}

// answer serves a request on its route.
func (a *api) answer(w http.ResponseWriter, r *http.Request, rt *route.Route) {
	name(r, rt)
	if rt.RPC == listEvents && r.Method == http.MethodGet && stream.WantsEvents(r) {
		rt = a.routes[streamEvents] // the same resource in another form
		r = rewritten(r, r.URL.Path+":stream")
	}
	r, err := a.prepare(w, r, rt)
	if err != nil {
		problem.Write(w, err)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// rewritten returns the request with another path.
func rewritten(r *http.Request, path string) *http.Request {
	r = r.WithContext(r.Context())
	u := *r.URL
	u.Path, u.RawPath = path, ""
	r.URL = &u
	return r
}

// prepare checks the form of a request and stores in its context what later handlers need.
func (a *api) prepare(w http.ResponseWriter, r *http.Request, rt *route.Route) (*http.Request, error) {
	if err := checkQuery(r.URL, rt); err != nil {
		return nil, err
	}
	ctx := context.WithValue(r.Context(), routeKey{}, rt)
	ctx, err := withKey(ctx, r.Header, rt)
	if err != nil {
		return nil, err
	}
	r = r.WithContext(ctx)
	if r.Method == http.MethodHead {
		r.Method = http.MethodGet
	}
	// grpc-gateway passes on the first as instructed, and reads a deadline from the second; clients must not
	// control either.
	r.Header = r.Header.Clone()
	r.Header.Del("Authorization")
	r.Header.Del("Grpc-Timeout")
	return r, a.checkBody(w, r, rt)
}

func checkQuery(u *url.URL, rt *route.Route) error {
	fields := rt.Query
	if rt.RPC == runTurn || rt.RPC == callTool { // like every stream it may have a resume point in its query, and also in its body
		fields = map[string]protoreflect.FieldDescriptor{}
		f := rt.Input.Fields().ByName("after_seq")
		fields["after_seq"], fields[f.JSONName()] = f, f
	}
	if rt.RPC == finishLogin { // an authorization server may add parameters, which its clients ignore (RFC 6749, 4.1.2)
		u.RawQuery = known(u.Query(), fields)
	}
	return codec.CheckQuery(u.RawQuery, fields)
}

// known returns the part of a query that has fields.
func known(q url.Values, fields map[string]protoreflect.FieldDescriptor) string {
	for name := range q {
		if fields[name] == nil {
			q.Del(name)
		}
	}
	return q.Encode()
}

// smallBody bounds a body without content, in bytes.
const smallBody = 1 << 20

// checkBody limits the body, and checks that its type is JSON.
func (a *api) checkBody(w http.ResponseWriter, r *http.Request, rt *route.Route) error {
	if rt.Body == "" || r.ContentLength == 0 {
		b := codec.NewBody(w, r, min(int64(smallBody), a.cfg.MaxBody), a.cfg.BodyTimeout)
		r.Body = b
		return b.Discard()
	}
	if err := codec.CheckContentEncoding(r.Header); err != nil {
		return err
	}
	types := []string{codec.ContentType}
	if rt.RPC == converse {
		types = []string{codec.NDJSON, codec.ContentType}
	}
	if err := codec.CheckContentType(r.Header, types...); err != nil {
		return err
	}
	if rt.Stream() {
		return nil // streams read their bodies themselves
	}
	most := min(a.cfg.MaxBody, smallBody)
	if rt.Input.Fields().ByName("content") != nil {
		most = a.cfg.MaxBody
	}
	r.Body = codec.NewBody(w, r, most, a.cfg.BodyTimeout)
	return nil
}

// name names the request's span and metrics after its route. The outer middleware reads the pattern at the
// end.
func name(r *http.Request, rt *route.Route) {
	r.Pattern = rt.Method + " " + rt.Template
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("http.route", rt.Template))
}
