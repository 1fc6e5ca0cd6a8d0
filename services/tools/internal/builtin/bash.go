package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

const (
	bashDefaultTimeout = 120_000 // milliseconds
	bashMaxTimeout     = 600_000
	bashMaxCommand     = 128<<10 - 1 // bytes; the kernel's limit for one argument
)

var bashSpec = tool.Spec{
	Name: "Bash",
	Description: `Runs a command with bash in the workspace, which is /workspace, and returns its output: standard output and standard error together, in the order they came.

- Every call starts a new shell in /workspace: a changed directory or variable does not last. Use absolute paths, or cd within the command.
- The command may run for 120000 ms, or for as long as timeout says (600000 ms at most). It has no terminal and no standard input. What it leaves running in the background ends with it.
- Output beyond 30000 characters is cut in the middle. A command that does not exit with 0 is reported with its exit code.
- With run_in_background the command starts and the call returns at once, with the name of an operation: check_operation tells how it goes on, cancel_operation stops it. Use it for servers and for what takes minutes. timeout does not count then.
- To find or change files, prefer Read, Edit, Write, Glob, Grep and LS over cat, sed, find and grep.`,
	InputSchema: `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "The command to run"},
    "timeout": {"type": "number", "minimum": 1, "maximum": 600000, "description": "How long the command may run, in milliseconds; 120000 when left out"},
    "description": {"type": "string", "description": "What the command does, in 5 to 10 words, for people"},
    "run_in_background": {"type": "boolean", "description": "Let the command run on as an operation; false when left out"}
  },
  "required": ["command"],
  "additionalProperties": false
}`,
}

type bash struct{ effects }

// Run starts the command, or continues to follow it if it was started before.
func (b bash) Run(ctx context.Context, c tool.Call, out tool.Sink) (*tool.Result, error) {
	var p struct {
		Command     string
		Timeout     tool.Number
		Description string
		Background  bool `json:"run_in_background"`
	}
	if err := params(c, &p); err != nil {
		return nil, err
	}
	if strings.ContainsRune(p.Command, 0) {
		return tool.Failed("The command contains a NUL character."), nil
	}
	if len(p.Command) > bashMaxCommand {
		return tool.Failed(fmt.Sprintf("The command is longer than %d bytes. Write it to a file and run that.", bashMaxCommand)), nil
	}
	wished := p.Timeout == 0 || p.Background
	if p.Timeout == 0 {
		p.Timeout = bashDefaultTimeout
	}
	timeout := time.Duration(p.Timeout.Within(1, bashMaxTimeout)) * time.Millisecond
	if p.Background {
		timeout = b.background
	}
	e := &execution{sandbox: b.sandbox, call: c, command: p.Command, timeout: timeout, sink: out, background: p.Background, wished: wished}
	exited, err := e.run(ctx)
	if e.openErr != nil {
		return nil, e.openErr
	}
	if err != nil && e.killErr != nil {
		return nil, e.notKilled(ctx)
	}
	if err != nil {
		return failure(ctx, err, workspace)
	}
	if p.Background && !e.killed {
		return handBack(c, cmp.Or(p.Description, p.Command), out), nil
	}
	return e.result(ctx, exited), nil
}

// handBack returns the result of a call whose command keeps running.
func handBack(c tool.Call, what string, out tool.Sink) *tool.Result {
	out.Progress(clip(strings.ToValidUTF8(what, "\uFFFD"), 200))
	name := "operations/" + c.ID
	r := tool.OK(fmt.Sprintf("The command runs in the background as the operation %s. check_operation tells how it is, cancel_operation stops it.", name))
	r.Operation = name
	return r
}

// Finished lets the sandbox forget the command.
func (b bash) Finished(ctx context.Context, c tool.Call) error {
	_, err := b.execs.AcknowledgeExec(to(ctx, c), &sandboxv1.AcknowledgeExecRequest{Call: ref(c)})
	if errors.Is(err, remote.ErrNotFound) {
		return nil // never started, or acknowledged before
	}
	return err
}

// notKilled returns an error if a command was to be stopped and may still run:
// its call must not count as ended.
func (e *execution) notKilled(ctx context.Context) error {
	if _, err := failure(context.WithoutCancel(ctx), e.killErr, workspace); err != nil {
		return err
	}
	return fmt.Errorf("%w: the command could not be stopped: %s", tool.ErrUnavailable, apierr.Message(e.killErr))
}

// result returns the model's text about a command that ended.
func (e *execution) result(ctx context.Context, exited *sandboxv1.ExecExited) *tool.Result {
	text := strings.TrimRight(e.output.String(), "\n")
	if exited.GetOutputTruncated() {
		text += "\n[The command wrote more output than is kept; the rest was thrown away.]"
	}
	text += limits(exited) + refusals(exited)
	head, outcome := "", toolsv1.CallOutcome_CALL_OUTCOME_ERROR
	switch exited.GetReason() {
	case sandboxv1.ExitReason_EXIT_REASON_EXITED:
		if exited.GetExitCode() != 0 {
			head = fmt.Sprintf("Exit code %d", exited.GetExitCode())
			break
		}
		outcome = toolsv1.CallOutcome_CALL_OUTCOME_OK
		if strings.TrimSpace(text) == "" {
			text = "The command ran and wrote nothing."
		}
	case sandboxv1.ExitReason_EXIT_REASON_SIGNALED:
		head = fmt.Sprintf("The command was ended by signal %d", exited.GetSignal())
	case sandboxv1.ExitReason_EXIT_REASON_TIMED_OUT:
		head = fmt.Sprintf("The command timed out after %s and was killed", e.timeLimit(exited))
	case sandboxv1.ExitReason_EXIT_REASON_CANCELLED:
		head, outcome = stopped(ctx)
	case sandboxv1.ExitReason_EXIT_REASON_LOST:
		head, outcome = unknownText, toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN
	default:
		head = "The command was stopped by the sandbox"
		if m := exited.GetMessage(); m != "" {
			head += ": " + m
		}
	}
	r := tool.Ended(outcome, strings.TrimPrefix(strings.TrimRight(head+"\n"+text, "\n"), "\n"))
	r.Network = exited.GetNetwork()
	return r
}

// timeLimit returns the command's time limit: the sandbox may have allowed less
// than requested.
func (e *execution) timeLimit(exited *sandboxv1.ExecExited) time.Duration {
	if took := exited.GetWallTime().AsDuration(); e.wished && took > 0 && took < e.timeout {
		return took.Round(time.Second / 10)
	}
	return e.timeout
}

// stopped says why a command was cancelled: by a person, or because the call
// took too long.
func stopped(ctx context.Context) (string, toolsv1.CallOutcome) {
	if ctx.Err() == context.DeadlineExceeded {
		return "The command was killed: the call took longer than a call may", toolsv1.CallOutcome_CALL_OUTCOME_ERROR
	}
	return cancelledText, toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED
}
