package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

const (
	// pipeLifetime is the most time of such a command; the sandbox's own ceiling may be less.
	pipeLifetime = 24 * time.Hour
	// pipeGrace is how long it may take to end after its input.
	pipeGrace = 4 * time.Second
	// maxPiece bounds one message of standard input.
	maxPiece = 512 << 10
	// pipeWords is how much of its standard error is kept.
	pipeWords = 1 << 10
)

// Pipe runs a command in the workspace of a call. What is returned is its standard input and output, and ends it
// when closed. An error is of the start.
func (s *Sandbox) Pipe(ctx context.Context, call *commonv1.CallRef, argv []string) (io.ReadWriteCloser, error) {
	ctx, drop := context.WithCancel(to(ctx, call))
	stream, err := s.execs.Exec(ctx)
	if err == nil {
		err = stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{
			Call: call, Argv: argv, Stdin: true, Piped: true, Timeout: durationpb.New(pipeLifetime), ShortenTimeout: true,
		}}})
		if errors.Is(err, io.EOF) { // Recv returns the error
			err = nil
		}
	}
	var first *sandboxv1.ExecResponse
	if err == nil {
		first, err = stream.Recv()
	}
	if err == nil && first.GetStarted() == nil {
		err = status.Error(codes.Internal, "the sandbox does not say that the command has started")
	}
	if err != nil {
		drop()
		return nil, err
	}
	out, in := io.Pipe()
	p := &pipe{execs: s.execs, call: call, stream: stream, ctx: ctx, drop: drop, out: out}
	p.reading.Go(func() { _ = in.CloseWithError(p.read(in)) })
	return p, nil
}

// pipe is a command that runs.
type pipe struct {
	execs   sandboxv1.ExecServiceClient
	call    *commonv1.CallRef
	stream  sandboxv1.ExecService_ExecClient
	ctx     context.Context //nolint:containedctx // of the stream
	drop    context.CancelFunc
	out     *io.PipeReader
	reading sync.WaitGroup
	closing sync.Once
	sending sync.Mutex
	words   []byte
}

// read passes on what the command prints, until it ends, and returns how it did.
func (p *pipe) read(in *io.PipeWriter) error {
	closed := false
	for {
		m, err := p.stream.Recv()
		switch k := m.GetKind().(type) {
		case *sandboxv1.ExecResponse_Stdout:
			if !closed { // else it is only waited for
				_, err := in.Write(k.Stdout.GetData())
				closed = err != nil
			}
		case *sandboxv1.ExecResponse_Stderr:
			p.words = append(p.words, k.Stderr.GetData()...)
			p.words = p.words[max(0, len(p.words)-pipeWords):]
		case *sandboxv1.ExecResponse_Exited:
			return fmt.Errorf("its command ended (%s, exit code %d) %s", k.Exited.GetReason(), k.Exited.GetExitCode(), strings.ToValidUTF8(string(p.words), ""))
		}
		if err != nil {
			return err
		}
	}
}

// Read implements io.Reader.
func (p *pipe) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write implements io.Writer.
func (p *pipe) Write(b []byte) (int, error) {
	p.sending.Lock()
	defer p.sending.Unlock()
	for rest := b; len(rest) > 0; {
		n := min(len(rest), maxPiece)
		if err := p.send(&sandboxv1.ExecStdin{Data: rest[:n]}); err != nil {
			return len(b) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(b), nil
}

func (p *pipe) send(in *sandboxv1.ExecStdin) error {
	return p.stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: in}})
}

// Close ends the command's input, then the command, and waits until nothing of it runs any more.
func (p *pipe) Close() error {
	p.closing.Do(func() {
		_ = p.out.Close()
		p.sending.Lock()
		_ = p.send(&sandboxv1.ExecStdin{Close: true})
		p.sending.Unlock()
		timer := time.AfterFunc(pipeGrace, p.drop)
		p.reading.Wait()
		timer.Stop()
		p.drop()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), pipeGrace)
		defer cancel()
		// Both fail for a workspace that is gone, and its commands are gone with it.
		_, _ = p.execs.CancelExec(ctx, &sandboxv1.CancelExecRequest{Call: p.call})
		_, _ = p.execs.AcknowledgeExec(ctx, &sandboxv1.AcknowledgeExecRequest{Call: p.call})
	})
	return nil
}
