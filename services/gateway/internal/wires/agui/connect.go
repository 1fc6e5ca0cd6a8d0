package agui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// thread returns the thread that a request names: in its query, or in its body, in either spelling.
func thread(r *http.Request, inBody ...string) (string, error) {
	q := r.URL.Query()
	var id string
	for _, given := range append(inBody, q.Get("threadId"), q.Get("thread_id")) {
		if given != "" && id != "" && given != id {
			return "", problem.BadParameter("threadId", "is "+problem.Excerpt(id)+" and "+problem.Excerpt(given)+": name one conversation")
		}
		id = cmp.Or(id, given)
	}
	if id == "" {
		return "", problem.BadParameter("threadId", "is missing: name the conversation, in the query or in the body")
	}
	return id, nil
}

// events shows a thread to a page that has just been loaded: what was said, and the run that goes on. With Last-Event-ID
// it shows the rest of the run only.
func (s *Server) events(w http.ResponseWriter, r *http.Request, agent string) error {
	id, err := thread(r)
	if err != nil {
		return err
	}
	after, err := resumePoint(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.wire.Timeout)
	defer cancel()
	session, err := s.wire.Find(ctx, place(agent, id))
	if err != nil {
		return err
	}
	runID := r.URL.Query().Get("runId")
	turn := session.GetActiveTurn()
	if runID != "" {
		made, err := s.wire.Sessions.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: session.GetName(), OfRequest: wire.RequestID("ag-ui", runID)})
		if err != nil {
			return err
		}
		if len(made.GetTurns()) > 0 {
			turn = made.GetTurns()[0].GetName()
		} else if shown, err := s.wire.Sessions.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: session.GetName() + "/turns/" + runID}); err == nil {
			turn = shown.GetTurn().GetName() // this request has named it before
		}
	}
	said, err := s.said(ctx, session.GetName(), turn)
	if err != nil {
		return err
	}
	if turn == "" {
		if runID == "" {
			runID = "connect-" + wire.LastPart(session.GetName())
		}
		done := event{"type": "RUN_FINISHED", "threadId": id, "runId": runID, "outcome": event{"type": "success"}}
		started := event{"type": "RUN_STARTED", "threadId": id, "runId": runID, "protocolVersion": "1.0"}
		return s.sendAll(w, []event{started, {"type": "MESSAGES_SNAPSHOT", "messages": said}, done})
	}
	e, from, err := s.history(ctx, session.GetName(), turn)
	if err != nil {
		return err
	}
	if runID == "" {
		runID = wire.LastPart(turn)
	}
	run := Run{ThreadID: id, RunID: runID, Turn: turn, Start: from, After: after, Answered: settled(e), Messages: said, Whole: true, HasState: true}
	return s.stream(w, r, session.GetName(), from, run)
}

// settled returns what is answered of a turn: a run that shows it goes on there.
func settled(e *Encoder) map[string]bool {
	all := map[string]bool{}
	for _, a := range e.asks {
		if a.resolved {
			all[a.key()] = false
		}
	}
	for id, c := range e.calls {
		if c.done {
			all[id] = false
		}
	}
	return all
}

// said returns the messages of a session in the form of the protocol, without what a turn's agent says.
func (s *Server) said(ctx context.Context, session, turn string) (all []json.RawMessage, err error) {
	all = []json.RawMessage{}
	for token := ""; ; {
		page, err := s.wire.Sessions.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: session, PageSize: 1000, PageToken: token})
		if err != nil {
			return nil, err
		}
		for _, m := range page.GetMessages() {
			if turn != "" && m.GetTurn() == turn && userText(m) == "" {
				continue
			}
			for _, one := range messagesOf(m) {
				b, err := json.Marshal(one)
				if err != nil {
					return nil, err
				}
				all = append(all, b)
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}

// messagesOf returns a message of the session as messages of the protocol.
func messagesOf(m *sessionv1.Message) (all []*message) {
	id := wire.LastPart(m.GetName())
	var t transcript
	var said []*commonv1.Content
	for i, b := range m.GetBlocks() {
		block := fmt.Sprintf("%s-%d", id, i)
		switch {
		case b.GetThinking().GetText() != "":
			t.add(block, "reasoning", "", b.GetThinking().GetText())
		case b.GetToolUse() != nil:
			u := b.GetToolUse()
			t.call(id, "", u.GetCallId(), u.GetTool()).Function.Arguments = u.GetArgumentsJson()
		case b.GetToolResult() != nil:
			r := t.at(b.GetToolResult().GetCallId()+"-result", "tool", "")
			r.ToolCallID, r.Content = b.GetToolResult().GetCallId(), resultOf(b.GetToolResult().GetContent(), false)
		case m.GetRole() == sessionv1.Role_ROLE_ASSISTANT:
			t.add(id, "assistant", "", b.GetContent().GetText().GetText())
		case b.GetContent() != nil:
			said = append(said, b.GetContent())
		}
	}
	if len(said) > 0 {
		t.at(id, "user", "").Content = resultOf(said, false)
	}
	return t.messages
}
