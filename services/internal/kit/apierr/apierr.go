// Package apierr makes the errors that callers of an RPC see, and reads them on the other side.
//
// An error of the API has a canonical code, a message that is safe to show, and google.rpc details; the detail ErrorInfo
// with its domain and reason is the part that programs compare. Only errors made here leave a server: the interceptors
// replace everything else by an INTERNAL error with a fixed text, so that the words of a driver or a file system never
// reach a client.
package apierr

import (
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Domain is the domain of the errors of the plumbing itself, which no service has seen.
const Domain = "fairlead.dev"

// Reasons of the errors in Domain.
const (
	ReasonInternal             = "INTERNAL"
	ReasonUnimplemented        = "UNIMPLEMENTED"
	ReasonInvalidRequest       = "INVALID_REQUEST"
	ReasonInternalTokenMissing = "INTERNAL_TOKEN_MISSING"
	ReasonInternalTokenInvalid = "INTERNAL_TOKEN_INVALID"
	ReasonCredentialMissing    = "CREDENTIAL_MISSING"
	ReasonCredentialMalformed  = "CREDENTIAL_MALFORMED"
	ReasonCredentialUnverified = "CREDENTIAL_UNVERIFIED"
	ReasonCredentialInvalid    = "CREDENTIAL_INVALID"
	ReasonCredentialChanged    = "CREDENTIAL_CHANGED"
	ReasonRoleRequired         = "ROLE_REQUIRED"
	ReasonScopeRequired        = "SCOPE_REQUIRED"
	ReasonOtherUser            = "OTHER_USER"
	ReasonDraining             = "DRAINING"
	ReasonTransport            = "TRANSPORT"
	ReasonHostNotAllowed       = "HOST_NOT_ALLOWED"
	ReasonOriginNotAllowed     = "ORIGIN_NOT_ALLOWED"
)

// Error is an error of the API. Make one with New. Servers return it from handlers unchanged or wrapped with
// %w; the text of the wrapping is logged and not sent.
type Error struct {
	st    *status.Status
	cause error
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.st.Code().String() + ": " + e.st.Message() }

// GRPCStatus returns the status that grpc-go sends.
func (e *Error) GRPCStatus() *status.Status { return e.st }

// Unwrap returns the error that was passed to Forward, if any.
func (e *Error) Unwrap() error { return e.cause }

type details struct {
	info    *errdetails.ErrorInfo
	bad     *errdetails.BadRequest
	pre     *errdetails.PreconditionFailure
	quota   *errdetails.QuotaFailure
	request *errdetails.RequestInfo
	others  []protoadapt.MessageV1
}

// Option adds a detail to an error.
type Option func(*details)

// Metadata adds entries to the error's ErrorInfo. Keys are lower camel case; values are shown to clients.
func Metadata(m map[string]string) Option {
	return func(d *details) {
		if d.info.Metadata == nil {
			d.info.Metadata = make(map[string]string, len(m))
		}
		for k, v := range m {
			d.info.Metadata[k] = v
		}
	}
}

// Field names a wrong field of the request, by its path of proto field names ("config.env[2].key"), and the
// fault. Clients get the first MaxViolations of them.
func Field(path, description string) Option {
	return func(d *details) {
		if d.bad == nil {
			d.bad = &errdetails.BadRequest{}
		}
		d.bad.FieldViolations = append(d.bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: path, Description: description})
	}
}

// Resource names the resource of the error, for NOT_FOUND and ALREADY_EXISTS.
func Resource(typ, name, description string) Option {
	return func(d *details) {
		d.others = append(d.others, &errdetails.ResourceInfo{ResourceType: typ, ResourceName: name, Description: description})
	}
}

