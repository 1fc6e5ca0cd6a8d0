package aisdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// Reasons of the wire's own refusals.
const (
	reasonAnswerComplete  = "ANSWER_COMPLETE"
	reasonNothingAnswered = "NOTHING_ANSWERED"
	reasonUnknownMessage  = "UNKNOWN_MESSAGE"
)

// submit sends a user's message and answers with its turn.
func (s *Server) submit(w http.ResponseWriter, r *http.Request, req *request, last message, at string, place wire.Place, f Form) error {
	content, err := last.content(at)
	if err != nil {
		return err
	}
	tools, err := req.tools()
	if err != nil {
		return err
	}
	if req.Trigger == regenerate {
		return s.redo(w, r, req, last, place, f)
	}
	if req.MessageID != "" {
		return s.edit(w, r, req, content, place, f)
	}
	session, err := s.FindOrMake(r.Context(), place)
	if err != nil {
		return err
	}
	create := &sessionv1.CreateTurnRequest{
		Parent: session.GetName(), Content: content, ClientTools: tools, RequestId: wire.RequestID(req.ID, last.ID, req.Trigger, ""),
	}
	if last.ID == "" {
		create.RequestId = ""
	}
	made, err := s.Sessions.CreateTurn(r.Context(), create)
	if err != nil {
		return err
	}
	t := made.GetTurn()
	if err := s.stopWaiting(r, session, t); err != nil {
		return err
	}
	return s.send(w, r, t, &answer{turn: newTurn(t.GetName(), f), until: session.GetLastSeq()})
}

// stopWaiting stops the turn that was active before a new one, if it waits: it would wait for ever, because the person
// writes instead of answering. A turn that runs is finished first.
func (s *Server) stopWaiting(r *http.Request, session *sessionv1.Session, made *sessionv1.Turn) error {
	before := session.GetActiveTurn()
	if before == "" || before == made.GetName() || made.GetState() != sessionv1.TurnState_TURN_STATE_QUEUED {
		return nil
	}
	got, err := s.Sessions.GetTurn(r.Context(), &sessionv1.GetTurnRequest{Name: before})
	if err != nil || got.GetTurn().GetState() != sessionv1.TurnState_TURN_STATE_WAITING {
		return err
	}
	_, err = s.Sessions.InterruptSession(r.Context(), &sessionv1.InterruptSessionRequest{
		Name: session.GetName(), Turn: before, RequestId: wire.RequestID(made.GetName(), "instead of", before),
	})
	return err
}

var turnID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// goOn takes what the browser says about the calls of a turn that waits, and answers with the rest of the turn.
func (s *Server) goOn(w http.ResponseWriter, r *http.Request, last message, at string, place wire.Place, f Form) error {
	session, err := s.Find(r.Context(), place)
	if err != nil {
		return err
	}
	if !turnID.MatchString(last.ID) {
		return noTurn(at+".id", last.ID)
	}
	got, err := s.Sessions.GetTurn(r.Context(), &sessionv1.GetTurnRequest{Name: session.GetName() + "/turns/" + last.ID})
	if apierr.Code(err) == codes.NotFound {
		return noTurn(at+".id", last.ID)
	}
	if err != nil {
		return err
	}
	t := got.GetTurn()
	events, err := s.Events(r.Context(), session.GetName(), t.GetAfterSeq(), session.GetLastSeq())
	if err != nil {
		return err
	}
	decided := last.decisions()
	if err := wire.TooMany(at+".parts", len(decided), wire.MostEvents); err != nil {
		return err
	}
	calls := make([]string, 0, len(decided))
	for _, d := range decided {
		calls = append(calls, d.call)
	}
	asked := readAsked(t.GetName(), calls, events)
	if asked.after == 0 {
		return problem.WithStatus(http.StatusConflict, apierr.New(codes.FailedPrecondition, problem.Domain, reasonNothingAnswered,
			"the message answers nothing that its turn waits for; read the conversation again", apierr.Field(at, "answers nothing")))
	}
	answered, err := s.decide(r, session.GetName(), asked, decided, at)
	if err != nil {
		return err
	}
	return s.send(w, r, t, &answer{turn: newTurn(t.GetName(), f), until: session.GetLastSeq(), after: asked.after, answered: answered})
}

