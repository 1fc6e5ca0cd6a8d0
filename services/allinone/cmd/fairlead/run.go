package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	client "github.com/fairlead/fairlead/clients/go"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/program"
)

// maxPrompt bounds a prompt from standard input, in bytes, as the server does.
const maxPrompt = 1 << 20

// turnOf is a command that runs a turn: its flags say which, and its target where.
type turnOf[F interface {
	Help() string
	run(ctx context.Context, s stdio, where target) error
}] struct {
	Flags F `embed:""`
	target
}

// Help returns the help of the flags.
func (c turnOf[F]) Help() string { return c.Flags.Help() }

// Run runs the turn.
func (c turnOf[F]) Run(ctx context.Context, s stdio) error { return c.Flags.run(ctx, s, c.target) }

// runCommand runs a turn of the model.
type runCommand struct {
	Prompt   string        `arg:"" optional:"" help:"The message. - reads it from standard input; so does a pipe without a prompt."`
	Session  string        `placeholder:"ID" help:"Continue this session instead of a new one."`
	JSON     bool          `name:"json" help:"Print one JSON event per line and nothing else on standard output."`
	Thinking bool          `help:"Show the model's thinking."`
	MaxSteps int32         `placeholder:"N" help:"The most model calls; the turn ends PARTIAL after them."`
	Timeout  time.Duration `placeholder:"D" help:"The most time, such as 5m; the turn ends PARTIAL after it."`
	OnActive string        `default:"queue" enum:"queue,reject,interrupt,steer,rollback" help:"What happens when a turn of the session is active: ${enum}."`
	Resume   bool          `help:"Continue the last turn of --session where it stopped, without a prompt."`
	newSession
	turnOptions
}

// Help says what the exit codes mean.
func (runCommand) Help() string {
	return `Exit codes: 0 the turn ended COMPLETE, 1 FAILED or any other error, 2 wrong usage, 3 PARTIAL (a limit stopped it), 4 INTERRUPTED.

Ctrl-C stops the turn and waits for its end; a second one quits at once.`
}

func (c runCommand) run(ctx context.Context, s stdio, where target) error {
	if err := c.onlyFor(c.Session); err != nil {
		return err
	}
	if c.MaxSteps < 0 || c.Timeout < 0 {
		return usage("--max-steps and --timeout cannot be negative")
	}
	if c.Resume && (c.Session == "" || c.Prompt != "") {
		return usage("--resume continues a session: it needs --session and takes no prompt")
	}
	prompt, err := c.prompt(s)
	if err != nil {
		return err
	}
	// The first signal stops the turn, and the turn's end the command.
	interrupts := ctx.Done()
	ctx = context.WithoutCancel(ctx)
	return where.with(ctx, s, func(ctx context.Context, b *backend) error {
		end, err := c.turn(ctx, s, b, prompt, interrupts)
		if err != nil {
			return terminal.Explained(err)
		}
		return exitOf(end.GetState())
	})
}

// prompt returns what was asked.
func (c runCommand) prompt(s stdio) (string, error) {
	switch {
	case c.Resume, c.Prompt != "" && c.Prompt != "-":
		return c.Prompt, nil
	case c.Prompt == "" && terminal.IsTerminal(s.in):
		return "", usage("a prompt is missing, as in: fairlead run \"What is in the workspace?\"")
	}
	data, err := io.ReadAll(io.LimitReader(s.in, maxPrompt+1))
	if err != nil {
		return "", fmt.Errorf("read the prompt from standard input: %w", err)
	}
	if len(data) > maxPrompt {
		return "", usage("the prompt on standard input is longer than %d bytes", maxPrompt)
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(data)), "\uFFFD")
	if text == "" {
		return "", usage("the prompt on standard input is empty")
	}
	return text, nil
}

// turn runs the turn in a new or a known session.
func (c runCommand) turn(ctx context.Context, s stdio, b *backend, prompt string, interrupts <-chan struct{}) (*sessionv1.TurnFinished, error) {
	if b.scripted {
		_, _ = io.WriteString(s.err, scriptedNotice(""))
	}
	limits := &sessionv1.TurnLimits{MaxSteps: c.MaxSteps}
	if c.Timeout > 0 {
		limits.MaxWallTime = durationpb.New(c.Timeout)
	}
	session, first := sessionName(c.Session), ""
	if c.Session == "" {
		r, err := c.request(s)
		if err != nil {
			return nil, err
		}
		// One request makes both, so a refused turn leaves no session.
		r.Session.FirstMessage, r.Limits = &sessionv1.FirstMessage{Text: prompt, Options: c.options()}, limits
		made, err := change[*sessionv1.Session](ctx, b, r)
		if err != nil {
			return nil, err
		}
		session, first = made.GetName(), made.GetFirstTurn()
	}
	_, _ = fmt.Fprintln(s.err, terminal.Line(session, 100))
	talk := conversation{
		sessions: b.sessions, session: session, view: newView(s, c.JSON, c.Thinking), notices: s.err,
		interrupts: interrupts, backoff: client.DefaultBackoff(), told: b.scripted, alone: b.address == "",
	}
	if (c.Resume || c.Prompt != "" && c.Prompt != "-") && !c.JSON {
		defer talk.typed(ctx, s)()
	}
	if first != "" {
		return talk.follow(ctx, func(o client.Options) *client.Follower { return client.FollowTurn(ctx, b.sessions, session, first, o) })
	}
	return talk.turn(ctx, &sessionv1.RunTurnRequest{
		Options: c.options(),
		Parent:  session, Text: prompt, Limits: limits, OnActive: onActive(c.OnActive), Resume: c.Resume, RequestId: id.New(),
	})
}

// newView shows events on standard output.
func newView(s stdio, json, thinking bool) view {
	if json {
		return &jsonLines{w: s.out}
	}
	return terminal.NewRenderer(s.out, terminal.Options{Colors: terminal.Colors(s.out, s.env), Thinking: thinking})
}

// readLines reads lines as they are wanted. The goroutine ends with its input,
// or with ctx once a line has come: reading a terminal cannot be given up, so
// there it is the process's.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxPrompt)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// exitOf returns the exit code of a turn.
func exitOf(state sessionv1.TurnState) error {
	switch state {
	case sessionv1.TurnState_TURN_STATE_COMPLETE:
		return nil
	case sessionv1.TurnState_TURN_STATE_PARTIAL:
		return &program.ExitError{Code: 3}
	case sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		return &program.ExitError{Code: 4}
	default:
		return &program.ExitError{Code: exitError}
	}
}
