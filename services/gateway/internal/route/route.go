// Package route has the table of requests: method, path and RPC. It reads the table from the HTTP mapping in
// the proto, from which grpc-gateway's code is generated, too, so that both agree.
package route

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/access"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// Route is one method on one path.
type Route struct {
	// Method is the HTTP method.
	Method string
	// Template is the path for people and for traces, such as /v1/sessions/{session}/turns.
	Template string
	// RPC is the method that answers, such as
	// fairlead.session.v1.SessionService.CreateTurn.
	RPC protoreflect.FullName
	// Input is the request message.
	Input protoreflect.MessageDescriptor
	// Body is the content of the HTTP body: "" for none, the field of that name, or "*" for the whole
	// message.
	Body string
	// Query has the fields that may be query parameters, under both of their names.
	Query map[string]protoreflect.FieldDescriptor

	pattern *regexp.Regexp
	stream  bool
}

// Mutation reports whether the request takes an idempotency key.
func (r *Route) Mutation() bool { return r.Input.Fields().ByName("request_id") != nil }

// Content returns the message of the body: a field of the input, or all of it.
func (r *Route) Content() protoreflect.MessageDescriptor {
	if f := r.Input.Fields().ByName(protoreflect.Name(r.Body)); f != nil && f.Message() != nil {
		return f.Message()
	}
	return r.Input
}

// Stream reports whether the RPC sends or takes a stream.
func (r *Route) Stream() bool { return r.stream }

// Table has all routes. It does not change after New.
type Table struct{ routes []*Route }

// packages are the packages of the protos that have public services.
var packages = []protoreflect.FullName{
	sessionv1.File_fairlead_session_v1_session_service_proto.Package(),
	toolsv1.File_fairlead_tools_v1_tool_service_proto.Package(),
}

// Services returns the public services: those with an RPC that a client may call.
func Services() (all []protoreflect.ServiceDescriptor) {
	for _, p := range packages {
		protoregistry.GlobalFiles.RangeFilesByPackage(p, func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				if s := f.Services().Get(i); public(s) {
					all = append(all, s)
				}
			}
			return true
		})
	}
	slices.SortFunc(all, func(a, b protoreflect.ServiceDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return all
}

func public(s protoreflect.ServiceDescriptor) bool {
	for i := range s.Methods().Len() {
		rule, err := access.Of("/" + string(s.FullName()) + "/" + string(s.Methods().Get(i).Name()))
		if err == nil && rule.Role < principal.RoleService {
			return true
		}
	}
	return false
}

// New reads the HTTP mapping of the public services.
func New() (*Table, error) {
	t := &Table{}
	for _, s := range Services() {
		for i := range s.Methods().Len() {
			r, err := newRoute(s.Methods().Get(i))
			if err != nil {
				return nil, err
			}
			if r != nil {
				t.routes = append(t.routes, r)
			}
		}
	}
	return t, nil
}

// Routes returns the table's routes by service, and then in the order of the proto.
func (t *Table) Routes() []*Route { return slices.Clone(t.routes) }

// Match returns the routes at a path, one for each method. A path with a verb (`:interrupt`) never matches a
// route without one. A word wins over a variable: /v1/users/me is not a user.
func (t *Table) Match(path string) []*Route {
	var found []*Route
	for _, r := range t.routes {
		if !r.pattern.MatchString(path) {
			continue
		}
		i := slices.IndexFunc(found, func(f *Route) bool { return f.Method == r.Method })
		switch {
		case i < 0:
			found = append(found, r)
		case r.variables() < found[i].variables():
			found[i] = r
		}
	}
	return found
}

// Open reports whether the RPC needs no credential.
func (r *Route) Open() bool {
	return access.Open("/" + string(r.RPC.Parent()) + "/" + string(r.RPC.Name()))
}

// Takes reports whether a method is the route's. HEAD is GET without the body, which the server drops.
func (r *Route) Takes(method string) bool {
	return r.Method == method || method == http.MethodHead && r.Method == http.MethodGet && !r.Stream()
}

func (r *Route) variables() int { return strings.Count(r.Template, "{") }

// Allow returns the methods of routes in the form of the header Allow. It adds HEAD to GET, except for
// streams.
func Allow(routes []*Route) []string {
	methods := []string{http.MethodOptions}
	for _, r := range routes {
		methods = append(methods, r.Method)
		if r.Method == http.MethodGet && !r.Stream() {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}
