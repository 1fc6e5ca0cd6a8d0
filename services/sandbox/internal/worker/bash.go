package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

const (
	// cancelTimeout bounds how long killing a command may take.
	cancelTimeout = 30 * time.Second
	// sideBytes is how much of the beginning and of the end of a long output the model sees.
	sideBytes = 50 << 10
	// maxCommand is the kernel's limit for one argument.
	maxCommand = 128<<10 - 1
)

// shell runs a command as the next one of a shell that goes on: the directory, the variables, the functions and the
// options that a command leaves are there for the next one. They are kept in a file of the home directory.
const shell = `s=$HOME/.fairlead-shell
if [ -r "$s" ]; then . "$s" 2>/dev/null; fi
__keep() { { declare -p; declare -f; shopt -p; printf 'set %s\n' "$( [[ $- == *e* ]] && echo -e || echo +e )"; printf 'cd -- %q\n' "$PWD"; } >"$s.new" 2>/dev/null && mv -f "$s.new" "$s"; }
trap __keep EXIT
eval "$1"
`

// bash runs a command, or follows the one that was started for this call before.
func (w *workspace) bash(ctx context.Context, c event) result {
	var p struct {
		Command string
		Restart bool
		Timeout float64 `json:"timeout_ms"`
	}
	if bad, ok := input(c, &p); !ok {
		return bad
	}
	argv := []string{"/bin/bash", "-c", shell, "bash", p.Command}
	switch {
	case p.Restart:
		argv = []string{"/bin/bash", "-c", `rm -f "$HOME/.fairlead-shell"; echo "The shell was restarted."; [ -z "$1" ] || { ` + shell + `}`, "bash", p.Command}
	case p.Command == "":
		return failed("The command is missing.")
	}
	if strings.ContainsRune(p.Command, 0) || len(p.Command) > maxCommand {
		return failed("The command contains a NUL character, or is longer than %d bytes: write it to a file and run that.", maxCommand)
	}
	start := &sandboxv1.ExecStart{Call: w.ref(c.ID), Argv: argv, ShortenTimeout: true}
	if p.Timeout >= 1 {
		start.Timeout = durationpb.New(time.Duration(min(p.Timeout, 1e9)) * time.Millisecond)
	}
	out := &output{}
	end, err := w.follow(ctx, start, out)
	if err != nil {
		return refused(ctx, err, "")
	}
	return ended(ctx, end, out)
}

// follow runs the command to its end. A call that the sandbox knows already is never started again. When the context
// ends, the command is killed, and follow waits for its end.
func (w *workspace) follow(ctx context.Context, start *sandboxv1.ExecStart, out *output) (*sandboxv1.ExecExited, error) {
	streams, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		limited, cancel := context.WithTimeout(streams, cancelTimeout)
		defer cancel()
		if _, err := w.execs.CancelExec(limited, &sandboxv1.CancelExecRequest{Call: start.GetCall()}); err != nil {
			drop() // its end cannot be waited for
		}
	})
	defer func() {
		if !stop() {
			<-killed
		}
	}()
	attach := &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Attach{Attach: &sandboxv1.ExecAttach{Call: start.GetCall()}}}
	end, err := w.once(streams, attach, out)
	if apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_EXEC_NOT_FOUND) {
		end, err = w.once(streams, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Start{Start: start}}, out)
	}
	return end, err
}

// once opens a stream and reads it to the command's end.
func (w *workspace) once(ctx context.Context, first *sandboxv1.ExecRequest, out *output) (*sandboxv1.ExecExited, error) {
	stream, err := w.execs.Exec(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(first); err != nil && !errors.Is(err, io.EOF) { // Recv returns the error of Send
		return nil, err
	}
	_ = stream.CloseSend()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, status.Error(codes.Unavailable, "the sandbox ended the stream before the command's end")
		}
		if err != nil {
			return nil, err
		}
		if m.GetExited() != nil {
			return m.GetExited(), nil
		}
		out.write(m.GetStdout().GetData())
		out.write(m.GetStderr().GetData())
	}
}

// ended returns the model's text about a command that has ended.
func ended(ctx context.Context, end *sandboxv1.ExecExited, out *output) result {
	lines := []string{strings.TrimRight(out.String(), "\n")}
	for _, h := range end.GetLimitsHit() {
		lines = append(lines, "["+h.GetMessage()+"]")
	}
	for _, u := range end.GetNetwork() {
		if m := u.GetMessage(); m != "" {
			lines = append(lines, fmt.Sprintf("[Network: %s: %s]", u.GetHost(), m))
		}
	}
	text := strings.Join(lines, "\n")
	r := result{failed: true}
	switch end.GetReason() {
	case sandboxv1.ExitReason_EXIT_REASON_EXITED:
		if end.GetExitCode() == 0 {
			return result{text: strings.TrimPrefix(text, "\n")}
		}
		r.text = fmt.Sprintf("Exit code %d", end.GetExitCode())
	case sandboxv1.ExitReason_EXIT_REASON_SIGNALED:
		r.text = fmt.Sprintf("The command was ended by signal %d", end.GetSignal())
	case sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT:
		r.text = fmt.Sprintf("The command timed out after %v and was killed", end.GetWallTime().AsDuration().Round(100*time.Millisecond))
	case sandboxv1.ExitReason_EXIT_REASON_CANCELLED:
		r = stopped(ctx)
	case sandboxv1.ExitReason_EXIT_REASON_LOST:
		r.text = lostText
	default:
		r.text = "The sandbox stopped the command: " + end.GetMessage()
	}
	r.text = strings.TrimRight(r.text+"\n"+strings.TrimPrefix(text, "\n"), "\n")
	return r
}

// forget lets the sandbox drop the kept result of a call whose result the server has.
func (w *workspace) forget(ctx context.Context, c event) {
	if c.Name == "bash" { // one that cannot be dropped expires
		_, _ = w.execs.AcknowledgeExec(ctx, &sandboxv1.AcknowledgeExecRequest{Call: w.ref(c.ID)})
	}
}

// output keeps the beginning and the end of a command's output, in bounded memory.
type output struct {
	head, tail []byte
	cut        int64
}

func (o *output) write(p []byte) {
	n := min(len(p), sideBytes-len(o.head))
	o.head = append(o.head, p[:n]...)
	o.tail = append(o.tail, p[n:]...)
	if over := len(o.tail) - sideBytes; over > sideBytes {
		o.tail = append(o.tail[:0], o.tail[over:]...)
		o.cut += int64(over)
	}
}

// String returns the output for the model.
func (o *output) String() string {
	tail, cut := o.tail, o.cut
	if over := len(tail) - sideBytes; over > 0 {
		tail, cut = tail[over:], cut+int64(over)
	}
	if cut == 0 {
		return strings.ToValidUTF8(string(o.head)+string(tail), "\uFFFD")
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail, cut = tail[1:], cut+1
	}
	return fmt.Sprintf("%s\n\n... [%d bytes cut] ...\n\n%s", strings.ToValidUTF8(string(o.head), "\uFFFD"), cut, strings.ToValidUTF8(string(tail), "\uFFFD"))
}
