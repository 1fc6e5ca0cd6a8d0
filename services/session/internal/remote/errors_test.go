package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/remote"
)

// refused returns what a client gets of a refusal.
func refused(r protoreflect.Enum) error {
	return status.ErrorProto(status.Convert(apierr.Of(codes.FailedPrecondition, r, "it is refused")).Proto())
}

func TestReasonsBecomeErrors(t *testing.T) {
	t.Parallel()
	for r, want := range map[protoreflect.Enum]error{
		sandboxv1.ErrorReason_ERROR_REASON_STALE_EPOCH:         remote.ErrStaleEpoch,
		toolsv1.ErrorReason_ERROR_REASON_STALE_EPOCH:           remote.ErrStaleEpoch,
		sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND: remote.ErrNoWorkspace,
		sandboxv1.ErrorReason_ERROR_REASON_TREE_NOT_FOUND:      remote.ErrNoTree,
		toolsv1.ErrorReason_ERROR_REASON_OPERATION_NOT_FOUND:   remote.ErrNoOperation,
	} {
		cause := refused(r)
		err := fmt.Errorf("ask the peer: %w", remote.Error(cause))
		if !errors.Is(err, want) || !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want %v", apierr.Name(r), err, want)
		}
		if !errors.Is(apierr.Forward(err), want) || status.Code(err) != codes.FailedPrecondition || !apierr.Is(err, r) || apierr.Message(err) != "it is refused" {
			t.Errorf("%s: the peer's status is lost: %v", apierr.Name(r), err)
		}
	}
	for _, err := range []error{nil, errors.New("another"), status.Error(codes.Internal, "oops"), io.EOF} {
		if got := remote.Error(err); got != err { //nolint:errorlint // the very same error is wanted
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, r := range []protoreflect.Enum{sessionv1.ErrorReason_ERROR_REASON_STALE_EPOCH, toolsv1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND} {
		if err := remote.Error(refused(r)); errors.Is(err, remote.ErrStaleEpoch) || !errors.Is(err, remote.ErrPrecondition) {
			t.Errorf("%s became %v", apierr.Name(r), err)
		}
	}
}

func TestCodesBecomeKindsOfErrors(t *testing.T) {
	t.Parallel()
	kinds := []error{remote.ErrUnavailable, remote.ErrAborted, remote.ErrUnsupported, remote.ErrRefused, remote.ErrInvalid, remote.ErrPrecondition, remote.ErrExhausted}
	for code, want := range map[codes.Code][]error{
		codes.Unavailable:        {remote.ErrUnavailable},
		codes.DeadlineExceeded:   {remote.ErrUnavailable},
		codes.Canceled:           {remote.ErrAborted},
		codes.Aborted:            {remote.ErrAborted},
		codes.Unimplemented:      {remote.ErrUnsupported},
		codes.InvalidArgument:    {remote.ErrRefused, remote.ErrInvalid},
		codes.NotFound:           {remote.ErrRefused, remote.ErrInvalid},
		codes.FailedPrecondition: {remote.ErrRefused, remote.ErrPrecondition},
		codes.ResourceExhausted:  {remote.ErrRefused, remote.ErrExhausted},
		codes.AlreadyExists:      {remote.ErrRefused},
		codes.PermissionDenied:   {remote.ErrRefused},
		codes.Unauthenticated:    {remote.ErrRefused},
		codes.Internal:           nil,
		codes.Unknown:            nil,
		codes.DataLoss:           nil,
		codes.OutOfRange:         nil,
	} {
		cause := status.Error(code, "why")
		err := remote.Error(cause)
		var got []error
		for _, kind := range kinds {
			if errors.Is(fmt.Errorf("ask the peer: %w", err), kind) {
				got = append(got, kind)
			}
		}
		if !slices.Equal(got, want) || err.Error() != cause.Error() || status.Code(err) != code || apierr.Message(err) != "why" {
			t.Errorf("%v: %v with the kinds %v, not %v", code, err, got, want)
		}
	}
}

// refusing is a connection to a peer that refuses everything.
type refusing struct{ grpc.ClientStream }

func (r refusing) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return r.RecvMsg(nil)
}

func (r refusing) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return r, nil
}

func (r refusing) SendMsg(any) error { return nil }
func (r refusing) CloseSend() error  { return nil }

func (r refusing) RecvMsg(any) error {
	return refused(sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_NOT_FOUND)
}

func TestThePeersReturnTheErrors(t *testing.T) {
	t.Parallel()
	sandbox := remote.NewSandbox(refusing{})
	if err := sandbox.FenceWorkspace(t.Context(), &commonv1.CallRef{}); !errors.Is(err, remote.ErrNoWorkspace) {
		t.Errorf("a call: %v", err)
	}
	if _, err := sandbox.ExportWorkspace(t.Context(), remote.Place{}); !errors.Is(err, remote.ErrNoWorkspace) {
		t.Errorf("a stream: %v", err)
	}
}
