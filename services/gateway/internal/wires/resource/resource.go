// Package resource has what the wires share whose requests are about resources: their paths have ids, and bodies and
// answers are JSON.
package resource

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/door"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Request is one request.
type Request struct {
	W    http.ResponseWriter
	R    *http.Request
	ID   []string // the parts of the path that are ids
	Body []byte
	Key  string // the idempotency key; empty for reads
}

// Read reads the body, within the limits of a wire; an empty one counts as an empty object.
func (c *Request) Read(w *wire.Server) (err error) {
	if err := codec.CheckContentEncoding(c.R.Header); err != nil {
		return err
	}
	c.Body, err = codec.NewBody(c.W, c.R, w.MaxBody, w.BodyTimeout).Bytes()
	if err == nil && len(strings.TrimSpace(string(c.Body))) == 0 {
		c.Body = []byte("{}")
	}
	return err
}

// Decode reads the JSON of the body; unknown fields are ignored.
func (c *Request) Decode(to any) error { return wire.DecodeJSON(c.Body, to) }

// Part returns the key of one of several effects of the request.
func (c *Request) Part(n int) string { return c.Key + "." + strconv.Itoa(n) }

// Limit returns how many entries of a list the client wants.
func (c *Request) Limit(dflt, most int) (int, error) {
	text := c.R.URL.Query().Get("limit")
	if text == "" {
		return dflt, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, Bad("limit", problem.Excerpt(text)+" is not a number above 0")
	}
	return min(n, most), nil
}

// OldestFirst reports whether the client wants the oldest entry of a list first.
func (c *Request) OldestFirst(dflt bool) (bool, error) {
	switch order := c.R.URL.Query().Get("order"); order {
	case "":
		return dflt, nil
	case "asc", "desc":
		return order == "asc", nil
	default:
		return false, Bad("order", problem.Excerpt(order)+" is neither asc nor desc")
	}
}

// Route is one path of a wire, for requests of the wire's own type. Serve returns an answer as JSON, or nil if it has
// answered itself.
type Route[C any] struct {
	Method, Template string
	Serve            func(c C) (any, error)

	path *regexp.Regexp
}

var parameter = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// On returns a route.
func On[C any](method, template string, serve func(C) (any, error)) Route[C] {
	pattern := parameter.ReplaceAllString(regexp.QuoteMeta(template), `([^/]+)`)
	return Route[C]{method, template, serve, regexp.MustCompile("^" + pattern + "$")}
}

// Routes are the paths of a wire.
type Routes[C any] []Route[C]

// Match returns the route of a path; nil if there is none. A path that fits several templates takes the methods of all, or
// with first those of the first one.
func (rs Routes[C]) Match(method, path string, first bool, serve func(on Route[C], c Request) error) *door.Route {
	rt, template := &door.Route{}, ""
	for _, on := range rs {
		ids := on.path.FindStringSubmatch(path)
		if ids == nil || first && template != "" && template != on.Template {
			continue
		}
		template, rt.Pattern, rt.Allow = on.Template, method+" "+on.Template, append(rt.Allow, on.Method)
		if rt.Serve == nil && method == on.Method {
			rt.Serve = func(w http.ResponseWriter, r *http.Request) error { return serve(on, Request{W: w, R: r, ID: ids[1:]}) }
		}
	}
	if template == "" {
		return nil
	}
	return rt
}

// Answer answers a request on its route.
func (c *Request) Answer(answer any, err error) error {
	if wire.Misnamed(err) {
		err = None("resource", strings.Join(c.ID, "/"))
	}
	if err != nil || answer == nil {
		return err
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	c.W.Header().Set("Content-Type", "application/json")
	_, _ = c.W.Write(b) // an error here means that the client has gone
	return nil
}

// ReasonBadField is the reason of a request with a field that is wrong or not served.
const ReasonBadField = "BAD_FIELD"

// Bad refuses a request because of a field.
func Bad(field, what string) error {
	return apierr.New(codes.InvalidArgument, problem.Domain, ReasonBadField, field+": "+what, apierr.Field(field, what))
}

// None refuses a request for a resource that is not there.
func None(what, id string) error {
	return apierr.New(codes.NotFound, problem.Domain, problem.ReasonPathNotFound, "there is no "+what+" "+problem.Excerpt(id))
}

// Fields reports which fields an object has. Decoding it reports what is wrong with it.
func Fields(object []byte) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &out)
	return out
}

// Optional returns null for an empty text.
func Optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}
