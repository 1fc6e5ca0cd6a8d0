// Package modelproxy answers requests of the model APIs of Anthropic and OpenAI with any configured model.
//
// Where the model's provider serves the same wire, a request is passed on: only the model's name, the credential and
// the headers of the connection differ, and the answer's bytes are those of the provider. Otherwise the request is
// translated for the model, and its answer back. Every call is reserved in the budgets of who pays, and settled as
// what it has used. The proxy never repeats a call: clients do, and are told when.
package modelproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/budget"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/splice"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/telemetry"
)

const (
	// maxBody bounds a request. The APIs themselves take 32 MB.
	maxBody = 32 << 20
	// maxCall bounds a call in time.
	maxCall = time.Hour
	// pingEvery is how often a client hears something while the target is silent.
	pingEvery = 10 * time.Second
	// wholeIdle is how long a target may take for an answer that is not streamed.
	wholeIdle = 10 * time.Minute
)

// Config has the dependencies of a proxy.
type Config struct {
	Models  *catalog.Catalog
	Names   Names
	Ledger  store.Ledger
	Budgets budget.Config // the operator's
	Metrics *telemetry.Metrics
	Tracer  trace.Tracer
	// Idle is how long a target may be silent while it streams; 0: no limit.
	Idle time.Duration
	Log  *slog.Logger
}

// Names find models, with the names that the caller's tenant gives them.
type Names struct {
	// Find finds a model by a name that agents use, too. The error is a store.ErrNotFound or a *catalog.Fault for a
	// tenant's own name that leads to no model.
	Find func(ctx context.Context, name string) (catalog.Entry, error)
	// Own returns the tenant's own entries, by name.
	Own func(ctx context.Context) ([]catalog.Entry, error)
}

// Payer is who pays for calls.
type Payer struct {
	// Parties are the owners of the budgets; an empty name has none.
	budget.Parties
	// Used, if not nil, is told what a call has used as soon as the answer has ended, with the cost. It is not
	// called for a call whose use is not known.
	Used func(model string, u *sessionv1.Usage)
}

// Proxy answers requests. It is safe for concurrent use.
type Proxy struct {
	Config
	client *http.Client
}

// New returns a proxy.
func New(c Config) *Proxy { return &Proxy{Config: c, client: newClient()} }

// Close closes the connections to providers. No request is being served any more.
func (p *Proxy) Close() { p.client.CloseIdleConnections() }

// Handler answers requests that payer pays for. Their callers are authenticated already. It takes the paths of
// modelapi, and those of Anthropic's API without its prefix. Like net/http, it panics with http.ErrAbortHandler to cut
// off an answer that cannot be completed.
func (p *Proxy) Handler(payer Payer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := modelapi.Match(r.URL.Path)
		if !ok {
			route, _ = modelapi.Match("/anthropic" + r.URL.Path)
		}
		ctx, cancel := context.WithTimeout(r.Context(), maxCall)
		defer cancel()
		x := &exchange{Proxy: p, w: w, r: r.WithContext(ctx), route: route, payer: payer, id: r.Header.Get("X-Request-Id")}
		if x.id == "" {
			x.id = id.New()
		}
		if f := x.answer(); f != nil { //nolint:contextcheck // the exchange has the request's context
			route.Write(w, *f, x.id)
		}
	})
}

// exchange is one request and its answer.
type exchange struct {
	*Proxy
	w     http.ResponseWriter
	r     *http.Request
	route modelapi.Route
	payer Payer
	id    string // of the request
}

// answer answers the request, or returns why it did not begin to.
func (x *exchange) answer() *modelapi.Failure {
	if x.route.Operation == modelapi.Unknown {
		return refused(http.StatusNotFound, "this server has no %s %s; docs/model-proxy.md lists what it has", x.r.Method, x.r.URL.Path)
	}
	if x.r.Method != x.route.Method {
		return refused(http.StatusMethodNotAllowed, "%s takes %s, not %s", x.r.URL.Path, x.route.Method, x.r.Method)
	}
	switch x.route.Operation {
	case modelapi.ListModels:
		return x.listModels()
	case modelapi.GetModel:
		return x.getModel()
	default:
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refused(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", large.Limit)
	case err != nil:
		return refused(http.StatusBadRequest, "the body could not be read")
	}
	o, err := splice.Parse(body)
	if err != nil {
		return refused(http.StatusBadRequest, "%v", err)
	}
	e, f := x.find(o.Text("model"))
	if f != nil {
		return f
	}
	return x.call(e, o, body)
}

// refused returns a failure that no repetition mends.
func refused(status int, format string, args ...any) *modelapi.Failure {
	return &modelapi.Failure{Status: status, Message: fmt.Sprintf(format, args...)}
}

// find returns the model of a name, as `provider:model` or the model alone. A model alone is one of the API's own
// vendor, if that has it.
func (x *exchange) find(name string) (catalog.Entry, *modelapi.Failure) {
	if name == "" {
		return catalog.Entry{}, refused(http.StatusBadRequest, "model: name the model as text, such as %q", x.Models.Default().Name)
	}
	e, err := x.Names.Find(x.r.Context(), name)
	if err == nil {
		return e, nil
	}
	if strings.HasPrefix(name, catalog.Own+":") {
		return catalog.Entry{}, x.notFound(name, err)
	}
	own := catalog.KindAnthropic
	if x.route.Form == modelapi.OpenAI {
		own = catalog.KindOpenAI
	}
	if e, err := x.Models.Resolve(own + ":" + name); err == nil && !e.Unlisted {
		return e, nil
	}
	for _, full := range x.Models.Names() {
		if _, model, _ := strings.Cut(full, ":"); model == name {
			if e, err := x.Models.Resolve(full); err == nil {
				return e, nil
			}
		}
	}
	return catalog.Entry{}, x.notFound(name, err)
}

// notFound returns the answer to a name that leads to no model.
func (x *exchange) notFound(name string, err error) *modelapi.Failure {
	var fault *catalog.Fault
	text := fmt.Sprintf("there is no model %.200q here", name)
	switch {
	case errors.As(err, &fault):
		text = fmt.Sprintf("the model %.200q cannot be used (%v)", name, fault)
	case strings.HasPrefix(name, catalog.Own+":") && !errors.Is(err, store.ErrNotFound):
		if gone(x.r.Context()) {
			break
		}
		x.Log.ErrorContext(x.r.Context(), "a tenant's own model cannot be read", "model", name, "error", err)
		return &modelapi.Failure{
			Status: http.StatusServiceUnavailable, Retry: modelapi.Always, After: time.Second,
			Message: "the models of the tenant cannot be read now; try again",
		}
	case strings.Contains(name, ":mode="):
		text += fmt.Sprintf(" (%v)", err)
	}
	f := refused(http.StatusNotFound, "%s; GET %s lists the models", text, modelsPath(x.route.Form))
	f.Code = "model_not_found"
	return f
}
