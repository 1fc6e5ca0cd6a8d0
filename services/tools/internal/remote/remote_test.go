package remote_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
)

// failing is a connection to a sandbox that fails with a code.
type failing struct {
	grpc.ClientStream
	code codes.Code
}

func (f failing) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return f.RecvMsg(nil)
}

func (f failing) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return f, nil
}

func (f failing) RecvMsg(any) error { return status.Error(f.code, "why") }

func TestCodesOfTheSandboxBecomeErrors(t *testing.T) {
	t.Parallel()
	kinds := []error{remote.ErrUnavailable, remote.ErrInterrupted, remote.ErrNotFound, remote.ErrNotServed}
	for code, want := range map[codes.Code]error{
		codes.Unavailable:        remote.ErrUnavailable,
		codes.Canceled:           remote.ErrInterrupted,
		codes.DeadlineExceeded:   remote.ErrInterrupted,
		codes.NotFound:           remote.ErrNotFound,
		codes.Unauthenticated:    remote.ErrNotServed,
		codes.PermissionDenied:   remote.ErrNotServed,
		codes.Unimplemented:      remote.ErrNotServed,
		codes.FailedPrecondition: nil,
		codes.Internal:           nil,
	} {
		execs := sandboxv1.NewExecServiceClient(remote.Sandbox(failing{code: code}))
		_, called := execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{})
		stream, err := execs.Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, streamed := stream.Recv()
		for how, err := range map[string]error{"a call": called, "a stream": streamed} {
			for _, kind := range kinds {
				if errors.Is(fmt.Errorf("ask: %w", err), kind) != (kind == want) { //nolint:errorlint // they are the kinds themselves
					t.Errorf("%s with %v is %v: %v", how, code, kind, err)
				}
			}
			if status.Code(err) != code || apierr.Message(err) != "why" {
				t.Errorf("%s with %v: %v", how, code, err)
			}
		}
	}
	if err := remote.Cut("it ended"); !errors.Is(err, remote.ErrUnavailable) || apierr.Message(err) != "it ended" {
		t.Errorf("a stream that ended early: %v", err)
	}
}
