package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// triggersCommand lets other systems begin turns.
type triggersCommand struct {
	Create createTriggerCommand `cmd:"" help:"Let another system begin turns of a session, or of an agent in new sessions. Prints the secret, which is not shown again."`
	List   listTriggersCommand  `cmd:"" help:"List the triggers."`
	Get    getTriggerCommand    `cmd:"" help:"Show a trigger."`
	Pause  pauseTriggerCommand  `cmd:"" help:"Stop a trigger."`
	Resume resumeTriggerCommand `cmd:"" help:"Let a stopped trigger go on."`
	Rotate rotateTriggerCommand `cmd:"" help:"Replace a trigger's secret. Prints the new one, which is not shown again."`
	Delete deleteTriggerCommand `cmd:"" help:"Delete a trigger. Its turns stay."`
}

func triggerName(given string) string { return "triggers/" + bare(given) }

// createTriggerCommand makes a trigger.
type createTriggerCommand struct {
	Text     string        `arg:"" help:"What is to be done with a delivery. {{payload}} is where its content stands; without it, the content follows the text."`
	Session  string        `placeholder:"ID" xor:"to" required:"" help:"The session that gets the messages."`
	Agent    string        `placeholder:"NAME" xor:"to" required:"" help:"The agent of a new session for each delivery."`
	Address  bool          `help:"Put the secret into the address, for systems that cannot sign."`
	OnActive string        `enum:"queue,reject,interrupt,steer,rollback" default:"queue" placeholder:"WHAT" help:"When a turn of the session is active: queue, reject, interrupt, steer or rollback."`
	MaxSteps int32         `placeholder:"N" help:"The most model calls of each turn."`
	Timeout  time.Duration `placeholder:"D" help:"The most time of each turn, such as 5m."`
	JSON     bool          `name:"json" help:"Print the trigger and its secret as JSON."`
	target
}

// Run makes a trigger.
func (c createTriggerCommand) Run(ctx context.Context, s stdio) error {
	if c.MaxSteps < 0 || c.Timeout < 0 {
		return usage("--max-steps and --timeout cannot be negative")
	}
	r := &sessionv1.CreateTriggerRequest{Trigger: &sessionv1.Trigger{Text: c.Text, OnActive: onActive(c.OnActive)}, RequestId: id.New()}
	if c.Session != "" {
		r.Trigger.Session = sessionName(c.Session)
	} else {
		r.Trigger.Agent = "agents/" + bare(c.Agent)
	}
	if c.Address {
		r.Trigger.Proof = sessionv1.TriggerProof_TRIGGER_PROOF_ADDRESS
	}
	if c.MaxSteps > 0 || c.Timeout > 0 {
		r.Trigger.Limits = &sessionv1.TurnLimits{MaxSteps: c.MaxSteps}
		if c.Timeout > 0 {
			r.Trigger.Limits.MaxWallTime = durationpb.New(c.Timeout)
		}
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.CreateTriggerResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.triggers.CreateTrigger(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		b.remind(s)
		if c.JSON {
			return printJSON(s.out, []*sessionv1.CreateTriggerResponse{resp})
		}
		return whole(s.out, append(triggerRows(resp.GetTrigger()), []string{"path", resp.GetPath()}, []string{"secret", resp.GetSecret()}))
	})
}

func triggerRows(x *sessionv1.Trigger) [][]string {
	rows := [][]string{{"trigger", bare(x.GetName())}, {"for", receiver(x)}, {"user", bare(x.GetUser())}, {"state", triggerState(x)}, {"created", stamp(x.GetCreateTime())}}
	if until := x.GetOldSecretExpireTime(); until != nil {
		rows = append(rows, []string{"old secret until", stamp(until)})
	}
	if x.GetLastTime() != nil {
		rows = append(rows, []string{"last delivery", stamp(x.GetLastTime())}, []string{"last turn", x.GetLastTurn()}, []string{"last error", x.GetLastError()})
	}
	return append(rows, []string{"text", x.GetText()})
}

