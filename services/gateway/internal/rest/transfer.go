package rest

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/transfer"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// serveTransfer serves requests whose body or answer is a file, which grpc-gateway cannot do. It reports
// whether the request is one of them.
func (a *api) serveTransfer(w http.ResponseWriter, r *http.Request) bool {
	method, template := transfer.Match(r.URL.Path)
	if template == "" {
		return false
	}
	allowed := []string{http.MethodOptions, method}
	switch r.Method {
	case method:
		if err := codec.CheckContentEncoding(r.Header); err != nil {
			problem.Write(w, err)
			return true
		}
		r.Pattern = method + " " + template
		trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("http.route", template))
		a.transfer.Serve(w, r.WithContext(principal.With(r.Context(), principal.Default())))
	case http.MethodOptions:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		problem.Write(w, problem.MethodNotAllowed(r.Method, r.URL.Path, allowed))
	}
	return true
}
