package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Outcome is how a request or a tunnel ended.
type Outcome string

// The outcomes.
const (
	Done           Outcome = "done"            // answered, whatever the status; or a tunnel that ended by itself
	Denied         Outcome = "denied"          // no rule allows it
	RefusedAddress Outcome = "refused_address" // a rule allows it, but not its address
	BadRequest     Outcome = "bad_request"     // not a proxy request, or an ambiguous one
	Failed         Outcome = "failed"          // the other side did not answer, or not properly
	Limited        Outcome = "limited"         // a limit ended it
	Opened         Outcome = "opened"          // the proxy ended TLS: the requests inside are reported one by one
	Aborted        Outcome = "aborted"         // one side, or the end of the sandbox, cut it off
)

// Kinds of events.
const (
	KindHTTP      = "http"      // a request, in plain HTTP or upgraded
	KindIntercept = "intercept" // a request inside TLS that the proxy ended
	KindTunnel    = "tunnel"    // bytes passed through
)

// Event reports one request or tunnel. It has no path, query or headers, because they may hold secrets.
type Event struct {
	Start      time.Time
	Duration   time.Duration
	Exec       string // of the command, from the client or from Use; empty if neither names it
	Kind       string
	Method     string
	Host       string // in its normal form; as requested if it has none
	Port       uint16
	Address    netip.Addr // the dialed address, if any
	Rule       string     // the rule that allowed it
	Credential string     // the name of the credential that was added
	Status     int        // of the answer, zero without one
	Sent       int64      // bytes of bodies, or of a tunnel, to the outside
	Received   int64
	Outcome    Outcome
	Message    string // why, unless Done
}

// Client identifies the sandbox that is served.
type Client struct {
	Tenant, Session string
	// Begin is called for each request and tunnel. exec is the name of the command that the client gives,
	// or empty. An error, a RefusalError, refuses the use. Several goroutines call Begin and the functions
	// of the Use, and none of these may block. If nil, uses are not reported.
	Begin func(exec string) (Use, error)
}

// Use is how the receiver of Begin follows one request or tunnel.
type Use struct {
	// Exec is the command that the use belongs to. If empty, it is the command that the client names.
	Exec string
	// Context is the parent of the span; its end closes the connection. If nil, nothing closes it.
	Context context.Context //nolint:containedctx // of the command
	// Ended is called at the end; it may be nil.
	Ended func(Event)
}

// observer makes spans and metrics of events.
type observer struct {
	tracer   trace.Tracer
	events   metric.Int64Counter
	bytes    metric.Int64Counter
	duration metric.Float64Histogram
}

const scope = "github.com/fairlead/fairlead/services/sandbox/egress"

func newObserver() (*observer, error) {
	m := otel.Meter(scope)
	o := &observer{tracer: otel.Tracer(scope)}
	var faults [3]error
	o.events, faults[0] = m.Int64Counter("fairlead.sandbox.egress.requests", metric.WithDescription("requests and tunnels of sandboxes, by kind and outcome"))
	o.bytes, faults[1] = m.Int64Counter("fairlead.sandbox.egress.bytes", metric.WithUnit("By"), metric.WithDescription("bytes of bodies and tunnels, by direction"))
	o.duration, faults[2] = m.Float64Histogram("fairlead.sandbox.egress.duration", metric.WithUnit("s"), metric.WithDescription("how long requests and tunnels took"))
	if err := errors.Join(faults[:]...); err != nil {
		return nil, fmt.Errorf("make the metrics of egress: %w", err)
	}
	return o, nil
}

// record is an event in progress. One goroutine fills it.
type record struct {
	Event
	ctx  context.Context //nolint:containedctx // only for the span and its metrics
	span trace.Span
	s    *Server
	use  Use
	keep func() bool // stops the command's end from cutting the connection; nil: it does not anyway
	// inside means that the requests inside the connection are reported one by one.
	inside bool
	// banned is why it is refused regardless of its content; nil: it is not.
	banned error
}

// begin begins the record of a request or a tunnel over a connection. The command's end cuts the
// connection, so that nothing of the command goes on and all of it can be reported.
func (s *Server) begin(m *meter, kind, method, exec string) *record {
	r := &record{Event: Event{Start: time.Now(), Exec: exec, Kind: kind, Method: method, Outcome: Done}, ctx: context.Background(), s: s}
	if s.client.Begin != nil {
		r.use, r.banned = s.client.Begin(exec)
	}
	r.Exec = cmp.Or(r.use.Exec, exec)
	if known := r.use.Context; known != nil {
		r.ctx = context.WithoutCancel(known)
		if m != nil {
			r.keep = context.AfterFunc(known, m.cut)
		}
	}
	r.ctx, r.span = s.proxy.observer.tracer.Start(r.ctx, "egress", trace.WithTimestamp(r.Start), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("fairlead.tenant", s.client.Tenant), attribute.String("fairlead.session", s.client.Session),
		attribute.String("fairlead.egress.kind", r.Kind),
	))
	return r
}

// ask begins the record of a request.
func (s *Server) ask(r *http.Request, kind, exec string) *record {
	return s.begin(meterOf(r.Context().Value(connKey{})), kind, method(r), exec)
}

func (r *record) report() {
	if r.keep != nil {
		r.keep()
	}
	if r.use.Ended != nil {
		r.use.Ended(r.Event)
	}
}

func (r *record) to(t target) { r.Host, r.Port = t.host(), t.port }

// maxMessage is the maximum size of an event's message in bytes: it may quote the client.
const maxMessage = 1024

// fail records an error.
func (r *record) fail(err error) {
	var no *RefusalError
	if !errors.As(err, &no) {
		no = &RefusalError{Outcome: Failed, Message: "the request failed"}
	}
	r.Outcome, r.Message = no.Outcome, no.Message
	if len(r.Message) > maxMessage {
		r.Message = strings.ToValidUTF8(r.Message[:maxMessage], "") + "…"
	}
}

// end reports the event.
func (r *record) end() {
	r.Duration = time.Since(r.Start)
	kind, outcome := attribute.String("kind", r.Kind), attribute.String("outcome", string(r.Outcome))
	r.span.SetAttributes(
		attribute.String("server.address", r.Host), attribute.Int("server.port", int(r.Port)),
		attribute.String("http.request.method", r.Method), attribute.String("fairlead.egress.rule", r.Rule),
		attribute.String("fairlead.egress.outcome", string(r.Outcome)),
		attribute.Int64("fairlead.egress.sent", r.Sent), attribute.Int64("fairlead.egress.received", r.Received),
	)
	if r.Status != 0 {
		r.span.SetAttributes(attribute.Int("http.response.status_code", r.Status))
	}
	if r.Address.IsValid() {
		r.span.SetAttributes(attribute.String("network.peer.address", r.Address.String()))
	}
	if r.Outcome != Done && r.Outcome != Opened {
		r.span.SetStatus(codes.Error, string(r.Outcome))
	}
	r.span.End()
	defer r.report()
	if r.inside {
		return
	}
	o := r.s.proxy.observer
	o.events.Add(r.ctx, 1, metric.WithAttributes(kind, outcome))
	o.bytes.Add(r.ctx, r.Sent, metric.WithAttributes(kind, attribute.String("direction", "sent")))
	o.bytes.Add(r.ctx, r.Received, metric.WithAttributes(kind, attribute.String("direction", "received")))
	o.duration.Record(r.ctx, r.Duration.Seconds(), metric.WithAttributes(kind, outcome))
}
