// Package remote turns the codes of the sandbox's errors into errors that callers compare with errors.Is. Such an error
// keeps the sandbox's status: its code, message and details. What a refusal is about, its reason says.
package remote

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

var (
	// ErrUnavailable means that the sandbox cannot be reached.
	ErrUnavailable = errors.New("the sandbox is unavailable")
	// ErrInterrupted means that the request did not get an answer in time.
	ErrInterrupted = errors.New("the request was interrupted")
	// ErrNotFound means that the sandbox does not have what the request names.
	ErrNotFound = errors.New("the sandbox does not have it")
	// ErrNotServed means that the sandbox does not serve this service: it is of another version or does not trust it.
	ErrNotServed = errors.New("the sandbox does not serve this service")
)

var kinds = map[codes.Code]error{
	codes.Unavailable:      ErrUnavailable,
	codes.Canceled:         ErrInterrupted,
	codes.DeadlineExceeded: ErrInterrupted,
	codes.NotFound:         ErrNotFound,
	codes.Unauthenticated:  ErrNotServed,
	codes.PermissionDenied: ErrNotServed,
	codes.Unimplemented:    ErrNotServed,
}

// Sandbox returns the connection to the sandbox service with such errors. Its calls are made by this service.
func Sandbox(conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	return rpc.WithErrors(rpc.AsService(conn), mark)
}

// Cut returns the error of a stream that ended before its last message.
func Cut(message string) error { return mark(status.Error(codes.Unavailable, message)) }

func mark(err error) error {
	if kind := kinds[status.Code(err)]; kind != nil {
		return apierr.Mark(err, kind)
	}
	return err
}
