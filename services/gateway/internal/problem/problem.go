// Package problem has the gateway's errors, and writes every error, its own and those of the services, as
// HTTP.
//
// The body of an error is a google.rpc.Status as JSON. Errors of the services pass unchanged. grpc-go's own
// errors about a connection are replaced by a fixed text, because they contain internal addresses.
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
	ReasonBadRange             = "BAD_RANGE"
	ReasonBadCondition         = "BAD_CONDITION"
	ReasonPreconditionFailed   = "PRECONDITION_FAILED"
	ReasonBadLastEventID       = "BAD_LAST_EVENT_ID"
	ReasonBadIdempotencyKey    = "BAD_IDEMPOTENCY_KEY"
	ReasonCrossOrigin          = "CROSS_ORIGIN"
	ReasonTooManyStreams       = "TOO_MANY_STREAMS"
	ReasonTooManyRequests      = "TOO_MANY_REQUESTS"
	ReasonServiceUnavailable   = "SERVICE_UNAVAILABLE"
	ReasonServiceTimeout       = "SERVICE_TIMEOUT"
	ReasonStopping             = "STOPPING"
	ReasonInternal             = "INTERNAL"
	ReasonNoClientStreams      = "NO_CLIENT_STREAMS"
)

// retry is the default wait before a client may retry.
const retry = time.Second

// WithStatus sets an HTTP status that differs from the one of the error's code.
func WithStatus(httpStatus int, err error) error {
	return &runtime.HTTPStatusError{HTTPStatus: httpStatus, Err: err}
}

// PathNotFound returns the error for a path without a route.
func PathNotFound(path string) error {
	return apierr.New(codes.NotFound, Domain, ReasonPathNotFound,
		fmt.Sprintf("there is nothing at %s; GET /openapi.json lists the paths", Excerpt(path)))
}

// SlashAtTheEnd returns the error for a path that is a route without the slash at
// its end.
func SlashAtTheEnd(path string) error {
	return apierr.New(codes.NotFound, Domain, ReasonPathNotFound,
		fmt.Sprintf("there is nothing at %s; leave out the slash at the end: %s", Excerpt(path), Excerpt(strings.TrimRight(path, "/"))))
}

// MethodNotAllowed returns the error for a method that a path does not have.
func MethodNotAllowed(method, path string, allowed []string) error {
	return WithStatus(http.StatusMethodNotAllowed, apierr.New(codes.Unimplemented, Domain, ReasonMethodNotAllowed,
		fmt.Sprintf("%s does not take %s; it takes %s", Excerpt(path), Excerpt(method), strings.Join(allowed, ", "))))
}

// BodyMalformed returns the error for a body that is not the JSON of its message. The field may
// be empty.
func BodyMalformed(field, what string) error {
	var opts []apierr.Option
	if field != "" {
		opts = append(opts, apierr.Field(Excerpt(field), Excerpt(what)))
	}
	return apierr.New(codes.InvalidArgument, Domain, ReasonBodyMalformed, "the body cannot be read: "+Excerpt(what), opts...)
}

// BodyTooLarge returns the error for a body, or a line of one, beyond the limit in
// bytes.
func BodyTooLarge(limit int64) error {
	return WithStatus(http.StatusRequestEntityTooLarge, apierr.New(codes.InvalidArgument, Domain, ReasonBodyTooLarge,
		fmt.Sprintf("the body is larger than %d bytes", limit),
		apierr.Metadata(map[string]string{"limitBytes": strconv.FormatInt(limit, 10)})))
}

// BodyTimeout returns the error for a body that takes too long to arrive.
func BodyTimeout(limit time.Duration) error {
	return WithStatus(http.StatusRequestTimeout, apierr.New(codes.DeadlineExceeded, Domain, ReasonBodyTimeout,
		fmt.Sprintf("the body did not arrive within %s", limit)))
}

// UnsupportedMediaType returns the error for a body with another type than JSON.
func UnsupportedMediaType(got, want string) error {
	if got == "" {
		got = "nothing"
	}
	return WithStatus(http.StatusUnsupportedMediaType, apierr.New(codes.InvalidArgument, Domain, ReasonUnsupportedMediaType,
		fmt.Sprintf("Content-Type says %s; send the body as JSON, with Content-Type: %s", Excerpt(got), want)))
}

// UnsupportedEncoding returns the error for a compressed or otherwise encoded body.
func UnsupportedEncoding(got string) error {
	return WithStatus(http.StatusUnsupportedMediaType, apierr.New(codes.InvalidArgument, Domain, ReasonUnsupportedEncoding,
		fmt.Sprintf("Content-Encoding says %s; send the body as it is, without that header", Excerpt(got))))
}

// BadParameter returns the error for an unknown or malformed query parameter.
func BadParameter(name, what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadParameter,
		fmt.Sprintf("the query parameter %q %s", Excerpt(name), Excerpt(what)), apierr.Field(Excerpt(name), Excerpt(what)))
}

// BadQuery returns the error for a query string that cannot be parsed.
func BadQuery(err error) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadParameter, "the query cannot be read: "+Excerpt(err.Error()))
}

// BadRange returns the error for a header Range that cannot be served.
func BadRange(what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadRange, "the header Range "+what)
}

