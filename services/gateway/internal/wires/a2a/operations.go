package a2a

import (
	"context"
	"maps"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

var (
	idForm      = regexp.MustCompile(`^([a-z0-9][a-z0-9-]{0,62})\.([a-z0-9][a-z0-9-]{0,62})$`)
	sessionForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	contextForm = regexp.MustCompile(`^[!-~]{1,96}$`)
)

// keyPrefix begins the keys of sessions whose contexts have an id of the client's.
const keyPrefix = "a2a/"

// contextOf returns the protocol's id of a session: the client's own, or ours.
func contextOf(s *sessionv1.Session) string {
	if id, ok := strings.CutPrefix(s.GetKey(), keyPrefix); ok && contextForm.MatchString(id) {
		return id
	}
	return strings.TrimPrefix(s.GetName(), "sessions/")
}

// of reports whether a session is with the agent of the request.
func (c *call) of(s *sessionv1.Session) bool {
	return strings.TrimPrefix(s.GetAgent(), "agents/") == c.agent
}

// find returns a task as it is now, and its turn; answered is what the request at hand answers.
func (c *call) find(ctx context.Context, id string, answered map[string]bool) (*fold, *sessionv1.Turn, error) {
	if id == "" {
		return nil, nil, bad("id", "is missing: name the task")
	}
	parts := idForm.FindStringSubmatch(id)
	if parts == nil {
		return nil, nil, noTask(id)
	}
	name := "sessions/" + parts[1]
	session, err := c.wire.Sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: name})
	if err == nil && !c.of(session.GetSession()) {
		return nil, nil, noTask(id)
	}
	if err != nil {
		return nil, nil, missing(err, id)
	}
	got, err := c.wire.Sessions.GetTurn(ctx, &sessionv1.GetTurnRequest{Name: name + "/turns/" + parts[2]})
	if err != nil {
		return nil, nil, missing(err, id)
	}
	f, err := c.read(ctx, session.GetSession(), got.GetTurn(), answered)
	return f, got.GetTurn(), err
}

// read folds the log of a turn until now.
func (c *call) read(ctx context.Context, session *sessionv1.Session, turn *sessionv1.Turn, answered map[string]bool) (*fold, error) {
	f := newFold(ref{turn: turn.GetName(), context: contextOf(session), base: wire.Base(c.PublicURL, c.r)})
	f.answered = maps.Clone(answered)
	req := &sessionv1.ListEventsRequest{Parent: session.GetName(), AfterSeq: turn.GetAfterSeq(), PageSize: 1000}
	for !terminal(f.status.State) {
		page, err := c.wire.Sessions.ListEvents(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, e := range page.GetEvents() {
			f.add(e)
		}
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			break
		}
	}
	return f, nil
}

// conversation returns the session of a context; without one it is made.
func (c *call) conversation(ctx context.Context, m *message) (*sessionv1.Session, error) {
	id := m.ContextID
	if id == "" {
		made, err := c.wire.Sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{
			Session: &sessionv1.Session{Agent: c.agent}, RequestId: wire.RequestID("a2a", "context", c.agent, m.MessageID),
		})
		return made.GetSession(), err
	}
	if !contextForm.MatchString(id) {
		return nil, bad("message.contextId", "has to be 1 to 96 printable characters of ASCII without spaces")
	}
	if sessionForm.MatchString(id) {
		got, err := c.wire.Sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/" + id})
		if err == nil && !c.of(got.GetSession()) {
			return nil, bad("message.contextId", "is of a conversation with another agent")
		}
		if apierr.Code(err) != codes.NotFound {
			return got.GetSession(), err
		}
	}
	found, err := c.wire.FindOrMake(ctx, wire.Place{Wire: "a2a", ID: id, Agent: c.agent})
	if apierr.Reason(problem.Status(err).Err()) == wire.ReasonOtherAgent {
		return nil, bad("message.contextId", "is of a conversation with another agent")
	}
	return found, err
}

// begun is a message that has had its effect.
type begun struct {
	*fold
	in    sendRequest
	after int64 // where the turn begins in the log
	// answers is what the message answers.
	answers map[string]bool
}

// history returns how many messages the answer may have; negative: all.
func (in *sendRequest) history() int {
	if h := in.Configuration.History; h != nil {
		return *h
	}
	return -1
}