// receiver returns what gets a trigger's messages.
func receiver(x *sessionv1.Trigger) string {
	if x.GetSession() != "" {
		return x.GetSession()
	}
	return x.GetAgent()
}

func triggerState(x *sessionv1.Trigger) string {
	if x.GetPaused() {
		return "paused"
	}
	return "active"
}

func printTrigger(out io.Writer, x *sessionv1.Trigger, asJSON bool) error {
	if asJSON {
		return printJSON(out, []*sessionv1.Trigger{x})
	}
	return columns(out, triggerRows(x))
}

// listTriggersCommand lists triggers.
type listTriggersCommand struct {
	JSON bool `name:"json" help:"Print one JSON trigger per line."`
	target
}

// Run lists triggers.
func (c listTriggersCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Trigger
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.triggers.ListTriggers(ctx, &sessionv1.ListTriggersRequest{PageSize: size, PageToken: token})
			all = append(all, resp.GetTriggers()...)
			return len(resp.GetTriggers()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"TRIGGER", "FOR", "USER", "STATE", "LAST DELIVERY", "LAST ERROR"}}
		for _, x := range all {
			rows = append(rows, []string{bare(x.GetName()), receiver(x), bare(x.GetUser()), triggerState(x), stamp(x.GetLastTime()), x.GetLastError()})
		}
		return columns(s.out, rows)
	})
}

// aTrigger names a trigger.
type aTrigger struct {
	ID   string `arg:"" help:"The trigger."`
	JSON bool   `name:"json" help:"Print the trigger as JSON."`
	target
}

// getTriggerCommand shows a trigger.
type getTriggerCommand struct{ aTrigger }

// Run shows a trigger.
func (c getTriggerCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.triggers.GetTrigger(ctx, &sessionv1.GetTriggerRequest{Name: triggerName(c.ID)})
		if err != nil {
			return terminal.Explained(err)
		}
		return printTrigger(s.out, resp.GetTrigger(), c.JSON)
	})
}

// pauseTriggerCommand stops a trigger.
type pauseTriggerCommand struct{ aTrigger }

// Run stops a trigger.
func (c pauseTriggerCommand) Run(ctx context.Context, s stdio) error { return c.set(ctx, s, true) }

// resumeTriggerCommand lets a trigger go on.
type resumeTriggerCommand struct{ aTrigger }

// Run lets a trigger go on.
func (c resumeTriggerCommand) Run(ctx context.Context, s stdio) error { return c.set(ctx, s, false) }

// set pauses or resumes the trigger.
func (c aTrigger) set(ctx context.Context, s stdio, paused bool) error {
	r := &sessionv1.PauseTriggerRequest{Name: triggerName(c.ID), Paused: paused, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.PauseTriggerResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.triggers.PauseTrigger(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		return printTrigger(s.out, resp.GetTrigger(), c.JSON)
	})
}

// rotateTriggerCommand makes a new secret.
type rotateTriggerCommand struct {
	Revoke bool `help:"End the old secret at once. By default it is good for a day more."`
	aTrigger
}

// Run makes a new secret.
func (c rotateTriggerCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.RotateTriggerSecretRequest{Name: triggerName(c.ID), RevokeOld: c.Revoke, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.RotateTriggerSecretResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.triggers.RotateTriggerSecret(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, []*sessionv1.RotateTriggerSecretResponse{resp})
		}
		return whole(s.out, append(triggerRows(resp.GetTrigger()), []string{"path", resp.GetPath()}, []string{"secret", resp.GetSecret()}))
	})
}

// deleteTriggerCommand deletes a trigger.
type deleteTriggerCommand struct {
	ID string `arg:"" help:"The trigger."`
	target
}

// Run deletes a trigger.
func (c deleteTriggerCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.DeleteTriggerRequest{Name: triggerName(c.ID), RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		err := retry(ctx, func() error {
			_, err := b.triggers.DeleteTrigger(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintln(s.out, "deleted")
		return err
	})
}
