package modelproxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/chat"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/messages"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/responses"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/turn/spend"
)

// encoder writes an answer in the form of a wire.
type encoder interface {
	// ID is the answer's id.
	ID() string
	// Start, Delta, End and Fail return the events of a stream; Whole returns an answer that is not streamed.
	Start() []byte
	Delta(d model.Delta) []byte
	End(r *model.Response) []byte
	Fail(f modelapi.Failure, requestID string) []byte
	Whole(r *model.Response) []byte
}

// decode reads the request in the form of its wire.
func (c *call) decode() (*dialog.Request, error) {
	switch c.route.Operation {
	case modelapi.ChatCompletions:
		return chat.Decode(c.body)
	case modelapi.Responses:
		return responses.Decode(c.body)
	default:
		return messages.Decode(c.body)
	}
}

func (c *call) encoder(r *dialog.Request) encoder {
	switch c.route.Operation {
	case modelapi.ChatCompletions:
		return chat.NewEncoder(r.Model, r.Usage)
	case modelapi.Responses:
		return responses.NewEncoder(r.Model)
	default:
		return messages.NewEncoder(r.Model)
	}
}

// inputBound returns an upper bound of the request's input, in tokens. A request that only its own provider understands
// counts by its bytes.
func (c *call) inputBound() int64 {
	if r, err := c.decode(); err == nil {
		return spend.InputBound(r.Request)
	}
	return int64(len(c.body))
}

// estimate counts the tokens of a request where the provider cannot.
func (c *call) estimate() *modelapi.Failure {
	c.object.Set("max_tokens", 1) // which a request to count has not
	r, err := messages.Decode(c.object.Bytes())
	if err != nil {
		return refused(http.StatusBadRequest, "%v", err)
	}
	n := modelview.TextTokens(r.System) + modelview.Tokens(r.Messages)
	for _, t := range r.Tools {
		n += modelview.TextTokens(t.Name) + modelview.TextTokens(t.Description) + modelview.TextTokens(string(t.InputSchema))
	}
	return c.json(map[string]int64{"input_tokens": n})
}

// translate answers from a model whose provider speaks another wire.
func (c *call) translate() *modelapi.Failure {
	r, err := c.decode()
	if err != nil {
		return refused(http.StatusBadRequest, "%v", err)
	}
	most := c.entry.MaxOutputTokens
	if r.MaxOutputTokens > 0 {
		most = min(most, r.MaxOutputTokens)
	}
	granted, f := c.reserve(func() int64 { return spend.InputBound(r.Request) }, most)
	if f != nil {
		return f
	}
	request := r.Request
	request.Model, request.MaxOutputTokens, request.Step, request.Attempt = c.entry.ModelName, granted, 1, 1
	c.setUp(&request, r.Thinking)
	e := c.encoder(r)
	var ping []byte
	if c.stream {
		ping = pingOf(c.route)
	}
	p := newPulse(c.w, ping, func() {
		if !c.stream {
			c.head(http.StatusOK, "application/json")
			return
		}
		c.head(http.StatusOK, eventStream)
		_, _ = c.w.Write(e.Start()) // the next write tells of an error
	})
	defer p.end()
	return c.answerFrom(request, e, p)
}

// answerFrom lets the model answer.
func (c *call) answerFrom(request model.Request, e encoder, p *pulse) *modelapi.Failure {
	c.begun = true
	resp, err := c.entry.Model.Stream(c.r.Context(), request, func(d model.Delta) error {
		if !c.stream {
			return nil
		}
		return p.say(func() []byte { return e.Delta(d) })
	})
	if err != nil {
		return c.failedWith(err, e, p)
	}
	c.finish, c.answerID = resp.StopReason, resp.ID
	if resp.Usage != nil {
		c.used(resp.Usage)
	}
	if c.stream {
		_ = p.say(func() []byte { return e.End(resp) }) // an error here means that the client has gone
	} else {
		_ = p.write(e.Whole(resp))
	}
	return nil
}

// failedWith tells the client why the model did not answer: as the answer itself, or within one that has begun.
func (c *call) failedWith(err error, e encoder, p *pulse) *modelapi.Failure {
	var failed *model.Error
	if !errors.As(err, &failed) {
		if gone(c.r.Context()) && !errors.Is(context.Cause(c.r.Context()), context.DeadlineExceeded) {
			c.failed = "cancelled"
			return nil
		}
		failed = &model.Error{Kind: model.Unavailable, Midway: true, Message: fmt.Sprintf("the call took longer than %s", maxCall)}
	}
	if failed.Status != 0 && !failed.Midway {
		c.begun = false // the provider refused it before it began
	}
	f := c.failure(failed)
	c.givesWay = failed.Retryable()
	p.end()
	if !p.began() {
		return f
	}
	c.givesWay = false
	c.failed = "broken"
	p.last(e.Fail(*f, c.id))
	return nil
}

// failure returns the answer to a call that the model's provider did not answer.
func (c *call) failure(e *model.Error) *modelapi.Failure {
	f := &modelapi.Failure{Status: e.Status, Message: e.Error(), After: e.RetryAfter}
	openAI := c.route.Form == modelapi.OpenAI
	switch e.Kind {
	case model.Authentication:
		c.Log.ErrorContext(c.r.Context(), "a model provider refuses the key", "provider", c.entry.Provider, "error", e.Message)
		f.Status, f.Retry = http.StatusInternalServerError, modelapi.Never
		f.Message = fmt.Sprintf("the model provider %s refuses this server's key; ask the operator to check it", c.entry.Provider)
	case model.Billing:
		f.Status, f.Retry, f.Code = http.StatusPaymentRequired, modelapi.Never, "insufficient_quota"
		if openAI {
			f.Status = http.StatusTooManyRequests
		}
	case model.ContextFull:
		f.Status, f.Code = http.StatusBadRequest, "context_length_exceeded"
		f.Message = "prompt is too long: " + e.Message // clients make it shorter when they read this
	case model.Refused:
		if f.Status < http.StatusBadRequest || f.Status >= http.StatusInternalServerError {
			f.Status = http.StatusBadRequest
		}
	case model.Unavailable:
		switch {
		case f.Status == 0:
			f.Status = http.StatusBadGateway
		case f.Status == modelapi.Overloaded && openAI:
			f.Status = http.StatusServiceUnavailable
		}
		f.Retry = modelapi.Always
	}
	return f
}