func noTurn(at, given string) error {
	return problem.WithStatus(http.StatusConflict, apierr.New(codes.FailedPrecondition, problem.Domain, reasonUnknownMessage,
		fmt.Sprintf("%s %q is no message of this conversation that can be answered or replaced; read the conversation again", at, problem.Excerpt(given)),
		apierr.Field(at, "is not known")))
}

// decide passes on what the browser says, and returns the calls that it says it about. What it decides is in our own
// log, and each request is the same each time.
func (s *Server) decide(r *http.Request, session string, a asked, decided []decision, at string) (answered []string, err error) {
	for _, d := range decided {
		digest, approval := a.digests[d.call]
		question, asks := a.questions[d.call]
		key := func(kind string, more ...string) string {
			return wire.RequestID(append([]string{session, d.call, kind}, more...)...)
		}
		switch {
		case d.approved != nil && !approval:
			return nil, problem.BodyMalformed(at, fmt.Sprintf("%s approves the call %q, which waits for no approval", at, problem.Excerpt(d.call)))
		case d.approved != nil || approval && !asks && slices.Contains(a.waits, d.call):
			err = s.approve(r, session, d, digest, key)
		case a.finished[d.call]:
			continue // a result of ours that comes back, or one that was taken
		case asks:
			err = s.reply(r, session, d, question, key)
		case slices.Contains(a.waits, d.call):
			err = s.submitResult(r, session, d, key)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		answered = append(answered, d.call)
	}
	return answered, nil
}

type keys func(kind string, more ...string) string

// approve answers an approval. A client of version 5 has none, and sends a result {"approved": …}.
func (s *Server) approve(r *http.Request, session string, d decision, digest string, key keys) error {
	yes := d.approved
	if yes == nil {
		var said struct {
			Approved *bool  `json:"approved"`
			Reason   string `json:"reason"`
		}
		if json.Unmarshal(d.output, &said) != nil || said.Approved == nil {
			return problem.BodyMalformed("output", fmt.Sprintf(`the call %q waits for an approval: send the output {"approved": true} or {"approved": false, "reason": "…"}`, d.call))
		}
		yes, d.comment = said.Approved, said.Reason
	}
	_, err := s.Sessions.ResolveApproval(r.Context(), &sessionv1.ResolveApprovalRequest{
		Parent: session, CallId: d.call, Digest: digest, Approved: *yes, Comment: d.comment, RequestId: key("approval", strconv.FormatBool(*yes), d.comment),
	})
	return err
}

// reply answers a question: the output is the answer, and an error declines.
func (s *Server) reply(r *http.Request, session string, d decision, question string, key keys) error {
	q := &sessionv1.AnswerQuestionRequest{
		Parent: session, CallId: d.call, QuestionId: question, Action: commonv1.QuestionAction_QUESTION_ACTION_ACCEPT, ContentJson: string(d.output),
	}
	if d.failed != nil {
		q.Action, q.ContentJson = commonv1.QuestionAction_QUESTION_ACTION_DECLINE, ""
	}
	q.RequestId = key("question", question, q.GetContentJson())
	_, err := s.Sessions.AnswerQuestion(r.Context(), q)
	return err
}

// submitResult passes on the result of a tool that ran in the browser.
func (s *Server) submitResult(r *http.Request, session string, d decision, key keys) error {
	content, failed := result(d.output), d.failed != nil
	if failed {
		content = result(value(*d.failed))
	}
	_, err := s.Sessions.SubmitToolResult(r.Context(), &sessionv1.SubmitToolResultRequest{
		Parent: session, CallId: d.call, Content: content, IsError: failed, RequestId: key("result"),
	})
	return err
}
