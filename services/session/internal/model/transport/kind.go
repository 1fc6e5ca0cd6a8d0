package transport

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Meanings of the codes and types of providers, in the form of word.
var (
	billingWords = []string{
		"insufficientquota", "billinghardlimitreached", "billingnotactive", "billingerror", "insufficientbalance", "insufficientcredits",
		"insufficientfunds", "paymentrequired", "exceededcurrentquotaerror", "insufficientuserquota", "arrearage", "creditsexhausted",
	}
	contextWords = []string{"contextlengthexceeded", "requesttoolarge", "contextwindowexceeded", "stringabovemaxlength", "modelcontextwindowexceeded"}
	keyWords     = []string{
		"invalidapikey", "authenticationerror", "permissionerror", "permissiondenied", "permissiondeniederror", "unauthenticated", "unauthorized",
		"forbidden", "invalidauthenticationerror", "invalidauthentication", "invalidissuer", "accessdenied", "incorrectapikeyerror", "noapikey", "accessdeniedexception",
	}
	busyWords = []string{
		"overloadederror", "overloaded", "timeouterror", "ratelimiterror", "ratelimitexceeded", "engineoverloadederror", "serviceunavailable", "slowdown",
		"throttlingexception", "serviceunavailableexception", "internalserverexception",
	}
	badWords = []string{
		"invalidrequesterror", "invalidrequest", "badrequest", "badrequesterror", "invalidargument", "invalidparameter", "invalidparametererror",
		"modelnotfound", "notfounderror", "notfound", "modelnotexist", "unprocessableentity", "unprocessableentityerror", "validationerror",
		"unsupportedparameter", "unsupportedvalue", "invalidmodel", "extraforbidden", "missing", "validationexception",
		"invalidprompt", "dataresidencymismatch", "biopolicy", "misalignmentpolicyviolation", "invalidimage", "invalidimageformat",
		"invalidbaseimage", "invalidimageurl", "invalidimagemode", "imagetoolarge", "imagetoosmall", "imageparseerror",
		"imagecontentpolicyviolation", "imagefiletoolarge", "unsupportedimagemediatype", "emptyimagefile",
	}
	billingTexts = []string{"credit balance is too low", "insufficient balance", "insufficient credit", "insufficient funds", "exceeded your current quota", "insufficient_quota"}
	contextTexts = []string{"prompt is too long", "exceed context limit", "maximum context length", "context window", "exceeds the available context"}
	keyTexts     = []string{"invalid api key", "incorrect api key", "invalid_api_key", "unauthorized", "invalid x-api-key", "api key not valid", "no api key"}
	badTexts     = []string{"unknown model", "no such model", "model not found", "unknown field", "unrecognized request argument"}
)

// kind returns the kind of an error. It looks at its codes, then at its status,
// which is HTTP's or one that the body names, then at its text.
func (t ErrorReport) kind(status int) model.ErrorKind {
	if status < http.StatusBadRequest {
		status = t.Status
	}
	text := strings.ToLower(t.Message)
	has := func(texts []string) bool {
		for _, s := range texts {
			if strings.Contains(text, s) {
				return true
			}
		}
		return false
	}
	switch {
	case t.is(contextWords...), has(contextTexts), status == http.StatusRequestEntityTooLarge:
		return model.ContextFull
	case t.is(billingWords...), status == http.StatusPaymentRequired, has(billingTexts) && !t.is("resourceexhausted"):
		return model.Billing
	case t.is(keyWords...), status == http.StatusUnauthorized, status == http.StatusForbidden:
		return model.Authentication
	case t.is(busyWords...), status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		return model.Unavailable
	case status != 0, t.is(badWords...), t.Page:
		return model.Refused
	case has(keyTexts):
		return model.Authentication
	case has(badTexts), strings.Contains(text, "model") && (strings.Contains(text, "not found") || strings.Contains(text, "does not exist")):
		return model.Refused
	}
	return model.Unavailable
}

// Told returns the model's error for an error of the provider, with the
// provider's text. The status is HTTP's; 0 for an error in a stream.
func (w *Watch) Told(t ErrorReport, status int) *model.Error {
	e := &model.Error{Kind: t.kind(status), Status: status, Midway: w.Began(), RequestID: w.request, Err: &ReportedError{t}}
	what := map[model.ErrorKind]string{
		model.Unavailable:    "is not available at the moment",
		model.Authentication: "refused the key; check it and what it may use",
		model.Refused:        "refused the request",
		model.ContextFull:    "says that the conversation is longer than the model's context",
		model.Billing:        "requires payment: a quota, a limit or a balance is used up",
	}[e.Kind]
	switch {
	case t.Page && e.Kind == model.Refused:
		what = "answered with a web page; check its base URL"
	case e.Kind == model.Refused && status == http.StatusNotFound && !strings.Contains(strings.ToLower(t.Message), "model"):
		what = "has nothing at this address; check its base URL, which for kind openai ends in /v1"
	case e.Kind == model.Authentication && w.key == "":
		what = "requires a key and the request had none; set key-env for this provider in place of no-key"
	}
	aboutKey := e.Kind == model.Authentication || status == http.StatusUnauthorized || status == http.StatusForbidden
	if said := Quote(t.Message, w.key); said != "" && !aboutKey { // A message about a key may quote it.
		what += ": " + said
		e.ProviderText = said
	} else if t.Page {
		e.ProviderText = "a web page"
	}
	e.Message = fmt.Sprintf("the model provider %s %s", w.provider, what)
	return e
}

// refused returns the error for an answer with an error status.
func (w *Watch) refused(status int, h http.Header, body []byte) *model.Error {
	t := ReadError(body)
	e := w.Told(t, status)
	e.RetryAfter = RetryAfter(h, time.Now())
	switch advice := h.Get("x-should-retry"); { // it overrides the status
	case e.Kind == model.Unavailable && t.is("enforcedspendlimitreached") && h.Get("retry-after") == "":
		e.Kind = model.Billing
	case advice == "true" && e.Kind == model.Refused:
		e.Kind = model.Unavailable
	case advice == "false" && e.Kind == model.Unavailable:
		e.Kind = model.Refused
	}
	return e
}

// Refused returns the error for an answer of a provider with an error status.
func Refused(provider string, status int, h http.Header, body []byte) *model.Error {
	return (&Watch{provider: provider}).refused(status, h, body)
}

// Fault returns the error for an answer that is wrong after it began. The message
// continues "the model provider NAME".
func (w *Watch) Fault(kind model.ErrorKind, format string, args ...any) error {
	return w.fault(kind, format, args...)
}

// Malformed returns the error of a stream that does not follow the API.
func (w *Watch) Malformed(what string) error {
	e := w.fault(model.Unavailable, "sends a malformed stream: %s", what)
	e.Malformed = true
	return e
}

func (w *Watch) fault(kind model.ErrorKind, format string, args ...any) *model.Error {
	return &model.Error{
		Kind: kind, Midway: true, RequestID: w.request,
		Message: fmt.Sprintf("the model provider %s "+format, append([]any{w.provider}, args...)...),
	}
}
