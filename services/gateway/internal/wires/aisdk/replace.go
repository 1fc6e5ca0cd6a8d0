package aisdk

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// edit sends a user's message in the place of one that was sent: the session goes back to before it, and with it the
// files of the workspace.
func (s *Server) edit(w http.ResponseWriter, r *http.Request, req *request, content []*commonv1.Content, place wire.Place, f Form) error {
	session, err := s.Find(r.Context(), place)
	if err != nil {
		return err
	}
	t, err := s.turnOf(r.Context(), session.GetName(), req.ID, req.MessageID)
	if err != nil {
		return err
	}
	if t == nil {
		return noTurn("messageId", req.MessageID)
	}
	for next := t; next != nil; { // it may have been edited before
		t = next
		if next, err = s.ofRequest(r.Context(), session.GetName(), insteadOf(req.ID, t)); err != nil {
			return err
		}
	}
	return s.replace(w, r, req, session, t, content, f)
}

// redo makes an answer anew. A turn that failed, was stopped or reached a limit goes on; after any other the session
// goes back to before it.
func (s *Server) redo(w http.ResponseWriter, r *http.Request, req *request, last message, place wire.Place, f Form) error {
	session, err := s.Find(r.Context(), place)
	if err != nil {
		return err
	}
	named := req.MessageID
	if named == "" {
		named = last.ID
	}
	t, err := s.turnOf(r.Context(), session.GetName(), req.ID, named)
	if err != nil {
		return err
	}
	if t == nil {
		return noTurn("messageId", named)
	}
	for { // a request that comes again shows the same turn again; a message of the user's stands for its latest answer
		next, err := s.ofRequest(r.Context(), session.GetName(), insteadOf(req.ID, t))
		if err != nil {
			return err
		}
		if next == nil {
			break
		}
		if req.MessageID != "" {
			return s.send(w, r, next, &answer{turn: newTurn(next.GetName(), f), until: session.GetLastSeq()})
		}
		t = next
	}
	events, err := s.Events(r.Context(), session.GetName(), t.GetAfterSeq(), session.GetLastSeq())
	if err != nil {
		return err
	}
	said, newest := saidIn(events, t.GetName())
	if newest && t.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE {
		made, err := s.Sessions.CreateTurn(r.Context(), &sessionv1.CreateTurnRequest{Parent: session.GetName(), Resume: true, RequestId: insteadOf(req.ID, t)})
		if err == nil {
			return s.send(w, r, made.GetTurn(), &answer{turn: newTurn(made.GetTurn().GetName(), f), until: session.GetLastSeq()})
		}
		if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_NOTHING_TO_RESUME) {
			return err
		}
	}
	if len(said) == 0 {
		return problem.WithStatus(http.StatusConflict, apierr.New(codes.FailedPrecondition, problem.Domain, reasonAnswerComplete,
			"the answer goes on from an earlier one, and cannot be made anew alone; send a new message, or regenerate the answer before it", apierr.Field("messageId", "goes on from an earlier answer")))
	}
	return s.replace(w, r, req, session, t, said, f)
}

// saidIn returns what the message of a turn says, and whether no other turn came after it.
func saidIn(events []*sessionv1.Event, turn string) (said []*commonv1.Content, newest bool) {
	newest = true
	for _, e := range events {
		switch q := e.GetTurnQueued(); {
		case q != nil && e.GetTurn() == turn:
			said, newest = q.GetContent(), true
		case q != nil:
			newest = false
		}
	}
	return said, newest
}

// insteadOf returns the idempotency key of the turn that takes the place of another one.
func insteadOf(chat string, t *sessionv1.Turn) string {
	return wire.RequestID(chat, "instead of", t.GetName())
}

// turnOf returns the turn of a message: of one of ours by its id, or of one that the client sent. nil: there is none.
func (s *Server) turnOf(ctx context.Context, session, chat, message string) (*sessionv1.Turn, error) {
	if short := strings.TrimSuffix(message, "-user"); turnID.MatchString(short) {
		got, err := s.Sessions.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: session + "/turns/" + short})
		if err == nil || apierr.Code(err) != codes.NotFound {
			return got.GetTurn(), err
		}
	}
	for _, trigger := range []string{submit, ""} {
		if t, err := s.ofRequest(ctx, session, wire.RequestID(chat, message, trigger, "")); t != nil || err != nil {
			return t, err
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// ofRequest returns the turn that a request made; nil if it made none.
func (s *Server) ofRequest(ctx context.Context, session, request string) (*sessionv1.Turn, error) {
	made, err := s.Sessions.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: session, OfRequest: request})
	if err != nil || len(made.GetTurns()) == 0 {
		return nil, err
	}
	return made.GetTurns()[0], nil
}

// replace goes back to before a turn, and answers with a new one.
func (s *Server) replace(w http.ResponseWriter, r *http.Request, req *request, session *sessionv1.Session, t *sessionv1.Turn, content []*commonv1.Content, f Form) error {
	tools, err := req.tools()
	if err != nil {
		return err
	}
	if err := s.rewind(r.Context(), session.GetName(), t.GetName()); err != nil {
		return err
	}
	made, err := s.Sessions.CreateTurn(r.Context(), &sessionv1.CreateTurnRequest{
		Parent: session.GetName(), Content: content, ClientTools: tools, RequestId: insteadOf(req.ID, t),
	})
	if err != nil {
		return err
	}
	return s.send(w, r, made.GetTurn(), &answer{turn: newTurn(made.GetTurn().GetName(), f), until: session.GetLastSeq()})
}

// rewind makes a session what it was before a turn. What runs or waits is stopped first: the person wants something
// else instead.
func (s *Server) rewind(ctx context.Context, session, turn string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	for {
		_, err := s.points.RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: session, BeforeTurn: turn, RequestId: wire.RequestID(session, "before", turn)})
		if !apierr.Is(err, sessionv1.ErrorReason_ERROR_REASON_TURN_ACTIVE) {
			return err
		}
		if err := s.stopActive(ctx, session); err != nil {
			return err
		}
	}
}

// stopActive interrupts the active turn of a session, and waits for its end.
func (s *Server) stopActive(ctx context.Context, session string) error {
	stopped, err := s.Sessions.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: session, CancelQueued: true, RequestId: id.New()})
	if err != nil || stopped.GetTurn() == "" {
		return err
	}
	got, err := s.Sessions.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: stopped.GetTurn()})
	if err != nil {
		return err
	}
	f := s.Follow(ctx, session, got.GetTurn().GetAfterSeq())
	defer f.Close()
	for e := range f.Events() {
		if e.GetTurn() == stopped.GetTurn() && e.GetTurnFinished() != nil {
			return nil
		}
	}
	return fmt.Errorf("wait for the end of %s: %w", stopped.GetTurn(), f.Err())
}
