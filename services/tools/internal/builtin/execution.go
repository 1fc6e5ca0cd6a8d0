package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	// reattachWait is the first wait before a broken stream to the sandbox is
	// opened again; it doubles each time, up to reattachMaxWait.
	reattachWait    = 50 * time.Millisecond
	reattachMaxWait = time.Second
	// cancelTimeout bounds how long killing a command may take.
	cancelTimeout = 30 * time.Second
)

// execution follows one command in the sandbox, over broken streams.
type execution struct {
	*sandbox
	call    tool.Call
	command string
	timeout time.Duration
	sink    tool.Sink
	// background is set for a command that is left running once it has started.
	background bool
	// wished is set when the time-out is not the model's own: it may be shortened.
	wished bool

	output  output
	started bool  // the sandbox reported that it runs
	stdout  int64 // bytes seen
	stderr  int64

	killed  bool  // it was to be stopped, and none of its processes runs any more
	killErr error // why the command could not be killed
	openErr error // why the call must not be started again
}

// run follows the command to its end. When ctx ends, it kills the command and
// waits for its end, unless the call is released: then the command keeps
// running.
func (e *execution) run(ctx context.Context) (*sandboxv1.ExecExited, error) {
	streams, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		// A released command keeps running for the replica that takes the call
		// over.
		goes := errors.Is(context.Cause(ctx), tool.ErrClosing) || errors.Is(context.Cause(ctx), tool.ErrTakenOver) ||
			errors.Is(context.Cause(ctx), tool.ErrPlaceLost)
		if !goes {
			e.killErr = e.kill(streams)
			e.killed = e.killErr == nil
		}
		if goes || e.killErr != nil {
			drop()
		}
	})
	exited, err := e.follow(streams)
	if !stop() {
		<-done
	}
	switch {
	case e.killErr != nil && exited == nil: // also for a command that was to be left running
		return nil, e.killErr
	case e.killed && err == nil && exited == nil: // it was to be left running, and was stopped at that moment
		return &sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_CANCELLED}, nil
	}
	return exited, err
}

func (e *execution) kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	_, err := e.execs.CancelExec(to(ctx, e.call), &sandboxv1.CancelExecRequest{Call: ref(e.call)})
	return err
}

// follow reads the command's output to its end. It waits for a sandbox that
// cannot be reached, for as long as the command may run: until then the call is
// only late.
func (e *execution) follow(ctx context.Context) (*sandboxv1.ExecExited, error) {
	// A call that was started before is attached to first: starting a command
	// whose end was recorded meanwhile would run it twice.
	attach, wait := e.call.Resumed, reattachWait
	var down time.Time // since when the sandbox cannot be reached
	for {
		seen := e.stdout + e.stderr
		exited, err := e.once(ctx, attach)
		switch {
		case err == nil:
			return exited, nil
		case apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_EXEC_ACKNOWLEDGED):
			// Its result was recorded, or expired without being fetched.
			if e.openErr = e.open(ctx); e.openErr != nil {
				return nil, e.openErr
			}
			return &sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_LOST}, nil
		case apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND) && (e.started || e.call.Begun):
			return &sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_LOST}, nil
		case apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND) && attach:
			// The sandbox does not know it: it was never started, or its result
			// was recorded long ago.
			if e.openErr = e.open(ctx); e.openErr != nil {
				return nil, e.openErr
			}
			attach = false
			continue
		case !errors.Is(err, remote.ErrUnavailable) || ctx.Err() != nil:
			return nil, err
		case down.IsZero() || e.stdout+e.stderr > seen: // it had made progress
			down, wait = time.Now(), reattachWait
		case time.Since(down) > e.timeout:
			return nil, err
		}
		attach = attach || e.started
		if !pause(ctx, wait) {
			return nil, err
		}
		wait = min(2*wait, reattachMaxWait)
	}
}

// open returns an error unless the call may still be made by this replica.
func (e *execution) open(ctx context.Context) error {
	if e.call.Open == nil {
		return nil
	}
	return e.call.Open(ctx)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once opens one stream and reads it to its end.
func (e *execution) once(ctx context.Context, attach bool) (*sandboxv1.ExecExited, error) {
	ctx, cancel := context.WithCancel(to(ctx, e.call))
	defer cancel()
	stream, err := e.execs.Exec(ctx)
	if err != nil {
		return nil, err
	}
	// Recv returns the error of Send.
	if err := stream.Send(e.first(attach)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	_ = stream.CloseSend()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, remote.Cut("the sandbox ended the stream before the command's end")
		}
		if err != nil {
			return nil, err
		}
		if exited := m.GetExited(); exited != nil {
			return exited, nil
		}
		e.take(m)
		if e.background && e.started {
			return nil, nil //nolint:nilnil // it has not ended, and nobody waits for it here
		}
	}
}

func (e *execution) first(attach bool) *sandboxv1.ExecRequest {
	if attach {
		return &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Attach{Attach: &sandboxv1.ExecAttach{
			Call: ref(e.call), StdoutOffset: e.stdout, StderrOffset: e.stderr,
		}}}
	}
	return &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{
		Call:           ref(e.call),
		Argv:           []string{"/bin/bash", "-c", e.command},
		Timeout:        durationpb.New(e.timeout),
		ShortenTimeout: e.wished,
	}}}
}

// take keeps the new part of a piece and passes it on.
func (e *execution) take(m *sandboxv1.ExecResponse) {
	switch k := m.GetKind().(type) {
	case *sandboxv1.ExecResponse_Started:
		if !e.started && k.Started.GetAttached() {
			e.sink.Progress(fmt.Sprintf("attached again to the command of call %s", e.call.ID))
		}
		if !e.started && e.call.Seen != nil {
			e.call.Seen()
		}
		e.started = true
	case *sandboxv1.ExecResponse_Stdout:
		e.pass("stdout", &e.stdout, k.Stdout)
	case *sandboxv1.ExecResponse_Stderr:
		e.pass("stderr", &e.stderr, k.Stderr)
	}
}

func (e *execution) pass(stream string, seen *int64, o *sandboxv1.ExecOutput) {
	data := o.GetData()
	end := o.GetOffset() + int64(len(data))
	if end <= *seen {
		return
	}
	if o.GetOffset() < *seen {
		data = data[*seen-o.GetOffset():]
	}
	*seen = end
	_, _ = e.output.Write(data)
	e.sink.Output(stream, data)
}