// RangeNotSatisfiable returns the error for ranges that are all beyond the end of a file.
func RangeNotSatisfiable() error {
	return WithStatus(http.StatusRequestedRangeNotSatisfiable, apierr.New(codes.OutOfRange, Domain, ReasonBadRange,
		"the header Range names no byte of the file; Content-Range has the file's size"))
}

// BadCondition returns the error for a conditional header that a path does not understand.
func BadCondition(name, what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadCondition, "the header "+name+" "+what)
}

// PreconditionFailed returns a service's error about a condition that the request's headers set.
func PreconditionFailed(err error) error { return WithStatus(http.StatusPreconditionFailed, err) }

// Changed returns the error for a file that is not the one that the headers of a request name.
func Changed() error {
	return PreconditionFailed(apierr.New(codes.FailedPrecondition, Domain, ReasonPreconditionFailed,
		"the file has changed: its ETag or time is not the one of the request; read it again"))
}

// BadLastEventID returns the error for a header Last-Event-ID that is not a sequence
// number.
func BadLastEventID(value, what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadLastEventID,
		fmt.Sprintf("the header Last-Event-ID %q %s", Excerpt(value), what), apierr.Field("after_seq", what))
}

// BadIdempotencyKey returns the error for an invalid header Idempotency-Key.
func BadIdempotencyKey(what string) error {
	return apierr.New(codes.InvalidArgument, Domain, ReasonBadIdempotencyKey,
		"the header Idempotency-Key "+what, apierr.Field("request_id", what))
}

// CrossOrigin returns the error for a request from a page of another site.
func CrossOrigin(origin string) error {
	return apierr.New(codes.PermissionDenied, Domain, ReasonCrossOrigin,
		fmt.Sprintf("requests of pages from %q are refused; the operator can allow that origin (allowed-origins)", Excerpt(origin)))
}

// Holder is what a limit of streams belongs to.
type Holder string

// Holders.
const (
	OfUser    Holder = "this user"
	OfAddress Holder = "this address"
	OfServer  Holder = "the gateway"
)

// keys are the gateway's keys of the limits.
var keys = map[Holder]string{
	OfUser: "gateway.max-streams-per-user", OfAddress: "gateway.max-streams-per-client", OfServer: "gateway.max-streams",
}

// TooManyStreams returns the error for a stream beyond the limit: of a user or an address, which is 429, or of the whole
// gateway, 503.
func TooManyStreams(of Holder, limit int) error {
	if of == OfServer {
		return apierr.New(codes.Unavailable, Domain, ReasonTooManyStreams,
			fmt.Sprintf("%s has %d streams open, and takes no more (%s); try again", of, limit, keys[of]), apierr.RetryAfter(retry))
	}
	return apierr.New(codes.ResourceExhausted, Domain, ReasonTooManyStreams,
		fmt.Sprintf("%s has %d streams open, and may have no more (%s); close one first", of, limit, keys[of]),
		apierr.RetryAfter(retry), apierr.Quota("client", fmt.Sprintf("%s: at most %d streams at a time", keys[of], limit)))
}

// TooManyRequests returns the error for a client with too many requests.
func TooManyRequests(after time.Duration) error {
	return apierr.New(codes.ResourceExhausted, Domain, ReasonTooManyRequests,
		"too many requests from this address; slow down", apierr.RetryAfter(after),
		apierr.Quota("client", "requests per second"))
}

// NoClientStreams returns the error for an RPC that takes a stream, over gRPC-Web.
func NoClientStreams(method string) error {
	return apierr.New(codes.Unimplemented, Domain, ReasonNoClientStreams,
		fmt.Sprintf("%s takes a stream, which gRPC-Web cannot send; use gRPC or REST", method))
}

// Reason returns the reason of an error, or "".
func Reason(err error) string { return apierr.Reason(err) }

// Stopping returns the error that ends the streams of a stopping gateway.
func Stopping() error {
	return apierr.New(codes.Unavailable, Domain, ReasonStopping,
		"the gateway is stopping; reconnect and resume after the last event", apierr.RetryAfter(retry))
}

// ServiceTimeout returns the error for a service that does not answer in time.
func ServiceTimeout(limit time.Duration) error {
	return apierr.New(codes.DeadlineExceeded, Domain, ReasonServiceTimeout,
		fmt.Sprintf("the service did not answer within %s; the outcome of the request is unknown", limit))
}

// Internal returns the error for a fault of the gateway. The log has the cause.
func Internal() error {
	return apierr.New(codes.Internal, Domain, ReasonInternal, "the gateway failed; the operator finds the cause in its log")
}

// Status returns the client's view of err.
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
			"the service did not answer in time; the outcome of the request is unknown"))
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

// Forward returns the client's view of err as an error that leaves a gRPC server unchanged.
func Forward(err error) error { return apierr.Forward(Status(err).Err()) }

// HTTPStatus returns the HTTP status for err.
func HTTPStatus(err error) int {
	var special *runtime.HTTPStatusError
	if errors.As(err, &special) {
		return special.HTTPStatus
	}
	return runtime.HTTPStatusFromCode(Status(err).Code())
}

// RetryAfter returns the wait that the error requests, if any.
func RetryAfter(st *status.Status) (time.Duration, bool) {
	info, ok := apierr.Detail[*errdetails.RetryInfo](st.Err())
	if !ok || info.GetRetryDelay() == nil {
		return 0, false
	}
	return info.GetRetryDelay().AsDuration(), true
}
