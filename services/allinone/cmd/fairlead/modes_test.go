package main

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// runTurn runs a turn, which must not wait for a person, to its end.
func (a *asker) runTurn(t *testing.T, agent, text string, mode, sessions commonv1.PermissionMode) (*sessionv1.TurnFinished, error) {
	t.Helper()
	conn, err := rpc.Dial(a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := sessionv1.NewSessionServiceClient(conn)
	made, err := c.CreateSession(t.Context(), &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{
		Agent: "agents/" + agent, TurnOptions: &sessionv1.TurnOptions{PermissionMode: sessions},
	}})
	if err != nil {
		return nil, err
	}
	stream, err := c.RunTurn(t.Context(), &sessionv1.RunTurnRequest{Parent: made.Session.Name, Text: text, Options: &sessionv1.TurnOptions{PermissionMode: mode}})
	if err != nil {
		return nil, err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if e := r.GetEvent(); e.GetTurnWaiting() != nil {
			return nil, nil //nolint:nilnil // the turn waits
		} else if end := e.GetTurnFinished(); end != nil {
			return end, nil
		}
	}
}

func TestATurnsPermissionModeChangesWhatItsCallsMay(t *testing.T) {
	t.Parallel()
	a := startAsker(t)
	const none, dflt = commonv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED, commonv1.PermissionMode_PERMISSION_MODE_DEFAULT
	const edits, plan, bypass = commonv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS, commonv1.PermissionMode_PERMISSION_MODE_PLAN, commonv1.PermissionMode_PERMISSION_MODE_BYPASS
	for name, c := range map[string]struct {
		turn, session commonv1.PermissionMode
		want          string // of the result; empty: the turn waits for a person
	}{
		"none":                                 {none, none, ""},
		"default":                              {dflt, none, ""},
		"accept edits":                         {edits, none, "note.txt"},
		"plan":                                 {plan, none, "the mode plan denies changes"},
		"the session's":                        {none, edits, "note.txt"},
		"the turn's instead of the session's":  {plan, edits, "the mode plan denies changes"},
		"default instead of that of a session": {dflt, edits, ""},
	} {
		end, err := a.runTurn(t, "asker", "note.txt", c.turn, c.session)
		if err != nil || (end == nil) != (c.want == "") || !strings.Contains(end.GetFinalText(), c.want) {
			t.Errorf("%s: the turn ended %v, %v; want %q", name, end, err, c.want)
		}
	}
	for name, modes := range map[string][2]commonv1.PermissionMode{"options.permission_mode": {bypass, none}, "session.turn_options.permission_mode": {none, bypass}} {
		_, err := a.runTurn(t, "asker", "note.txt", modes[0], modes[1])
		bad, _ := apierr.Detail[*errdetails.BadRequest](err)
		if len(bad.GetFieldViolations()) != 1 || bad.FieldViolations[0].Field != name {
			t.Errorf("bypass in %s: %v", name, err)
		}
	}
}

func TestAPlanIsShownAndApprovedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	a := startAsker(t)
	for _, c := range []struct {
		answer, end []string
	}{
		{[]string{"deny", "CALL", "--comment", "write b.txt"}, []string{"refused by default: write b.txt", "the mode plan denies changes"}},
		{[]string{"approve", "CALL", "--mode", "accept-edits"}, []string{"approved by default, in the mode accept-edits", "File created", "COMPLETE"}},
	} {
		ended := make(chan string, 1)
		go func() {
			out, errs, _ := fairlead(t.Context(), "", nil, "run", "--agent", "asker", "--server", a.address, "--mode", "plan", "plan")
			ended <- out + errs
		}()
		p := a.waits(t, 1)[0]
		const plan = "The agent shows its plan:\n    1. Write a.txt\n    2. Read it again\n"
		if out := a.command(t, 0, "approvals", p.CallID); !strings.Contains(out, plan) {
			t.Errorf("the call is shown as\n%s", out)
		}
		if list := a.command(t, 0, "approvals"); !strings.Contains(list, "1. Write a.txt") {
			t.Errorf("the list is\n%s", list)
		}
		if out := a.command(t, 1, "approve", p.CallID, "--always"); !strings.Contains(out, "without a scope") {
			t.Errorf("an approval for longer: %s", out)
		}
		c.answer[1] = p.CallID
		if out := a.command(t, 0, c.answer...); strings.Contains(out, plan) != (c.answer[0] == "approve") {
			t.Errorf("%v says\n%s", c.answer, out)
		}
		out := <-ended
		for _, want := range append(c.end, plan) {
			if !strings.Contains(out, want) {
				t.Errorf("%v: %q is missing in\n%s", c.answer, want, out)
			}
		}
	}
	if out := a.command(t, 1, "approvals", "none"); !strings.Contains(out, "no question about the call none waits") {
		t.Errorf("an unknown call: %s", out)
	}
}

func TestARuleEndsTheTurn(t *testing.T) {
	t.Parallel()
	a := startAsker(t)
	end, err := a.runTurn(t, "stopper", "secret.txt", 0, 0)
	if err != nil || end.GetState() != sessionv1.TurnState_TURN_STATE_INTERRUPTED || end.GetError().GetReason() != "PERMISSION_INTERRUPT" ||
		!strings.Contains(end.GetError().GetMessage(), "Write(./secret*)") || end.GetSteps() != 1 {
		t.Errorf("the turn ended %v, %v", end, err)
	}
	if end, err := a.runTurn(t, "stopper", "open.txt", 0, 0); err != nil || end.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("a turn without such a call ended %v, %v", end, err)
	}
}
