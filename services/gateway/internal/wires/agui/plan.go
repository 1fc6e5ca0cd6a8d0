package agui

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// reasonRunIDTaken is the reason of a message under the id of a run that has another one.
const reasonRunIDTaken = "RUN_ID_TAKEN"

// plan does what a request asks for, once, and returns the run to show and where its turn begins in the log.
func (s *Server) plan(ctx context.Context, in *input, session *sessionv1.Session) (Run, int64, error) {
	// Before the run is looked for: an answer under the id of the run that asked must not be lost.
	if run, from, found, err := s.resume(ctx, in, session); found || err != nil {
		return run, from, err
	}
	id := wire.RequestID("ag-ui", in.RunID)
	made, err := s.wire.Sessions.ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: session.GetName(), OfRequest: id})
	if err != nil {
		return Run{}, 0, err
	}
	if turns := made.GetTurns(); len(turns) > 0 { // the run has begun: it is shown again
		if err := s.checkSame(ctx, in, turns[0]); err != nil {
			return Run{}, 0, err
		}
		return Run{Turn: turns[0].GetName(), Start: turns[0].GetAfterSeq()}, turns[0].GetAfterSeq(), nil
	}
	if run, from, found, err := s.bring(ctx, in, session); found || err != nil {
		return run, from, err
	}
	if err := s.checkIdle(ctx, session); err != nil {
		return Run{}, 0, err
	}
	skip, err := s.known(ctx, in, session.GetName())
	if err != nil {
		return Run{}, 0, err
	}
	req, err := in.created(skip)
	if err != nil {
		return Run{}, 0, err
	}
	req.Parent, req.RequestId = session.GetName(), id
	turn, err := s.wire.Sessions.CreateTurn(ctx, req)
	if err != nil {
		return Run{}, 0, err
	}
	return Run{Turn: turn.GetTurn().GetName(), Start: turn.GetTurn().GetAfterSeq()}, turn.GetTurn().GetAfterSeq(), nil
}

// checkSame refuses a new message under the id of an earlier run: it would be lost.
func (s *Server) checkSame(ctx context.Context, in *input, turn *sessionv1.Turn) error {
	said := ""
	for i := in.firstNew(); i < len(in.read); i++ {
		if t, ok := in.text(i); ok {
			said = t
		}
	}
	if said == "" {
		return nil
	}
	session, _, _ := strings.Cut(turn.GetName(), "/turns/")
	page, err := s.wire.Sessions.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: session, AfterSeq: turn.GetAfterSeq(), PageSize: 10})
	if err != nil {
		return err
	}
	for _, e := range page.GetEvents() {
		q := e.GetTurnQueued()
		if q != nil && e.GetTurn() == turn.GetName() && !strings.HasSuffix(text(q.GetContent()), said) {
			return problem.WithStatus(http.StatusConflict, apierr.New(codes.FailedPrecondition, problem.Domain, reasonRunIDTaken,
				fmt.Sprintf("runId %q is of an earlier run with another message; give each run an id of its own", problem.Excerpt(in.RunID)), apierr.Field("runId", "is taken")))
		}
	}
	return nil
}

// history folds the log of a turn until now, and returns where the turn begins in it.
func (s *Server) history(ctx context.Context, session, turn string) (*Encoder, int64, error) {
	got, err := s.wire.Sessions.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: turn})
	if err != nil {
		return nil, 0, err
	}
	e := NewEncoder(Run{Turn: turn, Start: math.MaxInt64})
	after := got.GetTurn().GetAfterSeq()
	for token := ""; ; {
		page, err := s.wire.Sessions.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: session, AfterSeq: after, PageSize: 1000, PageToken: token})
		if err != nil {
			return nil, 0, err
		}
		for _, from := range page.GetEvents() {
			e.events(from)
		}
		if token = page.GetNextPageToken(); token == "" {
			return e, after, nil
		}
	}
}

// resume answers interrupts. Entries that name none of ours are ignored.
func (s *Server) resume(ctx context.Context, in *input, session *sessionv1.Session) (run Run, from int64, found bool, err error) {
	refs := map[string]int{} // by key, the index of the entry
	var ref interruptRef
	for i, r := range in.Resume {
		if one, ok := parseInterrupt(r.InterruptID); ok && (ref.turn == "" || ref.turn == one.turn) {
			ref.turn, ref.seq, refs[one.key()] = one.turn, max(ref.seq, one.seq), i
		}
	}
	if len(refs) == 0 {
		return run, 0, false, nil
	}
	turn := session.GetName() + "/turns/" + ref.turn
	e, from, err := s.history(ctx, session.GetName(), turn)
	if apierr.Code(err) == codes.NotFound || apierr.Code(err) == codes.InvalidArgument {
		return run, 0, false, nil
	}
	if err != nil {
		return run, 0, false, err
	}
	run = Run{Turn: turn, Start: ref.seq, Answered: map[string]bool{}}
	var answers []answer
	for _, a := range e.asks {
		if a.at > ref.seq || a.until != 0 && a.until <= ref.seq {
			continue // it was not open when the run ended
		}
		i, ok := refs[a.key()]
		if !ok && !a.resolved {
			return run, 0, false, bad("resume", fmt.Sprintf("has no answer to the interrupt %s/%d/%s; answer all of them", ref.turn, ref.seq, a.key()))
		}
		if !ok {
			continue
		}
		run.Answered[a.key()] = false
		one, err := s.resolve(fmt.Sprintf("resume[%d]", i), in.RunID, in.Resume[i], a, a.lane.session)
		if err != nil {
			return run, 0, false, err
		}
		answers = append(answers, one)
	}
	if len(answers) == 0 {
		return run, 0, false, nil
	}
	if err := s.addResults(in, session.GetName(), e, &run, &answers); err != nil {
		return run, 0, false, err
	}
	return run, from, true, all(ctx, answers)
}

