package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/durationpb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/node"
)

const (
	// lifetime is the most time of one command; the sandbox's own ceiling may be less.
	lifetime = 24 * time.Hour
	// lastWords is how much of a command's standard error is kept for its status.
	lastWords = 2 << 10
	// maxNoise bounds what a command may print between two messages, besides messages.
	maxNoise = 4 << 20
	// maxInput bounds one message of standard input to the sandbox.
	maxInput = 512 << 10
	// killTimeout bounds the end of a command that does not end by itself.
	killTimeout = 30 * time.Second
)

// process is a server that runs as a command in the session's sandbox. It ends with the
// stream over which it runs, so a lost tools service leaves no server behind.
type process struct {
	execs  sandboxv1.ExecServiceClient
	server *commonv1.McpServer
	call   *commonv1.CallRef
	ctx    context.Context //nolint:containedctx // of the link, for the streams of the command

	seen    func(message []byte)
	odd     func(line []byte)
	stream  sandboxv1.ExecService_ExecClient
	drop    context.CancelFunc
	read    sync.WaitGroup
	out     *io.PipeReader // what it prints
	ended   chan struct{}
	closing sync.Once

	mu    sync.Mutex
	words []byte // the end of its standard error, and of what it prints that is no message
	fault error  // how it ended
}

// newProcess returns the server's command, which does not run yet.
func (l *link) newProcess() *process {
	l.mu.Lock()
	c := l.caller
	l.mu.Unlock()
	return &process{
		execs: l.pool.Execs, server: l.server.McpServer, ctx: node.At(l.ctx, c.Ref.Node), ended: make(chan struct{}), seen: l.calls.see, odd: l.printed,
		call: &commonv1.CallRef{
			Session: c.Ref.Session, Holder: c.Ref.Holder, Epoch: c.Ref.Epoch, Node: c.Ref.Node, WorkspaceGeneration: c.Ref.Generation,
			CallId: "mcp-" + l.key[:16] + "-" + id.New(),
		},
	}
}

// Connect implements mcp.Transport: it starts the command.
func (p *process) Connect(context.Context) (mcp.Connection, error) {
	ctx, drop := context.WithCancel(p.ctx)
	p.drop = drop
	stdio := p.server.GetStdio()
	stream, err := p.execs.Exec(ctx) //nolint:contextcheck // the command outlives the attempt to connect
	if err == nil {
		// Recv returns the error of Send.
		err = stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: &sandboxv1.ExecStart{
			Call: p.call, Argv: append([]string{stdio.GetCommand()}, stdio.GetArgs()...), Env: stdio.GetEnv(),
			Stdin: true, Piped: true, Timeout: durationpb.New(lifetime), ShortenTimeout: true,
		}}})
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		drop()
		close(p.ended)
		return nil, refusal(err)
	}
	p.stream = stream
	out, in := io.Pipe()
	p.out = out
	p.read.Go(func() { p.follow(in) })
	return (&mcp.IOTransport{Reader: newMessages(out, p.noise, p.seen), Writer: p, MaxLineLength: maxMessage}).Connect(ctx) //nolint:contextcheck // as above
}

// refusal says why the sandbox does not run the command.
func refusal(err error) error {
	return fmt.Errorf("the sandbox does not run it: %s", apierr.Message(err))
}

// follow passes on what the command prints, to its end.
func (p *process) follow(in *io.PipeWriter) {
	defer close(p.ended)
	for {
		m, err := p.stream.Recv()
		switch k := m.GetKind().(type) {
		case *sandboxv1.ExecResponse_Stdout:
			if _, err := in.Write(k.Stdout.GetData()); err != nil {
				p.drop() // the connection is closed; the rest says only that the stream ends
			}
		case *sandboxv1.ExecResponse_Stderr:
			p.say(k.Stderr.GetData())
		case *sandboxv1.ExecResponse_Exited:
			err = errors.New(exit(k.Exited))
		}
		if err != nil {
			p.end(err)
			_ = in.CloseWithError(io.EOF)
			return
		}
	}
}

// exit says how a command ended.
func exit(x *sandboxv1.ExecExited) string {
	if x.GetReason() == sandboxv1.ExitReason_EXIT_REASON_EXITED {
		return fmt.Sprintf("its command ended with the exit code %d", x.GetExitCode())
	}
	return "its command ended: " + x.GetMessage()
}

// noise keeps a line of the command's standard output that is no message.
func (p *process) noise(line []byte) {
	p.say(line)
	p.odd(line)
}

