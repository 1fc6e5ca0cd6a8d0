package main

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// triggersCommand lets other systems begin turns.
type triggersCommand struct {
	Create shows[createTrigger, *sessionv1.CreateTriggerResponse]       `cmd:"" set:"one=trigger and its secret" help:"Let another system begin turns of a session, or of an agent in new sessions. Prints the secret, which is not shown again."`
	List   lists[listTriggers, *sessionv1.Trigger]                      `cmd:"" help:"List the triggers."`
	Get    shows[aTrigger, *sessionv1.Trigger]                          `cmd:"" help:"Show a trigger."`
	Pause  shows[pauseTrigger, *sessionv1.Trigger]                      `cmd:"" help:"Stop a trigger."`
	Resume shows[resumeTrigger, *sessionv1.Trigger]                     `cmd:"" help:"Let a stopped trigger go on."`
	Rotate shows[rotateTrigger, *sessionv1.RotateTriggerSecretResponse] `cmd:"" help:"Replace a trigger's secret. Prints the new one, which is not shown again."`
	Delete does[deleteTrigger]                                          `cmd:"" help:"Delete a trigger. Its turns stay."`
}

// triggerName names a trigger.
type triggerName struct {
	ID string `arg:"" help:"The trigger."`
}

func (n triggerName) name() string { return "triggers/" + bare(n.ID) }

type createTrigger struct {
	Text     string `arg:"" help:"What is to be done with a delivery. {{payload}} is where its content stands; without it, the content follows the text."`
	Session  string `placeholder:"ID" xor:"to" required:"" help:"The session that gets the messages."`
	Agent    string `placeholder:"NAME" xor:"to" required:"" help:"The agent of a new session for each delivery."`
	Address  bool   `help:"Put the secret into the address, for systems that cannot sign."`
	OnActive string `enum:"queue,reject,interrupt,steer,rollback" default:"queue" placeholder:"WHAT" help:"When a turn of the session is active: queue, reject, interrupt, steer or rollback."`
	turnLimits
	jsonOne
	lasting
}

func (f createTrigger) request() proto.Message {
	x := &sessionv1.Trigger{Text: f.Text, OnActive: onActive(f.OnActive), Limits: f.limits()}
	if f.Session != "" {
		x.Session = sessionName(f.Session)
	} else {
		x.Agent = "agents/" + bare(f.Agent)
	}
	if f.Address {
		x.Proof = sessionv1.TriggerProof_TRIGGER_PROOF_ADDRESS
	}
	return &sessionv1.CreateTriggerRequest{Trigger: x}
}

func (createTrigger) show(s stdio, made *sessionv1.CreateTriggerResponse) error {
	return whole(s.out, append(triggerRows(made.GetTrigger()), []string{"path", made.GetPath()}, []string{"secret", made.GetSecret()}))
}

func triggerRows(x *sessionv1.Trigger) [][]string {
	rows := [][]string{
		{"trigger", bare(x.GetName())}, {"for", cmp.Or(x.GetSession(), x.GetAgent())}, {"user", bare(x.GetUser())},
		{"state", triggerState(x)}, {"created", stamp(x.GetCreateTime())},
	}
	if until := x.GetOldSecretExpireTime(); until != nil {
		rows = append(rows, []string{"old secret until", stamp(until)})
	}
	if x.GetLastTime() != nil {
		rows = append(rows, []string{"last delivery", stamp(x.GetLastTime())}, []string{"last turn", x.GetLastTurn()}, []string{"last error", x.GetLastError()})
	}
	return append(rows, []string{"text", x.GetText()})
}

func triggerState(x *sessionv1.Trigger) string {
	if x.GetPaused() {
		return "paused"
	}
	return "active"
}

type listTriggers struct{ jsonList }

func (listTriggers) request() proto.Message { return &sessionv1.ListTriggersRequest{} }

func (listTriggers) row(x *sessionv1.Trigger) [][]string {
	return [][]string{
		{"TRIGGER", bare(x.GetName())}, {"FOR", cmp.Or(x.GetSession(), x.GetAgent())}, {"USER", bare(x.GetUser())}, {"STATE", triggerState(x)},
		{"LAST DELIVERY", stamp(x.GetLastTime())}, {"LAST ERROR", x.GetLastError()},
	}
}

// aTrigger is a command that shows a trigger.
type aTrigger struct {
	triggerName
	jsonOne
}

func (f aTrigger) request() proto.Message { return &sessionv1.GetTriggerRequest{Name: f.name()} }

func (aTrigger) show(s stdio, x *sessionv1.Trigger) error { return columns(s.out, triggerRows(x)) }

type pauseTrigger struct{ aTrigger }

func (f pauseTrigger) request() proto.Message {
	return &sessionv1.PauseTriggerRequest{Name: f.name(), Paused: true}
}

type resumeTrigger struct{ aTrigger }

func (f resumeTrigger) request() proto.Message { return &sessionv1.PauseTriggerRequest{Name: f.name()} }

type rotateTrigger struct {
	Revoke bool `help:"End the old secret at once. By default it is good for a day more."`
	triggerName
	jsonOne
}

func (f rotateTrigger) request() proto.Message {
	return &sessionv1.RotateTriggerSecretRequest{Name: f.name(), RevokeOld: f.Revoke}
}

func (rotateTrigger) show(s stdio, x *sessionv1.RotateTriggerSecretResponse) error {
	return whole(s.out, append(triggerRows(x.GetTrigger()), []string{"path", x.GetPath()}, []string{"secret", x.GetSecret()}))
}

type deleteTrigger struct{ triggerName }

func (f deleteTrigger) request() proto.Message {
	return &sessionv1.DeleteTriggerRequest{Name: f.name()}
}

func (deleteTrigger) done() string { return "deleted" }
