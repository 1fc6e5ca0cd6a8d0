package integration

import (
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// TestEveryCallHasAnIdOfItsOwnWhateverTheModelSent has answers repeat ids, leave them
// out and call one tool twice. Each result goes to its own call.
func TestEveryCallHasAnIdOfItsOwnWhateverTheModelSent(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]modeltest.Habits{
		"ids that repeat": {SameIDs: true}, "empty ids": {EmptyIDs: true}, "pieces that alternate": {Interleave: true}, "whole calls": {WholeCalls: true, SameIDs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wires(t, func(t *testing.T, play func(...modeltest.Step) (*modeltest.Server, func(*session.Config))) {
				calls := modeltest.Step{OpenAI: h, Calls: []modeltest.Call{
					{Name: "Read", Input: `{"file_path":"a"}`}, {Name: "where", Input: `[]`}, {Name: "Read", Input: `{"file_path":"a"}`}, {Name: "Bash", Input: `{"command":"x"}`},
				}}
				wire, change := play(calls, calls, modeltest.Step{Text: []string{"done"}})
				f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
				s := f.session(t.Context(), t)
				events := f.runTurn(t.Context(), t, &sessionv1.RunTurnRequest{Parent: s, Text: "go", ClientTools: []*sessionv1.ClientTool{{Name: "where"}}}, nil)
				if end := finished(t, events); end.State != complete {
					t.Errorf("the turn ended %v", end)
				}
				f.callsMatch(t, s, events, 8)
				f.stillAnswers(t, s, wire)
			})
		})
	}
}

// callsMatch checks that n calls have ids of their own, the same in the log and in
// the messages, and each its own result.
func (f *fixture) callsMatch(t *testing.T, s string, events []*sessionv1.Event, n int) {
	t.Helper()
	tools, begun, ended := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, e := range events {
		if c := e.GetToolCallStarted(); c != nil {
			if begun[c.CallId] {
				t.Errorf("call %s began twice", c.CallId)
			}
			begun[c.CallId], tools[c.CallId] = true, c.Tool
		}
		if c := e.GetToolCallFinished(); c != nil {
			if ended[c.CallId] || tools[c.CallId] != c.Tool {
				t.Errorf("call %s of %s ended as one of %s, or twice", c.CallId, tools[c.CallId], c.Tool)
			}
			ended[c.CallId] = true
		}
	}
	results := 0
	for _, m := range f.messages(t.Context(), t, s) {
		for _, b := range m.Blocks {
			if u := b.GetToolUse(); u != nil && tools[u.CallId] != u.Tool {
				t.Errorf("the message has call %s of %s, the log one of %q", u.CallId, u.Tool, tools[u.CallId])
			}
			if r := b.GetToolResult(); r != nil {
				results++
				want := sessionv1.ToolOutcome_TOOL_OUTCOME_OK
				if tools[r.CallId] == "where" {
					want = sessionv1.ToolOutcome_TOOL_OUTCOME_ERROR
				}
				if r.Outcome != want {
					t.Errorf("call %s of %s ended %s", r.CallId, tools[r.CallId], strings.TrimPrefix(r.Outcome.String(), "TOOL_OUTCOME_"))
				}
			}
		}
	}
	if len(begun) != n || len(ended) != n || results != n {
		t.Errorf("%d calls began, %d ended, %d have results; want %d", len(begun), len(ended), results, n)
	}
}
