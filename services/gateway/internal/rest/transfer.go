package rest

import (
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/transfer"
)

// serveTransfer serves requests whose body or answer is a file, which grpc-gateway cannot do. It reports
// whether the request is one of them.
func (a *api) serveTransfer(w http.ResponseWriter, r *http.Request) bool {
	found := transfer.Match(r.URL.Path)
	if len(found) == 0 {
		return false
	}
	if r.Method == http.MethodOptions {
		transfer.Describe(w, found)
		return true
	}
	at := slices.IndexFunc(found, func(on transfer.Route) bool { return on.Takes(r.Method) })
	if at < 0 {
		w.Header().Set("Allow", strings.Join(transfer.Allow(found), ", "))
		problem.Write(w, problem.MethodNotAllowed(r.Method, r.URL.Path, transfer.Allow(found)))
		return true
	}
	on := found[at]
	if err := codec.CheckContentEncoding(r.Header); err != nil {
		problem.Write(w, err)
		return true
	}
	r.Pattern = on.Method + " " + on.Template
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("http.route", on.Template))
	a.transfer.Serve(w, r, on)
	return true
}
