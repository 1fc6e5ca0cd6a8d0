package modelproxy

import (
	"context"
	"net/http"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/splice"
)

// call is a request to one model.
type call struct {
	*exchange
	entry  catalog.Entry
	object *splice.Object
	body   []byte
	stream bool

	reserved reservation
	usage    *sessionv1.Usage // what the call has used, once it is known
	begun    bool             // the model may have used something
	spare    bool             // another model can take the place of this one
	givesWay bool             // the model is not available, and the client has heard nothing yet
	failed   string           // how the answer failed after it had begun
	finish   string           // why the answer ended
	answerID string
}

// call lets a model answer, or, while it is not available, those that take its place. Turns try a model several times
// before; here the client does.
func (x *exchange) call(first catalog.Entry, o *splice.Object, body []byte) *modelapi.Failure {
	r, counts := x.r, x.route.Operation == modelapi.CountTokens
	e := first
	for n := 0; ; n++ {
		c := &call{
			exchange: x, entry: e, object: o, body: body, stream: o.True("stream") && !counts,
			spare: n < len(first.Fallbacks) && !counts,
		}
		f := c.make()
		if !c.spare || !c.givesWay {
			return f
		}
		x.r = r // without the span of the call
		var err error
		if e, err = x.Names.Find(r.Context(), first.Fallbacks[n]); err == nil {
			o, err = splice.Parse(body)
		}
		if err != nil {
			x.Log.ErrorContext(r.Context(), "a fallback cannot be used", "model", first.Fallbacks[n], "error", err)
			return f
		}
		x.Log.WarnContext(r.Context(), "a model that is not available gives way", "model", c.entry.Name, "to", e.Name, "status", f.Status)
	}
}

// make makes the call, in a span of its own.
func (c *call) make() *modelapi.Failure {
	if c.entry.Endpoint.Missing != "" {
		c.Log.WarnContext(c.r.Context(), "a model without a key was called through the proxy", "model", c.entry.Name)
		return &modelapi.Failure{Status: http.StatusInternalServerError, Retry: modelapi.Never, Message: c.entry.Endpoint.Missing}
	}
	if c.route.Operation == modelapi.CountTokens && !c.passesOn() {
		return c.estimate()
	}
	if c.route.Operation == modelapi.CountTokens {
		return c.forward()
	}
	end := c.startSpan()
	started := time.Now()
	var f *modelapi.Failure
	defer func() {
		c.settle()
		end(f, time.Since(started))
	}()
	if c.passesOn() {
		f = c.forward()
	} else {
		f = c.translate()
	}
	return f
}

// passesOn reports whether the model's provider serves the wire of the request.
func (c *call) passesOn() bool {
	if c.entry.Endpoint.BaseURL == "" {
		return false
	}
	switch c.route.Operation {
	case modelapi.Messages, modelapi.CountTokens:
		return c.entry.Kind == catalog.KindAnthropic
	case modelapi.ChatCompletions:
		return c.entry.Endpoint.Chat
	case modelapi.Responses:
		return c.entry.Endpoint.Responses
	default:
		return false
	}
}

// idle is how long the target may be silent.
func (c *call) idle() time.Duration {
	if c.stream {
		return c.Idle
	}
	return wholeIdle
}

// used records what the call has used.
func (c *call) used(u *sessionv1.Usage) {
	u.CostNanoUsd = c.entry.Cost(u)
	c.usage = u
}

// gone reports whether the client has left.
func gone(ctx context.Context) bool { return context.Cause(ctx) != nil }
