package sandboxtest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// exec is a command. Each line of its script is one of: `out TEXT`, `err TEXT`,
// `flood BYTES`, `wait GATE`, `exit CODE`, `timeout`.
type exec struct {
	ctx  context.Context
	kill context.CancelFunc

	mu      sync.Mutex
	pieces  []*sandboxv1.ExecResponse
	offsets map[string]int64
	exited  *sandboxv1.ExecExited
	network []*sandboxv1.NetworkUse
	changed chan struct{}
}

func (e *exec) write(stream, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := &sandboxv1.ExecOutput{Offset: e.offsets[stream], Data: []byte(text)}
	e.offsets[stream] += int64(len(text))
	if stream == "err" {
		e.pieces = append(e.pieces, &sandboxv1.ExecResponse{Kind: &sandboxv1.ExecResponse_Stderr{Stderr: o}})
	} else {
		e.pieces = append(e.pieces, &sandboxv1.ExecResponse{Kind: &sandboxv1.ExecResponse_Stdout{Stdout: o}})
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *exec) end(x *sandboxv1.ExecExited) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.exited == nil {
		x.Network = e.network
		e.exited = x
		close(e.changed)
		e.changed = make(chan struct{})
	}
}

func (s *Sandbox) play(e *exec, script string) {
	for line := range strings.Lines(script) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "out", "err":
			e.write(word, rest+"\n")
		case "flood":
			n, _ := strconv.Atoi(rest)
			for chunk := 32 << 10; n > 0; n -= chunk {
				e.write("out", strings.Repeat("x", min(n, chunk)))
			}
		case "wait":
			select {
			case <-s.gate(rest):
			case <-e.ctx.Done():
				e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_CANCELLED})
				return
			}
		case "fetch":
			e.mu.Lock()
			e.network = append(e.network, &sandboxv1.NetworkUse{Host: rest, Outcome: sandboxv1.NetworkOutcome_NETWORK_OUTCOME_DONE})
			e.mu.Unlock()
		case "exit":
			n, _ := strconv.ParseInt(rest, 10, 32)
			e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_EXITED, ExitCode: int32(n)})
			return
		case "timeout":
			e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT})
			return
		case "oom":
			e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_OUT_OF_MEMORY, Message: "it wanted more than 64 MiB"})
			return
		}
	}
	e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_EXITED})
}

// ErrBroken is passed to Fail. It breaks a stream without a status.
var ErrBroken = errors.New("broken")

// Exec implements ExecService.
func (s *Sandbox) Exec(stream grpc.BidiStreamingServer[sandboxv1.ExecRequest, sandboxv1.ExecResponse]) error {
	q, err := stream.Recv()
	if err != nil {
		return err
	}
	e, attached, err := s.open(stream.Context(), q)
	if errors.Is(err, ErrBroken) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := stream.Send(&sandboxv1.ExecResponse{Kind: &sandboxv1.ExecResponse_Started{Started: &sandboxv1.ExecStarted{Attached: attached}}}); err != nil {
		return err
	}
	// An attached stream may begin anywhere. This one begins at the start,
	// because a client must handle output that it has seen before.
	for sent := 0; ; {
		e.mu.Lock()
		pieces, exited, changed := e.pieces[sent:], e.exited, e.changed
		e.mu.Unlock()
		for _, p := range pieces {
			if err := stream.Send(p); err != nil {
				return err
			}
		}
		sent += len(pieces)
		if len(pieces) > 0 {
			continue
		}
		if exited != nil {
			return stream.Send(&sandboxv1.ExecResponse{Kind: &sandboxv1.ExecResponse_Exited{Exited: exited}})
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (s *Sandbox) open(ctx context.Context, q *sandboxv1.ExecRequest) (e *exec, attached bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := q.GetStart().GetCall()
	if q.GetAttach() != nil {
		c = q.GetAttach().GetCall()
	}
	tenant, err := s.enterFor(ctx, c, q.GetAttach().GetOperation())
	if err != nil {
		return nil, false, err
	}
	key := tenant + "/" + c.GetCallId()
	if s.marks[key] {
		return nil, false, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED, "the call was cancelled", nil)
	}
	if e := s.execs[key]; e != nil {
		return e, true, nil
	}
	if s.settled[key] {
		return nil, false, Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_EXEC_ACKNOWLEDGED, "the exec was acknowledged", nil)
	}
	if q.GetAttach() != nil {
		return nil, false, Refuse(codes.NotFound, sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND, "there is no such exec", nil)
	}
	e = &exec{offsets: map[string]int64{}, changed: make(chan struct{})}
	e.ctx, e.kill = context.WithCancel(context.WithoutCancel(ctx))
	s.execs[key] = e
	s.starts[c.GetCallId()]++
	argv := q.GetStart().GetArgv()
	s.wg.Go(func() { s.play(e, argv[len(argv)-1]) })
	s.started <- c.GetCallId()
	return e, false, nil
}

// AcknowledgeExec implements ExecService.
func (s *Sandbox) AcknowledgeExec(ctx context.Context, q *sandboxv1.AcknowledgeExecRequest) (*sandboxv1.AcknowledgeExecResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant, err := s.enterFor(ctx, q.GetCall(), q.GetOperation())
	if err != nil {
		return nil, err
	}
	key := tenant + "/" + q.GetCall().GetCallId()
	if s.execs[key] != nil {
		s.settled[key] = true
	}
	delete(s.execs, key)
	s.acked = append(s.acked, q.GetCall().GetCallId())
	return &sandboxv1.AcknowledgeExecResponse{}, nil
}

// CancelExec implements ExecService.
func (s *Sandbox) CancelExec(ctx context.Context, q *sandboxv1.CancelExecRequest) (*sandboxv1.CancelExecResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tenant, err := s.enterFor(ctx, q.GetCall(), q.GetOperation())
	if err != nil {
		return nil, err
	}
	key := tenant + "/" + q.GetCall().GetCallId()
	s.marks[key] = true
	e := s.execs[key]
	if e == nil {
		return &sandboxv1.CancelExecResponse{}, nil
	}
	e.end(&sandboxv1.ExecExited{Reason: sandboxv1.ExitReason_EXIT_REASON_CANCELLED})
	e.kill()
	return &sandboxv1.CancelExecResponse{Exited: e.exited}, nil
}