// begin lets a message have its effect: it answers what a task asks for, or begins a task.
func (c *call) begin() (*begun, error) {
	b := &begun{}
	if err := c.decode(&b.in); err != nil {
		return nil, err
	}
	if err := b.in.check(); err != nil {
		return nil, err
	}
	depth, err := c.depthOf(&b.in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	if b.in.Message.TaskID != "" {
		return b, c.reply(ctx, b)
	}
	req, err := b.in.turn(depth)
	if err != nil {
		return nil, err
	}
	session, err := c.conversation(ctx, b.in.Message)
	if err != nil {
		return nil, err
	}
	req.Parent, req.RequestId = session.GetName(), wire.RequestID("a2a", b.in.Message.MessageID)
	made, err := c.wire.Sessions.CreateTurn(ctx, req)
	if err != nil {
		return nil, err
	}
	b.after = made.GetTurn().GetAfterSeq()
	b.fold, err = c.read(ctx, session, made.GetTurn(), nil)
	return b, err
}

// sendStreaming sends a message, and follows its task.
func (c *call) sendStreaming() (any, error) {
	b, err := c.begin()
	if err != nil {
		return nil, err
	}
	f := newFold(b.ref)
	f.answered = b.answers
	return nil, c.stream(&encoder{fold: f, from: b.last, history: b.in.history()}, b.after)
}

// sendMessage sends a message, and waits until its task has ended or asks for something.
func (c *call) sendMessage() (any, error) {
	b, err := c.begin()
	if err != nil {
		return nil, err
	}
	if !b.in.Configuration.Immediately {
		if err := c.await(b.fold, func() bool { return terminal(b.status.State) || interrupted(b.status.State) }); err != nil {
			return nil, err
		}
	}
	t := b.task()
	t.History = newest(t.History, b.in.history())
	return object{"task": t}, nil
}

// await follows a task until done.
func (c *call) await(f *fold, done func() bool) error {
	if done() {
		return nil
	}
	follower := c.wire.Follow(c.r.Context(), f.session(), f.last)
	defer follower.Close()
	for {
		select {
		case e, ok := <-follower.Events():
			if !ok {
				return follower.Err()
			}
			if f.add(e); done() {
				return nil
			}
		case <-rpc.Draining(c.r.Context()):
			return problem.Stopping()
		}
	}
}

// taskRequest is a request about one task.
type taskRequest struct {
	ID      string `json:"id"`
	History *int   `json:"historyLength"`
}

// get returns a task.
func (c *call) get() (any, error) {
	var in taskRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.History != nil && *in.History < 0 {
		return nil, bad("historyLength", "is negative")
	}
	ctx, cancel := c.within()
	defer cancel()
	f, _, err := c.find(ctx, in.ID, nil)
	if err != nil {
		return nil, err
	}
	t := f.task()
	if in.History != nil {
		t.History = newest(t.History, *in.History)
	}
	return t, nil
}

// cancel stops a task, and waits for its end.
func (c *call) cancel() (any, error) {
	var in taskRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	f, _, err := c.find(ctx, in.ID, nil)
	switch {
	case err != nil:
		return nil, err
	case f.status.State == stateCanceled:
		return f.task(), nil
	case terminal(f.status.State):
		return nil, fail(taskNotCancelable, "the task "+in.ID+" has ended already")
	}
	if _, err := c.wire.Sessions.InterruptSession(ctx, &sessionv1.InterruptSessionRequest{Name: f.session(), Turn: f.turn}); err != nil {
		return nil, err
	}
	if err := c.await(f, func() bool { return terminal(f.status.State) }); err != nil {
		return nil, err
	}
	return f.task(), nil
}

// subscribe follows a task that has not ended.
func (c *call) subscribe() (any, error) {
	var in taskRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	f, turn, err := c.find(ctx, in.ID, nil)
	if err != nil {
		return nil, err
	}
	if terminal(f.status.State) {
		return nil, fail(unsupported, "the task "+in.ID+" has ended; read it with GetTask")
	}
	cancel()
	return nil, c.stream(&encoder{fold: newFold(f.ref), from: f.last, history: -1, stays: true}, turn.GetAfterSeq())
}

// missingAsNone leaves out the error for what is not there.
func missingAsNone(err error) error {
	if apierr.Code(err) == codes.NotFound {
		return nil
	}
	return err
}