// RetryAfter says that the same request may be sent again after a while, for UNAVAILABLE and RESOURCE_EXHAUSTED.
func RetryAfter(after time.Duration) Option {
	return func(d *details) {
		d.others = append(d.others, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
}

// Precondition names the condition of the state that did not hold, for
// FAILED_PRECONDITION.
func Precondition(typ, subject, description string) Option {
	return func(d *details) {
		if d.pre == nil {
			d.pre = &errdetails.PreconditionFailure{}
		}
		d.pre.Violations = append(d.pre.Violations, &errdetails.PreconditionFailure_Violation{Type: typ, Subject: subject, Description: description})
	}
}

// Quota names the limit that was reached, for RESOURCE_EXHAUSTED.
func Quota(subject, description string) Option {
	return func(d *details) {
		if d.quota == nil {
			d.quota = &errdetails.QuotaFailure{}
		}
		d.quota.Violations = append(d.quota.Violations, &errdetails.QuotaFailure_Violation{Subject: subject, Description: description})
	}
}

// requestInfo names the request for reports of a fault; the interceptors add it to INTERNAL errors.
func requestInfo(id string) Option {
	return func(d *details) { d.request = &errdetails.RequestInfo{RequestId: id} }
}

// New returns an error of the API. The message says what happened, why, and what to do; it is sent
// as it is, within the limits of an error's size. New with codes.OK is a programming error and returns INTERNAL instead of hiding the error.
func New(c codes.Code, domain, reason, message string, opts ...Option) error {
	return newError(c, domain, reason, message, opts...)
}

func newError(c codes.Code, domain, reason, message string, opts ...Option) *Error {
	if c == codes.OK {
		c = codes.Internal
	}
	d := details{info: &errdetails.ErrorInfo{Domain: domain, Reason: reason}}
	for _, o := range opts {
		o(&d)
	}
	d.bound()
	message = cut(message, maxMessage)
	all := []protoadapt.MessageV1{d.info}
	if d.bad != nil {
		all = append(all, d.bad)
	}
	if d.pre != nil {
		all = append(all, d.pre)
	}
	if d.quota != nil {
		all = append(all, d.quota)
	}
	if d.request != nil {
		all = append(all, d.request)
	}
	st, err := status.New(c, message).WithDetails(append(all, d.others...)...)
	if err != nil { // only invalid UTF-8 in a detail gets here; the code and the message are still worth sending
		st = status.New(c, message)
	}
	return &Error{st: st}
}

// Forward passes a peer's status on unchanged: its code, its message and its details. Use it where the caller
// requested exactly what the peer does; elsewhere, map the peer's reasons to one's own errors. It returns
// nil, or an err without a status, unchanged.
func Forward(err error) error {
	if err == nil {
		return nil
	}
	if ours := (*Error)(nil); errors.As(err, &ours) {
		return err
	}
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return err
	}
	return &Error{st: s.GRPCStatus(), cause: err}
}

// Mark returns a peer's error that is also each of is, for errors.Is. It keeps the text and the status of err.
func Mark(err error, is ...error) error { return &marked{err, is} }

type marked struct {
	error
	is []error
}

func (m *marked) Unwrap() []error { return append([]error{m.error}, m.is...) }

// GRPCStatus returns the peer's status, without which the text of the status would change.
func (m *marked) GRPCStatus() *status.Status { return status.Convert(m.error) }

// Code returns the canonical code of err: OK for nil, UNKNOWN for an error without a status.
func Code(err error) codes.Code {
	if st := statusOf(err); st != nil {
		return st.Code()
	}
	if err == nil {
		return codes.OK
	}
	return codes.Unknown
}

// Reason returns the reason of err's ErrorInfo, on either side of the wire, or "".
func Reason(err error) string {
	info, _ := Detail[*errdetails.ErrorInfo](err)
	return info.GetReason()
}

// ErrorDomain returns the domain of err's ErrorInfo, or "".
func ErrorDomain(err error) string {
	info, _ := Detail[*errdetails.ErrorInfo](err)
	return info.GetDomain()
}

// Message returns the text of err for people: the status's message without its code, if err has a status.
func Message(err error) string {
	if st := statusOf(err); st != nil {
		return st.Message()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// Detail returns the first detail of type T in err's status.
func Detail[T proto.Message](err error) (T, bool) {
	var zero T
	st := statusOf(err)
	if st == nil {
		return zero, false
	}
	for _, d := range st.Details() {
		if t, ok := d.(T); ok {
			return t, true
		}
	}
	return zero, false
}

// statusOf returns the status in err or in an error that it wraps, without the text of the wrapping.
func statusOf(err error) *status.Status {
	var s interface{ GRPCStatus() *status.Status }
	if err == nil || !errors.As(err, &s) {
		return nil
	}
	return s.GRPCStatus()
}
