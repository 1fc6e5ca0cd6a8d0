package door

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Row is a door with what the table does for it.
type Row struct {
	Door
	// Under has what the door's paths begin with. The door sees no other path.
	Under []string
	// Form limits a door to requests of a form, whatever their paths; nil: the paths decide.
	Form func(*http.Request) bool
	// Credential moves what the door's clients send as their credential to where others have it; nil: they send it there.
	Credential func(*http.Request)
	// Resource returns the address for which tokens of a path may have been made, besides the server's; nil: none.
	Resource func(path string) string
	// Challenge tells a client that is refused before its request is read where it can log in; nil: nowhere.
	Challenge func(http.ResponseWriter, *http.Request)
	// Text refuses a query that is not UTF-8, which gRPC cannot transport; otherwise the door reads its query itself.
	Text bool
	// Counted counts every request as an open stream; otherwise the door counts those of its requests that follow something.
	Counted bool
	// Bare has a 404 say that the path has a slash too many, if the door has the path without it.
	Bare bool
}

// Config configures what holds for every door.
type Config struct {
	AllowedOrigins []string      // other sites' origins whose pages may send requests
	BodyTimeout    time.Duration // for a body to arrive
	Auth           *auth.Authenticator
	Rate           *limit.Rate
	Streams        *limit.Streams
	Log            *slog.Logger
}

// table has all doors. The first row that knows a path has it.
type table struct {
	Config
	rows []Row
}

// New returns the handler of all doors.
func New(c Config, rows []Row) (http.Handler, error) {
	t := &table{c, rows}
	return t.around(http.HandlerFunc(t.serve), headers.Policy{AllowedOrigins: c.AllowedOrigins, Methods: t.methods})
}

// find returns the row that has a request, and its route; nil if no door knows the path.
func (t *table) find(r *http.Request) (*Row, *Route) {
	for i := range t.rows {
		row := &t.rows[i]
		if row.Form != nil && !row.Form(r) {
			continue
		}
		if rt := row.at(r.Method, r.URL.Path); rt != nil {
			return row, rt
		}
	}
	return &Row{Door: nowhere{}}, nil
}

// at is Match for all paths.
func (row *Row) at(method, path string) *Route {
	if !slices.ContainsFunc(row.Under, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
		return nil
	}
	return row.Match(method, path)
}

// methods returns the methods that a path takes; none for an unknown path.
func (t *table) methods(path string) []string {
	for i := range t.rows {
		if rt := t.rows[i].at(http.MethodOptions, path); rt != nil {
			return rt.Allow
		}
	}
	return nil
}

// nowhere is the door of paths that no door has.
type nowhere struct{ Problems }

// Match implements Door.
func (nowhere) Match(string, string) *Route { return nil }

// notFound returns the error for a path that no door has.
func (t *table) notFound(path string) error {
	bare := strings.TrimRight(path, "/")
	if bare != path && slices.ContainsFunc(t.rows, func(row Row) bool { return row.Bare && row.at(http.MethodOptions, bare) != nil }) {
		return problem.SlashAtTheEnd(path)
	}
	return problem.PathNotFound(path)
}

// serve answers a request at its door.
func (t *table) serve(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// The server reads the rest of a refused body, and must not wait for it for ever. Handlers that read
		// the whole body set a new deadline; for the next request the server does.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(t.BodyTimeout))
	}
	outer := r
	r, held := idle.Begin(r.WithContext(rpc.WithClient(r.Context(), r.RemoteAddr)))
	defer held.Return()
	defer func() { outer.Pattern = r.Pattern }() // the outer middleware names the span after it
	row, rt := t.find(r)
	if err := t.Rate.Allow(limit.Of(r)); err != nil {
		row.turnAway(w, r, err)
		return
	}
	if r.Method != http.MethodOptions && (rt == nil || !rt.Open) {
		ctx, stop, err := t.Auth.HTTP(r, row.identify(r))
		if err != nil {
			row.turnAway(w, r, err)
			return
		}
		defer idle.Until(r.Context(), stop)()
		r = r.WithContext(ctx) //nolint:contextcheck // it is made of the request's
	}
	if rt == nil {
		problem.Write(w, t.notFound(r.URL.Path))
		return
	}
	if rt.Serve == nil && r.Method == http.MethodOptions {
		rt.describe(w)
		return
	}
	if err := t.answer(w, r, row, rt); err != nil {
		row.Refuse(w, r, err)
	}
}

// identify finds the credential of a request, and the resource for which it may have been made.
func (row *Row) identify(r *http.Request) (resource string) {
	if row.Credential != nil {
		row.Credential(r)
	}
	if row.Resource != nil {
		resource = row.Resource(r.URL.Path)
	}
	return resource
}

// turnAway refuses a request before its form is known.
func (row *Row) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if row.Challenge != nil {
		row.Challenge(w, r)
	}
	row.Refuse(w, r, err)
}

// describe answers the method OPTIONS.
func (rt *Route) describe(w http.ResponseWriter) {
	if rt.Options != nil {
		rt.Options(w.Header())
	}
	allow := rt.Allow
	if !slices.Contains(allow, http.MethodOptions) {
		allow = append(slices.Clone(allow), http.MethodOptions)
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	w.WriteHeader(http.StatusNoContent)
}

// answer lets the door answer. It returns an error that the door has to write.
func (t *table) answer(w http.ResponseWriter, r *http.Request, row *Row, rt *Route) error {
	if rt.Serve == nil {
		w.Header().Set("Allow", strings.Join(rt.Allow, ", "))
		return problem.MethodNotAllowed(r.Method, r.URL.Path, rt.Allow)
	}
	rt.name(r)
	if row.Text {
		if err := checkText(r); err != nil {
			return err
		}
	}
	if row.Counted {
		release, err := t.Streams.Acquire(limit.Of(r))
		if err != nil {
			return err
		}
		defer idle.Until(r.Context(), release)()
	}
	return rt.Serve(w, r)
}

// checkText refuses a query that is not UTF-8.
func checkText(r *http.Request) error {
	for name, values := range r.URL.Query() {
		if !utf8.ValidString(name + strings.Join(values, "")) { // gRPC cannot transport it
			return problem.BadParameter(strings.ToValidUTF8(name, "\ufffd"), "is not UTF-8")
		}
	}
	return nil
}

// name names the request's span and metrics after its route. The outer middleware reads the pattern at the end.
func (rt *Route) name(r *http.Request) {
	if rt.Pattern == "" { // keep the number of span names small
		return
	}
	r.Pattern = rt.Pattern
	_, path, _ := strings.Cut(rt.Pattern, "/")
	trace.SpanFromContext(r.Context()).SetAttributes(attribute.String("http.route", "/"+path))
}
