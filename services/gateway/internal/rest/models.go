package rest

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/gateway/internal/modelproxy"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
)

// serveModels serves the model APIs. It reports whether the request is of them.
func (a *api) serveModels(w http.ResponseWriter, r *http.Request) bool {
	route, ok := modelapi.Match(r.URL.Path)
	if !ok {
		return false
	}
	if r.Method == http.MethodOptions && route.Operation != modelapi.Unknown {
		w.Header().Set("Allow", route.Method+", "+http.MethodOptions)
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	if route.Operation != modelapi.Unknown { // keep the number of span names small
		r.Pattern = route.Method + " " + route.Pattern
		trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("http.route", route.Pattern))
	}
	a.models.Serve(w, r, route)
	return true
}

// refuseModel answers a request of the model APIs with an error. It reports whether the request is of them.
func refuseModel(w http.ResponseWriter, r *http.Request, err error) bool {
	route, ok := modelapi.Match(r.URL.Path)
	if ok {
		modelproxy.Refuse(w, route, err)
	}
	return ok
}
