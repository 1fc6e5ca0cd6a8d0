// Package problem holds the errors of the gateway and writes every error, its own and those of the services, as HTTP.
//
// The body of an error is a google.rpc.Status as JSON. Errors of the services pass unchanged; what grpc-go itself says
// about a connection is replaced by fixed words, because it names addresses that are no client's business.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Domain is the domain of the gateway's own errors.
const Domain = "gateway.fairlead.dev"

// Reasons of the gateway's own errors, for programs.
const (
	ReasonPathNotFound         = "PATH_NOT_FOUND"
	ReasonMethodNotAllowed     = "METHOD_NOT_ALLOWED"
	ReasonBodyMalformed        = "BODY_MALFORMED"
	ReasonBodyTooLarge         = "BODY_TOO_LARGE"
	ReasonBodyTimeout          = "BODY_TIMEOUT"
	ReasonUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	ReasonUnsupportedEncoding  = "UNSUPPORTED_ENCODING"
	ReasonBadParameter         = "BAD_PARAMETER"
	ReasonBadLastEventID       = "BAD_LAST_EVENT_ID"
	ReasonBadIdempotencyKey    = "BAD_IDEMPOTENCY_KEY"
	ReasonCrossOrigin          = "CROSS_ORIGIN"
	ReasonTooManyStreams       = "TOO_MANY_STREAMS"
	ReasonTooManyRequests      = "TOO_MANY_REQUESTS"
	ReasonServiceUnavailable   = "SERVICE_UNAVAILABLE"
	ReasonServiceTimeout       = "SERVICE_TIMEOUT"
	ReasonStopping             = "STOPPING"
	ReasonInternal             = "INTERNAL"
)

// retry is after how long a client may try again when nobody knows better.
const retry = time.Second

// withStatus gives an error an HTTP status that its code does not say.
func withStatus(httpStatus int, err error) error {
	return &runtime.HTTPStatusError{HTTPStatus: httpStatus, Err: err}
}

// PathNotFound is for a path that is no route.
func PathNotFound(path string) error {
	return apierr.New(codes.NotFound, Domain, ReasonPathNotFound,
		fmt.Sprintf("there is nothing at %s; GET /openapi.json lists the paths", Excerpt(path)))
}

// SlashAtTheEnd is for a path that is a route without the slash at its end.
func SlashAtTheEnd(path string) error {
	return apierr.New(codes.NotFound, Domain, ReasonPathNotFound,
		fmt.Sprintf("there is nothing at %s; leave out the slash at the end: %s", Excerpt(path), Excerpt(strings.TrimRight(path, "/"))))
}

// MethodNotAllowed is for a method that a path does not have.
func MethodNotAllowed(method, path string, allowed []string) error {
	return withStatus(http.StatusMethodNotAllowed, apierr.New(codes.Unimplemented, Domain, ReasonMethodNotAllowed,
		fmt.Sprintf("%s does not take %s; it takes %s", Excerpt(path), Excerpt(method), strings.Join(allowed, ", "))))
}

// BodyMalformed is for a body that is not the JSON of its message. The field may be empty.
func BodyMalformed(field, what string) error {
	var opts []apierr.Option
	if field != "" {
		opts = append(opts, apierr.Field(Excerpt(field), Excerpt(what)))
	}
	return apierr.New(codes.InvalidArgument, Domain, ReasonBodyMalformed, "the body cannot be read: "+Excerpt(what), opts...)
}

// BodyTooLarge is for a body, or a line of one, beyond the limit in bytes.
func BodyTooLarge(limit int64) error {
	return withStatus(http.StatusRequestEntityTooLarge, apierr.New(codes.InvalidArgument, Domain, ReasonBodyTooLarge,
		fmt.Sprintf("the body is larger than %d bytes", limit),
		apierr.Metadata(map[string]string{"limitBytes": strconv.FormatInt(limit, 10)})))
}

// BodyTimeout is for a body that takes too long to arrive.
func BodyTimeout(limit time.Duration) error {
	return withStatus(http.StatusRequestTimeout, apierr.New(codes.DeadlineExceeded, Domain, ReasonBodyTimeout,
		fmt.Sprintf("the body did not arrive within %s", limit)))
}

// UnsupportedMediaType is for a body that does not say that it is JSON.
func UnsupportedMediaType(got, want string) error {
	if got == "" {
		got = "nothing"
	}
	return withStatus(http.StatusUnsupportedMediaType, apierr.New(codes.InvalidArgument, Domain, ReasonUnsupportedMediaType,
		fmt.Sprintf("Content-Type says %s; send the body as JSON, with Content-Type: %s", Excerpt(got), want)))
}

// UnsupportedEncoding is for a body that is compressed, or encoded in another way.
func UnsupportedEncoding(got string) error {
	return withStatus(http.StatusUnsupportedMediaType, apierr.New(codes.InvalidArgument, Domain, ReasonUnsupportedEncoding,
		fmt.Sprintf("Content-Encoding says %s; send the body as it is, without that header", Excerpt(got))))
}

