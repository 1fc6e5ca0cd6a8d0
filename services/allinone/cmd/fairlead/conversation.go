package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	client "github.com/fairlead/fairlead/clients/go"
	"github.com/fairlead/fairlead/clients/go/fold"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// view shows events.
type view interface {
	Event(e *sessionv1.Event)
	Err() error
}

// conversation runs turns of one session and shows them.
type conversation struct {
	sessions   sessionv1.SessionServiceClient
	session    string
	view       view
	notices    io.Writer        // for messages outside of the turn
	answers    <-chan string    // lines of a person; nil without one
	tty        *os.File         // where a person types; nil: no terminal
	editor     *terminal.Editor // reads the lines; nil: they come by themselves
	interrupts <-chan struct{}  // asks to stop the turn; a closed one asks once
	backoff    client.Backoff
	told       bool                   // that the model is a script
	options    *sessionv1.TurnOptions // of each turn
	alone      bool                   // no other client can reach the server: it ends with this command

	started bool // the turn runs
	asked   bool // it was asked to stop
	asks    fold.Asks
	pending []*ask // what waits for an answer, the oldest first
}

// errQuit is what a second request to stop a turn leads to.
var errQuit = errors.New("quit before the end of the turn; the server finishes it")

// turn runs a turn to its end.
func (c *conversation) turn(ctx context.Context, req *sessionv1.RunTurnRequest) (*sessionv1.TurnFinished, error) {
	return c.follow(ctx, func(o client.Options) *client.Follower { return client.RunTurn(ctx, c.sessions, req, o) })
}

// follow shows a turn that open begins, to its end.
func (c *conversation) follow(ctx context.Context, open func(client.Options) *client.Follower) (*sessionv1.TurnFinished, error) {
	c.started, c.asked, c.asks, c.pending = false, false, fold.Asks{}, nil
	lost := make(chan error, 1)
	f := open(client.Options{Backoff: c.backoff, Lost: func(err error) {
		select {
		case lost <- err:
		default: // it is being said already
		}
	}})
	defer f.Close()
	interrupts := c.interrupts
	for {
		answers := c.answers
		if len(c.pending) == 0 {
			answers = nil
		}
		select {
		case e, ok := <-f.Events():
			if !ok {
				return nil, f.Err()
			}
			if err := c.event(ctx, e); err != nil {
				return nil, err
			}
			if end := e.GetTurnFinished(); end != nil {
				return end, nil
			}
		case err := <-lost:
			c.notice("the connection was lost, trying again: %s", terminal.Explain(err))
		case line, ok := <-answers:
			c.received()
			if err := c.answer(ctx, line, ok); err != nil {
				return nil, err
			}
		case _, more := <-interrupts:
			if !more {
				interrupts = nil
			}
			if c.asked {
				return nil, errQuit
			}
			if err := c.interrupt(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// event shows an event and does what it asks for.
func (c *conversation) event(ctx context.Context, e *sessionv1.Event) error {
	c.view.Event(e)
	if err := c.view.Err(); err != nil {
		return err
	}
	if b := e.GetTurnStarted(); b != nil {
		if model := b.GetModel(); !c.told && strings.HasPrefix(model, "scripted:") {
			c.told = true
			c.notice("The model %s is a script: it plays prepared answers and calls no provider.", terminal.Line(model, 60))
		}
		if c.started = true; c.asked { // it was asked too early
			return c.interrupt(ctx)
		}
	}
	if e.GetTurnFinished() != nil {
		return nil
	}
	asked, closed := c.asks.Take(e)
	for _, a := range closed {
		if err := c.resolved(ctx, a); err != nil {
			return err
		}
	}
	if asked != nil {
		return c.wait(ctx, &ask{Ask: asked})
	}
	return nil
}

// interruptTimeout bounds the request to stop.
const interruptTimeout = 30 * time.Second

// interrupt asks the server to stop the turn. Its end comes as an event.
func (c *conversation) interrupt(ctx context.Context) error {
	if !c.asked {
		c.notice("stopping the turn (once more: quit at once) ...")
	}
	c.asked = true
	ctx, cancel := context.WithTimeout(ctx, interruptTimeout)
	defer cancel()
	// A turn that still waits for its session is stopped by cancelling what is queued.
	req := &sessionv1.InterruptSessionRequest{Name: c.session, CancelQueued: !c.started, RequestId: id.New()}
	err := client.Retry(ctx, c.backoff, func() error {
		_, err := c.sessions.InterruptSession(ctx, req)
		return err
	})
	if err != nil {
		return fmt.Errorf("stop the turn: %w", err)
	}
	return nil
}

func (c *conversation) notice(format string, args ...any) {
	_, _ = fmt.Fprintf(c.notices, format+"\n", args...)
}

func (c *conversation) prompt(format string, args ...any) {
	_, _ = fmt.Fprintf(c.notices, format, args...)
}

// typed takes the lines of a person, if there is one.
func (c *conversation) typed(ctx context.Context, s stdio) (done func()) {
	if terminal.IsTerminal(s.in) {
		c.tty, _ = s.in.(*os.File)
	}
	if c.editor = terminal.NewEditor(ctx, s.in, s.err); c.editor != nil {
		c.answers = c.editor.Lines
		return c.editor.Close
	}
	if c.tty != nil {
		c.answers = readLines(ctx, s.in)
	}
	return func() {}
}

// nextLine shows a prompt for the next line of a person.
func (c *conversation) nextLine(prompt string) {
	if c.editor == nil || !c.editor.Ask(prompt) {
		c.prompt("%s", prompt)
	}
}

// received notes that a line of a person has come.
func (c *conversation) received() {
	if c.editor != nil {
		c.editor.Open = false
	}
}

// dropTyped drops what a person has typed without being asked.
func (c *conversation) dropTyped() {
	if c.tty != nil && (c.editor == nil || !c.editor.Open) { // a line that is asked for can still be edited
		terminal.DropInput(int(c.tty.Fd()))
	}
	select {
	case line, ok := <-c.answers: // also of a person without an editor, whose lines are read at once
		if c.received(); ok && strings.TrimSpace(line) != "" {
			c.notice("Not sent, because it was typed before: %s", terminal.Line(line, 100))
		}
	default:
	}
}
