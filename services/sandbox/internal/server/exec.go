package server

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
)

type execServer struct {
	sandboxv1.UnimplementedExecServiceServer
	*Server
}

func (s *execServer) Exec(stream sandboxv1.ExecService_ExecServer) error {
	first, err := stream.Recv() // `started` follows at once and carries the headers
	if errors.Is(err, io.EOF) {
		return invalid("kind", "the first request must be `start` or `attach`, and there was none")
	}
	if err != nil {
		return err
	}
	e, from, attached, err := s.open(stream.Context(), first)
	if err != nil {
		return status(err)
	}
	if e.Piped() {
		defer e.Abandon()
	}
	started := &sandboxv1.ExecResponse_Started{Started: &sandboxv1.ExecStarted{Attached: attached}}
	if err := stream.Send(&sandboxv1.ExecResponse{Kind: started}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	in := newInput()
	s.readers.Add(1)
	go func() { // ends with the stream
		defer s.readers.Done()
		defer in.end()
		if err := feed(ctx, stream, e, in); err != nil {
			cancel(err)
		}
	}()
	var writer sync.WaitGroup
	writer.Go(func() {
		if err := write(ctx, e, in); err != nil {
			cancel(err)
		}
	})
	defer writer.Wait()
	defer cancel(nil) // first: the command need not read the remaining input
	end, err := e.Follow(ctx, from, func(p box.Piece) error { return stream.Send(piece(p)) })
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && stream.Context().Err() == nil {
			return status(cause)
		}
		return status(err)
	}
	return stream.Send(&sandboxv1.ExecResponse{Kind: &sandboxv1.ExecResponse_Exited{Exited: exited(end)}})
}

// open starts the command, or finds it.
func (s *execServer) open(ctx context.Context, first *sandboxv1.ExecRequest) (*box.Exec, box.Offsets, bool, error) {
	switch k := first.GetKind().(type) {
	case *sandboxv1.ExecRequest_Start:
		c, err := call(ctx, k.Start.GetCall())
		if err != nil {
			return nil, box.Offsets{}, false, err
		}
		sp, err := spec(k.Start)
		if err != nil {
			return nil, box.Offsets{}, false, err
		}
		e, attached, err := s.node.Start(ctx, c, sp)
		return e, box.Offsets{}, attached, err
	case *sandboxv1.ExecRequest_Attach:
		c, err := call(ctx, k.Attach.GetCall())
		if err != nil {
			return nil, box.Offsets{}, false, err
		}
		c.Operation = k.Attach.GetOperation()
		e, err := s.node.Find(c)
		return e, box.Offsets{k.Attach.GetStdoutOffset(), k.Attach.GetStderrOffset()}, true, err
	}
	return nil, box.Offsets{}, false, invalid("kind", "the first request must be `start` or `attach`")
}

// maxArgument is the longest argument, in bytes. It is not a rule in the schema, because a rule for list
// items is slower than the validation of the whole rest of the message.
const maxArgument = 131_072

func spec(s *sandboxv1.ExecStart) (box.Spec, error) {
	dir, err := files.Clean(filename.Decode(s.GetCwd()))
	if err != nil {
		return box.Spec{}, err
	}
	for i, a := range s.GetArgv() {
		switch {
		case strings.IndexByte(a, 0) >= 0:
			return box.Spec{}, invalid("start.argv", "argument %d contains a zero byte", i)
		case len(a) > maxArgument:
			return box.Spec{}, invalid("start.argv", "argument %d has %d bytes, and may have %d: put what is so long into a file", i, len(a), maxArgument)
		}
	}
	if s.GetArgv()[0] == "" {
		return box.Spec{}, invalid("start.argv", "the program has no name")
	}
	for k, v := range s.GetEnv() {
		if strings.ContainsRune(v, 0) {
			return box.Spec{}, invalid("start.env["+k+"]", "the value contains a zero byte")
		}
	}
	return box.Spec{
		Argv: slices.Clone(s.GetArgv()), Env: s.GetEnv(), Dir: dir, Stdin: s.GetStdin(), Terminal: terminal(s.GetTerminal()),
		Lower: lower(s), Piped: s.GetPiped(),
	}, nil
}

// lower returns the limits that a command asks for.
func lower(s *sandboxv1.ExecStart) box.Lower {
	l := s.GetLimits()
	return box.Lower{
		MemoryBytes: l.GetMemoryBytes(), Processes: int64(l.GetProcesses()), CPUs: float64(l.GetCpuMillis()) / 1000,
		FileBytes: l.GetFileBytes(), OpenFiles: int64(l.GetOpenFiles()), OutputBytes: l.GetOutputBytes(), FloodBytes: l.GetFloodBytes(),
		WorkspaceBytes: l.GetWorkspaceBytes(), WorkspaceInodes: l.GetWorkspaceInodes(),
		Timeout: s.GetTimeout().AsDuration(), Shorten: s.GetShortenTimeout(),
	}
}

func terminal(t *sandboxv1.TerminalSize) *box.TerminalSize {
	if t == nil {
		return nil
	}
	return &box.TerminalSize{Rows: uint16(t.GetRows()), Columns: uint16(t.GetColumns())}
}

// feed passes the further requests to the command until the stream ends. Only input waits until the command
// reads its input: a signal may be meant to end a command that does not read.
func feed(ctx context.Context, stream sandboxv1.ExecService_ExecServer, e *box.Exec, in *input) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the caller has finished sending, or the stream is over
		}
		switch k := r.GetKind().(type) {
		case *sandboxv1.ExecRequest_Stdin:
			err = in.put(ctx, k.Stdin)
		case *sandboxv1.ExecRequest_Signal:
			err = e.Signal(int(k.Signal.GetSignal()))
		case *sandboxv1.ExecRequest_Resize:
			err = e.Resize(*terminal(k.Resize))
		default:
			err = invalid("kind", "only the first request may be `start` or `attach`")
		}
		if err != nil {
			return misused(err)
		}
	}
}

