package wire

import (
	"net/http"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Fault is an error as a wire shows it, before it has the wire's form.
type Fault struct {
	// Status is the HTTP status.
	Status int
	// Reason is for programs; "" if there is none.
	Reason string
	// Message is for people.
	Message string
	// Field is the one that is wrong; "" if none is.
	Field string
	// After is the wait before the request may be repeated; zero: none is named.
	After time.Duration
}

// FaultOf returns the client's view of an error.
func FaultOf(err error) Fault {
	st := problem.Status(err)
	f := Fault{Status: problem.HTTPStatus(err), Reason: apierr.Reason(st.Err()), Message: st.Message()}
	f.After, _ = problem.RetryAfter(st)
	if bad, ok := apierr.Detail[*errdetails.BadRequest](st.Err()); ok && len(bad.GetFieldViolations()) > 0 {
		f.Field = bad.GetFieldViolations()[0].GetField()
	}
	return f
}

// Headers sets the headers of an error: the wait, the credential that is missing, and the kind of its body.
func (f Fault) Headers(h http.Header, contentType string) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", contentType)
	if f.After > 0 {
		h.Set("Retry-After", problem.Seconds(f.After))
	}
	if f.Status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", "Bearer")
	}
}

// Misnamed reports whether a request was refused only because the name in its path has a form that no name has. The
// clients of other protocols expect what they get for any unknown name.
func Misnamed(err error) bool {
	if err == nil || apierr.Reason(err) != apierr.ReasonInvalidRequest {
		return false
	}
	bad, ok := apierr.Detail[*errdetails.BadRequest](err)
	return ok && len(bad.GetFieldViolations()) > 0 && !slices.ContainsFunc(bad.GetFieldViolations(), func(v *errdetails.BadRequest_FieldViolation) bool {
		return v.GetField() != "name" && v.GetField() != "parent"
	})
}