// say keeps the last words of the command.
func (p *process) say(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.words = append(p.words, b...)
	if len(p.words) > 2*lastWords {
		p.words = append(p.words[:0], p.words[len(p.words)-lastWords:]...)
	}
}

func (p *process) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		return
	}
	if apierr.Reason(err) != "" {
		err = refusal(err)
	}
	p.fault = err
}

// explain returns why the connection has ended: how the command did, if it ended by
// itself, and what it printed last.
func (p *process) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil && !errors.Is(p.fault, errDropped) {
		err = p.fault
	}
	if errors.Is(err, errSilent) {
		err = fmt.Errorf("%w: %s", err, p.hangs())
	}
	words := strings.TrimSpace(strings.ToValidUTF8(string(p.words[max(0, len(p.words)-400):]), "\uFFFD"))
	if words == "" {
		return err
	}
	return fmt.Errorf("%w. It printed last: %s", err, words)
}

// downloaders are programs that get a server's package from the network before they run it.
var downloaders = []string{"npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx", "deno", "go"}

// hangs says what to do about a command that runs and says nothing.
func (p *process) hangs() string {
	if program := path.Base(p.server.GetStdio().GetCommand()); slices.Contains(downloaders, program) {
		return fmt.Sprintf("its command runs and says nothing. %s may be waiting for the network, to download the server: allow the registry in the network rules of the agent or the environment, or install the server beforehand and run its program", program)
	}
	return "its command runs and says nothing. Run it in the session's workspace to see what it waits for: the sandbox has network only where the rules of the agent or the environment allow it, and the server must speak on its standard output"
}

// errDropped ends a command whose connection is closed.
var errDropped = errors.New("the connection is closed")

// Write implements io.Writer, for the SDK's messages.
func (p *process) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), maxInput)
		if err := p.stream.Send(stdin(rest[:n], false)); err != nil {
			return len(b) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(b), nil
}

func stdin(data []byte, end bool) *sandboxv1.ExecRequest {
	return &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: data, Close: end}}}
}

// Close implements io.Closer: it does not wait for the command's end, which stop does.
func (p *process) Close() error {
	p.closing.Do(func() {
		p.end(errDropped)
		_ = p.out.Close()
		p.drop()
	})
	return nil
}

// stop ends the command and waits until nothing of it runs any more.
func (p *process) stop() {
	if p.stream == nil {
		return
	}
	_ = p.Close()
	<-p.ended
	p.read.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), killTimeout)
	defer cancel()
	// Both fail for a workspace that is gone, and its commands are gone with it.
	_, _ = p.execs.CancelExec(ctx, &sandboxv1.CancelExecRequest{Call: p.call})
	_, _ = p.execs.AcknowledgeExec(ctx, &sandboxv1.AcknowledgeExecRequest{Call: p.call})
}

// messages reads a command's standard output, and leaves out everything that is no message of the protocol: many
// servers print a greeting or their log, also as JSON.
type messages struct {
	lines
	noise func([]byte)
	much  int
}

func newMessages(from io.ReadCloser, noise, seen func([]byte)) *messages {
	return &messages{lines: *newLines(from, "", seen), noise: noise}
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.left) == 0 {
		line, err := m.line()
		found := messagesOf(line)
		for _, message := range found {
			m.seen(message)
			m.left, m.much = append(append(m.left, exact(message)...), '\n'), 0
		}
		switch {
		case len(found) > 0:
		case err != nil:
			return 0, err
		default:
			m.noise(line)
			if m.much += len(line); m.much > maxNoise {
				return 0, errors.New("it prints what is no message of the protocol on its standard output")
			}
		}
	}
	n := copy(p, m.left)
	m.left = m.left[n:]
	return n, nil
}

// byteOrderMark begins the output of some programs.
var byteOrderMark = []byte("\ufeff")

// messagesOf returns the messages in a line. Those of a batch come alone, because later revisions have no batches.
func messagesOf(line []byte) [][]byte {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, byteOrderMark))
	if isMessage(line) {
		return [][]byte{line}
	}
	var batch []json.RawMessage
	if len(line) == 0 || line[0] != '[' || json.Unmarshal(line, &batch) != nil {
		return nil
	}
	var all [][]byte
	for _, part := range batch {
		if isMessage(part) {
			all = append(all, part)
		}
	}
	return all
}

// isMessage reports whether the SDK reads a text as a message. It ends the connection at any other.
func isMessage(text []byte) bool {
	if len(text) == 0 || text[0] != '{' || !bytes.Contains(text, []byte(`"jsonrpc"`)) || !json.Valid(text) {
		return false
	}
	_, err := jsonrpc.DecodeMessage(text)
	return err == nil
}