// BadParameter is for a query parameter that is unknown or malformed.
func BadParameter(name, what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadParameter,
		fmt.Sprintf("the query parameter %q %s", Excerpt(name), Excerpt(what)), apierr.Field(Excerpt(name), Excerpt(what)))
}

// BadQuery is for a query string that cannot be taken apart.
func BadQuery(err error) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadParameter, "the query cannot be read: "+Excerpt(err.Error()))
}

// BadLastEventID is for a header Last-Event-ID that is no sequence number.
func BadLastEventID(value, what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadLastEventID,
		fmt.Sprintf("the header Last-Event-ID %q %s", Excerpt(value), what), apierr.Field("after_seq", what))
}

// BadIdempotencyKey is for a header Idempotency-Key that cannot be the request's.
func BadIdempotencyKey(what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadIdempotencyKey,
		"the header Idempotency-Key "+what, apierr.Field("request_id", what))
}

// CrossOrigin is for a request that a page of another site made.
func CrossOrigin(origin string) error {
	return apierr.New(codes.PermissionDenied, Domain, ReasonCrossOrigin,
		fmt.Sprintf("requests of pages from %q are refused; the operator can allow that origin (allowed-origins)", Excerpt(origin)))
}

// TooManyStreams is for a stream beyond the limit: of the client's own, which is 429, or of the whole gateway, 503.
func TooManyStreams(limit int, own bool) error {
	if own {
		return apierr.New(codes.ResourceExhausted, Domain, ReasonTooManyStreams,
			fmt.Sprintf("this address has %d streams open, and may have no more; close one first", limit),
			apierr.RetryAfter(retry), apierr.Quota("client", fmt.Sprintf("at most %d streams at a time", limit)))
	}
	return apierr.New(codes.Unavailable, Domain, ReasonTooManyStreams,
		fmt.Sprintf("the gateway has %d streams open, and takes no more; try again", limit), apierr.RetryAfter(retry))
}

// TooManyRequests is for a client that asks more often than it may.
func TooManyRequests(after time.Duration) error {
	return apierr.New(codes.ResourceExhausted, Domain, ReasonTooManyRequests,
		"too many requests from this address; slow down", apierr.RetryAfter(after),
		apierr.Quota("client", "requests per second"))
}

// Stopping ends the streams of a gateway that stops.
func Stopping() error {
	return apierr.New(codes.Unavailable, Domain, ReasonStopping,
		"the gateway is stopping; reconnect and resume after the last event", apierr.RetryAfter(retry))
}

// ServiceTimeout is for a service that does not answer in time.
func ServiceTimeout(limit time.Duration) error {
	return apierr.New(codes.DeadlineExceeded, Domain, ReasonServiceTimeout,
		fmt.Sprintf("the service did not answer within %s; whether it did what was asked is not known", limit))
}

// Internal is for a fault of the gateway. What it was is in the log.
func Internal() error {
	return apierr.New(codes.Internal, Domain, ReasonInternal, "the gateway failed; the operator finds the cause in its log")
}

// Status returns what a client is told about err.
func Status(err error) *status.Status {
	var special *runtime.HTTPStatusError
	if errors.As(err, &special) {
		err = special.Err
	}
	st, ok := status.FromError(err)
	if apierr.Reason(err) != "" {
		return st
	}
	switch {
	case st.Code() == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return status.Convert(apierr.New(codes.DeadlineExceeded, Domain, ReasonServiceTimeout,
			"the service did not answer in time; whether it did what was asked is not known"))
	case st.Code() == codes.Canceled, errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "the request was cancelled")
	case !ok, st.Code() == codes.Internal, st.Code() == codes.Unknown:
		return status.Convert(Internal())
	case st.Code() == codes.Unavailable:
		return status.Convert(apierr.New(codes.Unavailable, Domain, ReasonServiceUnavailable,
			"the service behind the gateway cannot be reached; try again", apierr.RetryAfter(retry)))
	case st.Code() == codes.ResourceExhausted:
		return status.Convert(apierr.New(codes.ResourceExhausted, Domain, ReasonBodyTooLarge,
			"the request or its answer is larger than a service takes"))
	}
	return st
}

// HTTPStatus returns the HTTP status for err.
func HTTPStatus(err error) int {
	var special *runtime.HTTPStatusError
	if errors.As(err, &special) {
		return special.HTTPStatus
	}
	return runtime.HTTPStatusFromCode(Status(err).Code())
}

// RetryAfter returns how long a client shall wait, when the error says so.
func RetryAfter(st *status.Status) (time.Duration, bool) {
	info, ok := apierr.Detail[*errdetails.RetryInfo](st.Err())
	if !ok || info.GetRetryDelay() == nil {
		return 0, false
	}
	return info.GetRetryDelay().AsDuration(), true
}