// write writes input to the command until there is no more.
func write(ctx context.Context, e *box.Exec, in *input) error {
	for {
		m, err := in.take(ctx)
		if err != nil || m == nil {
			return err
		}
		if err := e.Write(ctx, m.GetData(), m.GetClose()); err != nil {
			return misused(err)
		}
	}
}

// misused returns an error of the caller if it sent something that the command does not accept.
func misused(err error) error {
	if errors.Is(err, box.ErrNoStdin) || errors.Is(err, box.ErrNoTerminal) {
		return invalid("kind", "%v", err)
	}
	return err
}

func piece(p box.Piece) *sandboxv1.ExecResponse {
	o := &sandboxv1.ExecOutput{Offset: p.Offset, Data: p.Data}
	if p.Stream == box.Stderr {
		return &sandboxv1.ExecResponse{Kind: &sandboxv1.ExecResponse_Stderr{Stderr: o}}
	}
	return &sandboxv1.ExecResponse{Kind: &sandboxv1.ExecResponse_Stdout{Stdout: o}}
}

var reasons = map[box.Reason]sandboxv1.ExitReason{
	box.Exited:         sandboxv1.ExitReason_EXIT_REASON_EXITED,
	box.Signaled:       sandboxv1.ExitReason_EXIT_REASON_SIGNALED,
	box.TimedOut:       sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT,
	box.OutOfMemory:    sandboxv1.ExitReason_EXIT_REASON_OUT_OF_MEMORY,
	box.Cancelled:      sandboxv1.ExitReason_EXIT_REASON_CANCELLED,
	box.OutputLimit:    sandboxv1.ExitReason_EXIT_REASON_OUTPUT_LIMIT,
	box.WorkspaceLimit: sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT,
	box.DiskLimit:      sandboxv1.ExitReason_EXIT_REASON_WORKSPACE_LIMIT,
	box.FileLimit:      sandboxv1.ExitReason_EXIT_REASON_FILE_LIMIT,
	box.TerminalLimit:  sandboxv1.ExitReason_EXIT_REASON_TERMINAL_LIMIT,
	box.NotStarted:     sandboxv1.ExitReason_EXIT_REASON_NOT_STARTED,
	box.Lost:           sandboxv1.ExitReason_EXIT_REASON_LOST,
}

func exited(o box.Outcome) *sandboxv1.ExecExited {
	return &sandboxv1.ExecExited{
		Reason: reasons[o.Reason], ExitCode: int32(o.ExitCode), Signal: int32(o.Signal), Message: plain(o.Message),
		WallTime: durationpb.New(o.Wall), CpuTime: durationpb.New(o.CPU), MaxMemoryBytes: o.MaxMemory, OutputTruncated: o.Truncated,
		Network: uses(o.Network), CpuThrottledTime: durationpb.New(o.Throttled), LimitsHit: hits(o.Hits),
	}
}

func hits(all []box.Hit) []*sandboxv1.LimitHit {
	told := make([]*sandboxv1.LimitHit, 0, len(all))
	for _, h := range all {
		told = append(told, &sandboxv1.LimitHit{Limit: h.Limit, Message: plain(h.Message)})
	}
	return told
}

func (s *execServer) ListExecs(ctx context.Context, r *sandboxv1.ListExecsRequest) (*sandboxv1.ListExecsResponse, error) {
	k, err := key(ctx, r.GetSession())
	if err != nil {
		return nil, status(err)
	}
	scope := "ListExecs\x00" + k.Tenant + "\x00" + k.Session
	var after string
	if r.GetPageToken() != "" {
		if err := page.Decode(r.GetPageToken(), scope, &after); err != nil {
			return nil, status(err)
		}
	}
	all, err := s.node.List(k)
	if err != nil {
		return nil, status(err)
	}
	from, found := slices.BinarySearchFunc(all, after, func(e *box.Exec, id string) int { return strings.Compare(e.ID(), id) })
	if found {
		from++
	}
	all = all[from:]
	resp := &sandboxv1.ListExecsResponse{}
	for _, e := range all[:min(len(all), page.Size(r.GetPageSize(), 50, 1000))] {
		info := &sandboxv1.ExecInfo{CallId: e.ID(), Argv: e.Argv()}
		if o := e.Outcome(); o != nil {
			info.Exited = exited(*o)
		}
		resp.Execs = append(resp.Execs, info)
	}
	if n := fits(resp.GetExecs()); n < len(all) {
		resp.Execs, resp.NextPageToken = resp.Execs[:n], page.Encode(scope, resp.Execs[n-1].GetCallId())
	}
	return resp, nil
}

func (s *execServer) AcknowledgeExec(ctx context.Context, r *sandboxv1.AcknowledgeExecRequest) (*sandboxv1.AcknowledgeExecResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	c.Operation = r.GetOperation()
	if err := s.node.Acknowledge(c); err != nil {
		return nil, status(err)
	}
	return &sandboxv1.AcknowledgeExecResponse{}, nil
}

func (s *execServer) CancelExec(ctx context.Context, r *sandboxv1.CancelExecRequest) (*sandboxv1.CancelExecResponse, error) {
	c, err := call(ctx, r.GetCall())
	if err != nil {
		return nil, status(err)
	}
	c.Operation = r.GetOperation()
	end, err := s.node.Cancel(ctx, c)
	if err != nil {
		return nil, status(err)
	}
	resp := &sandboxv1.CancelExecResponse{}
	if end != nil {
		resp.Exited = exited(*end)
	}
	return resp, nil
}
