package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	client "github.com/fairlead/fairlead/clients/go"
	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/program"
)

// callCommand calls a tool.
type callCommand struct {
	Session   string        `arg:"" help:"The session."`
	Tool      string        `arg:"" help:"The tool, such as Bash."`
	Arguments string        `arg:"" optional:"" default:"{}" help:"Its arguments, as a JSON object."`
	JSON      bool          `name:"json" help:"Print one JSON event per line and nothing else on standard output."`
	Timeout   time.Duration `placeholder:"D" help:"The most time, such as 5m."`
}

// Help says what the exit codes mean.
func (callCommand) Help() string {
	return `The result is on standard output, all else on standard error.

Exit codes: 0 the tool did what it was asked, 1 it failed or any other error, 2 wrong usage, 3 the time was up, 4 the call was interrupted.

Ctrl-C stops the call and waits for its end; a second one quits at once.`
}

func (c callCommand) run(ctx context.Context, s stdio, where target) error {
	if c.Timeout < 0 {
		return usage("--timeout cannot be negative")
	}
	interrupts := ctx.Done() // the first signal stops the call
	ctx = context.WithoutCancel(ctx)
	return where.with(ctx, s, func(ctx context.Context, b *backend) error {
		req := &sessionv1.CallToolRequest{Parent: sessionName(c.Session), Tool: c.Tool, ArgumentsJson: c.Arguments, RequestId: id.New()}
		if c.Timeout > 0 {
			req.Limits = &sessionv1.TurnLimits{MaxWallTime: durationpb.New(c.Timeout)}
		}
		talk := conversation{
			sessions: b.sessions, session: req.Parent, view: c.view(s), notices: s.err, interrupts: interrupts,
			backoff: client.DefaultBackoff(), told: true, alone: b.address == "",
		}
		if !c.JSON {
			defer talk.typed(ctx, s)()
		}
		end, err := talk.follow(ctx, func(o client.Options) *client.Follower {
			return client.CallTool(ctx, sessionv1.NewSessionToolServiceClient(b.conn), req, o)
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if end.GetState() == sessionv1.TurnState_TURN_STATE_COMPLETE && end.GetCallResult().GetOutcome() != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
			return &program.ExitError{Code: exitError}
		}
		return exitOf(end.GetState())
	})
}

// view shows events on standard output, or only the result.
func (c callCommand) view(s stdio) view {
	if c.JSON {
		return &jsonLines{w: s.out}
	}
	return &resultView{out: s.out, progress: s.err}
}

// resultView shows a call's progress and its result.
type resultView struct {
	out, progress io.Writer
	err           error
}

// Err returns the first error of the writer of results.
func (v *resultView) Err() error { return v.err }

// Event shows an event.
func (v *resultView) Event(e *sessionv1.Event) {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_ToolCallProgress:
		_, _ = fmt.Fprintln(v.progress, terminal.Line(b.ToolCallProgress.GetMessage(), 100))
	case *sessionv1.Event_Warning:
		_, _ = fmt.Fprintln(v.progress, "! "+terminal.Line(b.Warning.GetMessage(), 0))
	case *sessionv1.Event_TurnFinished:
		r := b.TurnFinished.GetCallResult()
		if r.GetOutcome() != sessionv1.ToolOutcome_TOOL_OUTCOME_OK {
			_, _ = fmt.Fprintln(v.progress, "! the call ended "+strings.TrimPrefix(r.GetOutcome().String(), "TOOL_OUTCOME_"))
		}
		if r == nil {
			_, _ = fmt.Fprintln(v.progress, "! "+terminal.Line(b.TurnFinished.GetError().GetMessage(), 0))
		}
		for _, c := range r.GetContent() {
			_, v.err = fmt.Fprintln(v.out, strings.TrimSuffix(contentText(c), "\n"))
		}
	}
}

// contentText returns a piece of a result as text that is safe for a terminal.
func contentText(c *commonv1.Content) string {
	if r := c.GetResource(); r != nil {
		if len(r.GetData()) > 0 {
			return fmt.Sprintf("[%s %s, %d bytes]", terminal.Line(r.GetMediaType(), 60), terminal.Line(r.GetUri(), 200), len(r.GetData()))
		}
		return fmt.Sprintf("[%s]\n%s", terminal.Line(r.GetUri(), 200), terminal.Clean(r.GetText()))
	}
	if l := c.GetResourceLink(); l != nil {
		return fmt.Sprintf("[%s %s]", terminal.Line(l.GetUri(), 200), terminal.Line(cmp.Or(l.GetTitle(), l.GetName()), 100))
	}
	if m := cmp.Or(c.GetImage(), c.GetDocument(), c.GetAudio()); m != nil {
		return fmt.Sprintf("[%s %s, %d bytes]", terminal.Line(m.GetMediaType(), 60), terminal.Line(m.GetTitle(), 60), len(m.GetData()))
	}
	return terminal.Clean(c.GetText().GetText())
}
