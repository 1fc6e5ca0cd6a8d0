package rest

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wire"
)

// wireOf returns the foreign protocol that a path is of, with the path's route and methods; nil if it is of none.
func (a *api) wireOf(path string) (h wire.Handler, route string, methods []string) {
	for _, h := range a.wires {
		if route, methods := h.Match(path); route != "" {
			return h, route, methods
		}
	}
	return nil, "", nil
}

// serveWire serves the foreign protocols. It reports whether the request is of one.
func (a *api) serveWire(w http.ResponseWriter, r *http.Request) bool {
	h, route, methods := a.wireOf(r.URL.Path)
	if h == nil {
		return false
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", strings.Join(append(slices.Clone(methods), http.MethodOptions), ", "))
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	if !slices.Contains(methods, r.Method) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		h.Refuse(w, r, problem.MethodNotAllowed(r.Method, r.URL.Path, methods))
		return true
	}
	for name, values := range r.URL.Query() {
		if !utf8.ValidString(name + strings.Join(values, "")) { // gRPC cannot transport it
			h.Refuse(w, r, problem.BadParameter(strings.ToValidUTF8(name, "\ufffd"), "is not UTF-8"))
			return true
		}
	}
	r.Pattern = r.Method + " " + route
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("http.route", route))
	h.Serve(w, r)
	return true
}
