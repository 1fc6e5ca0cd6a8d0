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
	failed   string           // how the answer failed after it had begun
	finish   string           // why the answer ended
	answerID string
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
