package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// failure maps the error of a stream; nil is a stream that ended too early.
func (m *Model) failure(ctx context.Context, w *wire.Watch, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	var api *sdk.APIError
	var plain *sdk.RequestError
	var unreached *url.Error
	var ours *model.Error
	switch {
	case errors.As(err, &api):
		return m.answered(w, api)
	case errors.As(err, &plain):
		return m.answered(w, &sdk.APIError{HTTPStatusCode: plain.HTTPStatusCode})
	case err != nil && w.Header() == nil && !errors.As(err, &unreached) && !errors.As(err, &ours) && !w.Silent():
		// Never sent: the SDK knows that the model refuses such a request.
		return &model.Error{Kind: model.Refused, Message: fmt.Sprintf("the model provider %s cannot be asked this: %s", m.cfg.Provider, wire.Quote(err.Error(), m.cfg.Key))}
	}
	return w.Fail(ctx, err)
}

// answered maps an error that the server told, in place of an answer or midway.
func (m *Model) answered(w *wire.Watch, api *sdk.APIError) error {
	e := &model.Error{Status: api.HTTPStatusCode, Midway: w.Began()}
	e.Kind = kind(api)
	if h := w.Header(); h != nil && !e.Midway {
		e.RetryAfter = wire.RetryAfter(h, time.Now())
	}
	said := ""
	if api.Message != "" && e.Kind != model.Authentication { // A message about a key may quote it.
		said = ": " + wire.Quote(api.Message, m.cfg.Key)
	}
	what := map[model.ErrorKind]string{
		model.Unavailable:    "is not available at the moment",
		model.Authentication: "refused the key; check it and what it may use",
		model.Refused:        "refused the request",
		model.ContextFull:    "says that the conversation is longer than the model's context",
		model.Billing:        "wants to be paid: a quota or a balance is used up",
	}[e.Kind]
	e.Message = fmt.Sprintf("the model provider %s %s%s", m.cfg.Provider, what, said)
	return e
}

// kind finds the kind by code and type, then by the status; an error in the
// stream has no status.
func kind(api *sdk.APIError) model.ErrorKind {
	code := fmt.Sprint(api.Code)
	text := strings.ToLower(api.Message)
	either := func(s string) bool { return code == s || api.Type == s }
	switch status := api.HTTPStatusCode; {
	case either("insufficient_quota"), either("billing_hard_limit_reached"), either("billing_not_active"), status == http.StatusPaymentRequired:
		return model.Billing
	case either("context_length_exceeded"), strings.Contains(text, "maximum context length"), strings.Contains(text, "context window"), status == http.StatusRequestEntityTooLarge:
		return model.ContextFull
	case either("invalid_api_key"), status == http.StatusUnauthorized, status == http.StatusForbidden:
		return model.Authentication
	case status == 0 && (either("invalid_request_error") || either("model_not_found")):
		return model.Refused
	case status == 0, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		return model.Unavailable
	}
	return model.Refused
}
