package rest

import (
	"context"
	"net/http"
	"net/url"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/route"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
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

// Match implements door.Door.
func (s *Server) Match(method, path string) *door.Route {
	candidates := s.table.Match(path)
	if len(candidates) == 0 || !utf8.ValidString(path) { // gRPC cannot transport the name
		return nil
	}
	found := &door.Route{Allow: route.Allow(candidates)}
	if rt := choose(candidates, method); rt != nil {
		found.Pattern, found.Open = rt.Method+" "+rt.Template, rt.Open()
		found.Serve = func(w http.ResponseWriter, r *http.Request) error { return s.answer(w, r, rt) }
	}
	return found
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
func (s *Server) answer(w http.ResponseWriter, r *http.Request, rt *route.Route) error {
	if rt.RPC == listEvents && r.Method == http.MethodGet && stream.WantsEvents(r) {
		rt = s.routes[streamEvents] // the same resource in another form
		r = rewritten(r, r.URL.Path+":stream")
	}
	r, err := s.prepare(w, r, rt)
	if err == nil {
		s.mux.ServeHTTP(w, r)
	}
	return err
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
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, rt *route.Route) (*http.Request, error) {
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
	return r, s.checkBody(w, r, rt)
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
func (s *Server) checkBody(w http.ResponseWriter, r *http.Request, rt *route.Route) error {
	if rt.Body == "" || r.ContentLength == 0 {
		b := codec.NewBody(w, r, min(int64(smallBody), s.MaxBody), s.BodyTimeout)
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
	most := min(s.MaxBody, smallBody)
	if rt.Input.Fields().ByName("content") != nil {
		most = s.MaxBody
	}
	r.Body = codec.NewBody(w, r, most, s.BodyTimeout)
	return nil
}
