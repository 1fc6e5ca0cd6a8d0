package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// errorBody is what the API says about an error.
type errorBody struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Details struct {
			Code string `json:"error_code"`
		} `json:"details"`
	} `json:"error"`
}

// failure maps the error of a stream; nil is a stream that ended too early.
func (m *Model) failure(ctx context.Context, w *wire.Watch, err error) error {
	var api *sdk.Error
	if !errors.As(err, &api) || ctx.Err() != nil {
		return w.Fail(ctx, err)
	}
	var body errorBody
	_ = json.Unmarshal([]byte(api.RawJSON()), &body) // A body of another form says nothing.
	e := &model.Error{Midway: w.Began()}             // The SDK's error holds the request, and with it the key.
	if !e.Midway {                                   // An error event comes after a status of 200.
		e.Status = api.StatusCode
	}
	e.Kind = kind(e.Status, body)
	if h := w.Header(); !e.Midway && h != nil {
		e.RetryAfter = wire.RetryAfter(h, time.Now())
		e.Kind = advised(e.Kind, h.Get("x-should-retry"))
		if body.Error.Details.Code == "enforced_spend_limit_reached" && h.Get("retry-after") == "" {
			e.Kind = model.Billing
		}
	}
	e.Message = m.message(e.Kind, body)
	return e
}

// kind finds the kind by the error's type, and by the status where the type
// says nothing.
func kind(status int, body errorBody) model.ErrorKind {
	text := strings.ToLower(body.Error.Message)
	switch t := body.Error.Type; {
	case strings.Contains(text, "prompt is too long"), strings.Contains(text, "exceed context limit"), t == "request_too_large", status == http.StatusRequestEntityTooLarge:
		return model.ContextFull
	case t == "billing_error", status == http.StatusPaymentRequired, strings.Contains(text, "credit balance is too low"):
		return model.Billing
	case t == "authentication_error", t == "permission_error", status == http.StatusUnauthorized, status == http.StatusForbidden:
		return model.Authentication
	case t == "overloaded_error", t == "api_error", t == "timeout_error", t == "rate_limit_error":
		return model.Unavailable
	case status == 0 && t != "invalid_request_error" && t != "not_found_error":
		return model.Unavailable
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		return model.Unavailable
	}
	return model.Refused
}

// advised applies x-should-retry, which wins over the status.
func advised(k model.ErrorKind, advice string) model.ErrorKind {
	switch {
	case advice == "true" && k == model.Refused:
		return model.Unavailable
	case advice == "false" && k == model.Unavailable:
		return model.Refused
	}
	return k
}

func (m *Model) message(k model.ErrorKind, body errorBody) string {
	said := ""
	if body.Error.Message != "" && k != model.Authentication { // A message about a key may quote it.
		said = ": " + wire.Quote(body.Error.Message, m.cfg.Key)
	}
	what := map[model.ErrorKind]string{
		model.Unavailable:    "is not available at the moment",
		model.Authentication: "refused the key; check it and what it may use",
		model.Refused:        "refused the request",
		model.ContextFull:    "says that the conversation is longer than the model's context",
		model.Billing:        "wants to be paid: a limit or a balance is used up",
	}[k]
	return fmt.Sprintf("the model provider %s %s%s", m.cfg.Provider, what, said)
}