// all makes requests, one after the other.
func all(ctx context.Context, answers []answer) error {
	for _, one := range answers {
		if err := one(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addResults adds the results of the client's tools for which a turn waits, or did.
func (s *Server) addResults(in *input, session string, e *Encoder, run *Run, answers *[]answer) error {
	for id, m := range in.results() {
		c := e.calls[id]
		if c == nil || c.waited == 0 {
			continue
		}
		one, err := s.submit(in.RunID, session, m)
		if err != nil {
			return err
		}
		*answers = append(*answers, one)
		run.Answered[id] = true
	}
	return nil
}

// bring brings the results of the client's own tools.
func (s *Server) bring(ctx context.Context, in *input, session *sessionv1.Session) (run Run, from int64, found bool, err error) {
	results := in.results()
	turn := ""
	for id := range results {
		if t, _, ok := strings.Cut(id, "."); ok {
			turn = session.GetName() + "/turns/" + t // all of a message are of one turn
		}
	}
	if turn == "" {
		return run, 0, false, nil
	}
	e, from, err := s.history(ctx, session.GetName(), turn)
	if apierr.Code(err) == codes.NotFound || apierr.Code(err) == codes.InvalidArgument {
		return run, 0, false, nil
	}
	if err != nil {
		return run, 0, false, err
	}
	run = Run{Turn: turn, Start: math.MaxInt64, Answered: map[string]bool{}}
	open := false
	for id := range results {
		if c := e.calls[id]; c != nil && c.waited > 0 {
			run.Start, open = min(run.Start, c.waited), open || !c.done
		}
	}
	said := in.says()
	if run.Start == math.MaxInt64 || said && !open {
		return run, 0, false, nil
	}
	if said {
		return run, 0, false, bad("messages", "has results of tools and a new message; send the results alone, and the message in the next run")
	}
	var answers []answer
	if err := s.addResults(in, session.GetName(), e, &run, &answers); err != nil {
		return run, 0, false, err
	}
	return run, from, true, all(ctx, answers)
}

// says reports whether the user says something at the end of the messages.
func (in *input) says() bool {
	for _, m := range in.read[in.firstNew():] {
		if m.Role == "user" {
			return true
		}
	}
	return false
}

// checkIdle refuses a new message while the active turn waits for an answer.
func (s *Server) checkIdle(ctx context.Context, session *sessionv1.Session) error {
	turn := session.GetActiveTurn()
	if turn == "" {
		return nil
	}
	e, _, err := s.history(ctx, session.GetName(), turn)
	if err != nil {
		return err
	}
	if open := e.openAsks(); len(open) > 0 {
		return &waitingError{"the answer to " + open[0].describe()}
	}
	for id, c := range e.calls {
		if c.waited > 0 && !c.done {
			return &waitingError{"the result of the client's tool " + c.tool + " (" + id + ")"}
		}
	}
	return nil
}

// describe names what is asked for people.
func (a *ask) describe() string {
	if a.question != nil {
		return fmt.Sprintf("the question %q", a.question.GetQuestion().GetMessage())
	}
	return "the approval of " + a.approval.GetTool() + " (" + a.call + ")"
}

// known returns how many of the new messages the session has already. One message is always new. Several are there
// after runs that ended without an answer.
func (s *Server) known(ctx context.Context, in *input, session string) (int, error) {
	first := in.firstNew()
	if len(in.read)-first < 2 {
		return 0, nil
	}
	fresh := newMatch(in.texts(first, len(in.read)-1))
	for token := ""; ; {
		page, err := s.wire.Sessions.ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: session, PageSize: 1000, PageToken: token})
		if err != nil {
			return 0, err
		}
		for _, m := range page.GetMessages() {
			if t := userText(m); t != "" {
				fresh.next(t)
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	return in.count(first, fresh.have), nil
}

// count returns how many messages from an index on have the first n texts of the user.
func (in *input) count(first, n int) int {
	for i := first; n > 0; i++ {
		if _, said := in.text(i); said {
			n--
		}
		if n == 0 {
			return i + 1 - first
		}
	}
	return 0
}

// text returns what the user says in a message; false if it is of another speaker or cannot be read.
func (in *input) text(i int) (string, bool) {
	if in.read[i].Role != "user" {
		return "", false
	}
	content, err := in.read[i].parse(fmt.Sprintf("messages[%d]", i))
	if err != nil {
		return "", false
	}
	return text(content), true
}

// texts returns the texts of the user's messages from one index to another.
func (in *input) texts(from, to int) (all []string) {
	for i := from; i < to; i++ {
		if t, said := in.text(i); said {
			all = append(all, t)
		}
	}
	return all
}

// userText returns what a person said in a message; "" if it is of the agent, or has results of tools.
func userText(m *sessionv1.Message) string {
	if m.GetRole() != sessionv1.Role_ROLE_USER {
		return ""
	}
	var content []*commonv1.Content
	for _, b := range m.GetBlocks() {
		if b.GetContent() != nil {
			content = append(content, b.GetContent())
		}
	}
	return text(content)
}
