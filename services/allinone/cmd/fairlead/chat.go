package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	client "github.com/fairlead/fairlead/clients/go"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/program"
)

// chatCommand talks to an agent.
type chatCommand struct {
	Session  string `placeholder:"ID" help:"Continue this session instead of a new one."`
	Thinking bool   `help:"Show the model's thinking."`
	newSession
	turnOptions
	target
}

const chatHelp = `Write a line and press Enter. A line that ends in \ goes on in the next one.
  /help   this text
  /quit   end (so does Ctrl-D); the session is kept
Ctrl-C stops the running turn.
`

// Run talks until the input ends.
func (c chatCommand) Run(ctx context.Context, s stdio) error {
	if err := c.onlyFor(c.Session); err != nil {
		return err
	}
	// Ctrl-C stops turns here. Main ends ctx at the first signal, and only then.
	interrupts, stop := interruptions()
	defer stop()
	ctx, cancel := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer cancel()
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return terminal.Explained(c.chat(ctx, s, b, interrupts))
	})
}

// interruptions receives Ctrl-C.
func interruptions() (<-chan struct{}, func()) {
	signals, out, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	ended := make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-signals:
				select {
				case out <- struct{}{}:
				case <-done:
					return
				}
			}
		}
	}()
	return out, func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

// greet shows the agent's greeting.
func (b *backend) greet(ctx context.Context, s stdio, session string) error {
	resp, err := b.sessions.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: session, PageSize: 1})
	if err != nil {
		return err
	}
	for _, e := range resp.Events {
		if text := e.GetSessionCreated().GetGreeting(); text != "" {
			_, _ = fmt.Fprintf(s.out, "%s\n\n", terminal.Clean(text))
		}
	}
	return nil
}

// begin makes the session, whose turns have the options. It makes none for an agent that needs more parameters.
func (c chatCommand) begin(ctx context.Context, s stdio, b *backend, options *sessionv1.TurnOptions) (string, error) {
	agents, err := all[*sessionv1.Agent](ctx, b, &sessionv1.ListAgentsRequest{}, 0)
	if err != nil {
		return "", err
	}
	for _, a := range agents {
		if bare := strings.TrimPrefix(c.Agent, "agents/"); a.GetName() != "agents/"+bare && (bare != "" || !a.GetDefault()) {
			continue
		}
		for _, name := range a.GetParameters() {
			if _, ok := c.Param[name]; !ok {
				return "", usage("the prompt of %s has the parameter %s: give its value with --param %s=VALUE", terminal.Line(a.GetName(), 100), terminal.Line(name, 100), terminal.Line(name, 100))
			}
		}
	}
	r, err := c.request(s)
	if err != nil {
		return "", err
	}
	r.Session.TurnOptions = options
	made, err := change[*sessionv1.Session](ctx, b, r)
	return made.GetName(), err
}

// chat reads lines and runs a turn for each.
func (c chatCommand) chat(ctx context.Context, s stdio, b *backend, interrupts <-chan struct{}) error {
	session := sessionName(c.Session)
	var err error
	options := c.options()
	if c.Session == "" {
		if session, err = c.begin(ctx, s, b, options); err == nil {
			options = nil // they are the session's
		}
	} else {
		_, err = b.sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: session})
	}
	if err != nil {
		return err
	}
	if c.Session == "" {
		if err := b.greet(ctx, s, session); err != nil {
			return err
		}
	}
	if b.scripted {
		_, _ = io.WriteString(s.err, scriptedNotice(""))
	}
	_, _ = fmt.Fprintf(s.err, "%s  (/help, /quit; go on later with --session %s)\n", terminal.Line(session, 100), terminal.Line(bare(session), 100))
	ctx, done := context.WithCancel(ctx)
	defer done()
	talk := &conversation{
		sessions: b.sessions, session: session, view: newView(s, false, c.Thinking), notices: s.err,
		interrupts: interrupts, backoff: client.DefaultBackoff(), told: b.scripted, alone: b.address == "", options: options,
	}
	defer talk.typed(ctx, s)()
	lines := talk.answers
	if lines == nil { // a pipe's lines are messages, no answers
		lines = readLines(ctx, s.in)
	}
	return talk.chat(ctx, lines)
}

// chat takes lines until there are no more, or Ctrl-C where no turn runs.
func (c *conversation) chat(ctx context.Context, lines <-chan string) error {
	message := ""
	for {
		if c.answers != nil {
			c.prompt("\n")
			c.nextLine("> ")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.interrupts:
			return &program.ExitError{Code: 130} // as shells say it of a program that Ctrl-C ended
		case line, ok := <-lines:
			if c.received(); !ok {
				return nil
			}
			if before, more := strings.CutSuffix(line, `\`); more {
				message += before + "\n"
				continue
			}
			message += line
		}
		text := strings.ToValidUTF8(strings.TrimSpace(message), "\uFFFD")
		message = ""
		if text == "/quit" || text == "/exit" {
			return nil
		}
		if err := c.say(ctx, text); err != nil {
			return err
		}
	}
}

// say runs a turn, or a command.
func (c *conversation) say(ctx context.Context, text string) error {
	switch {
	case text == "":
		return nil
	case text == "/help":
		c.prompt("%s", chatHelp)
		return nil
	case strings.HasPrefix(text, "/") && !strings.ContainsAny(text[1:], "/ \n"):
		c.notice("There is no command %s; /help lists the commands.", terminal.Line(text, 40))
		return nil
	}
	_, err := c.turn(ctx, &sessionv1.RunTurnRequest{Parent: c.session, Text: text, Options: c.options, RequestId: id.New()})
	if errors.Is(err, errQuit) {
		return &program.ExitError{Code: 130}
	}
	if c.asked && c.answers != nil { // a person who stops a turn sends nothing of what was typed meanwhile
		c.dropTyped()
	}
	return err // a turn that FAILED is no error: the next message may do better
}
