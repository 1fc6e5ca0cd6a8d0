package a2a

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/page"
)

// maxContexts bounds the contexts whose tasks are listed together: the newest ones.
const maxContexts = 100

// listRequest is a ListTasksRequest.
type listRequest struct {
	ContextID string `json:"contextId"`
	Status    string `json:"status"`
	PageSize  *int   `json:"pageSize"`
	PageToken string `json:"pageToken"`
	History   *int   `json:"historyLength"`
	After     string `json:"statusTimestampAfter"`
	Artifacts bool   `json:"includeArtifacts"`

	since time.Time
}

var states = []string{
	"", "TASK_STATE_UNSPECIFIED", stateSubmitted, stateWorking, stateCompleted, stateFailed, stateCanceled, stateInputRequired, stateRejected, stateAuthRequired,
}

func (in *listRequest) check() (err error) {
	switch {
	case in.PageSize != nil && (*in.PageSize < 1 || *in.PageSize > 100):
		return bad("pageSize", "is not between 1 and 100")
	case in.History != nil && *in.History < 0:
		return bad("historyLength", "is negative")
	case !slices.Contains(states, in.Status):
		return bad("status", "is no state of a task, such as TASK_STATE_WORKING")
	}
	if in.Status == "TASK_STATE_UNSPECIFIED" {
		in.Status = ""
	}
	if in.After != "" {
		if in.since, err = parseStamp(in.After); err != nil {
			return bad("statusTimestampAfter", "is no time such as 2026-01-02T15:04:05Z")
		}
	}
	return nil
}

// row is a task in a list.
type row struct {
	session *sessionv1.Session
	turn    *sessionv1.Turn
	task    task
	read    *fold // nil if its log has not been read
}

// list lists tasks of the caller with the agent, the last changed first.
func (c *call) list() (any, error) {
	var in listRequest
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	scope := "ListTasks\x00" + c.agent + "\x00" + in.ContextID + "\x00" + in.Status + "\x00" + in.After
	var behind struct{ Time, ID string }
	if in.PageToken != "" {
		if err := page.Decode(in.PageToken, scope, &behind); err != nil {
			return nil, bad("pageToken", "is none of this list")
		}
	}
	ctx, cancel := c.within()
	defer cancel()
	rows, err := c.rows(ctx, &in)
	if err != nil {
		return nil, err
	}
	size, total := 50, len(rows)
	if in.PageSize != nil {
		size = *in.PageSize
	}
	if behind.ID != "" {
		rows = slices.DeleteFunc(rows, func(r *row) bool {
			return cmp.Or(cmp.Compare(behind.Time, r.task.Status.Timestamp), cmp.Compare(behind.ID, r.task.ID)) <= 0
		})
	}
	next := ""
	if len(rows) > size {
		rows = rows[:size]
		last := rows[size-1].task
		behind.Time, behind.ID = last.Status.Timestamp, last.ID
		next = page.Encode(scope, behind)
	}
	tasks := []task{}
	for _, r := range rows {
		t, err := c.shown(ctx, r, &in)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return object{"tasks": tasks, "nextPageToken": next, "pageSize": size, "totalSize": total}, nil
}

// shown returns a task as a list has it. Its log is read if the request needs more than the turn has.
func (c *call) shown(ctx context.Context, r *row, in *listRequest) (task, error) {
	history := 0
	if in.History != nil {
		history = *in.History
	}
	if !in.Artifacts && history == 0 {
		return r.task, nil
	}
	if r.read == nil {
		var err error
		if r.read, err = c.read(ctx, r.session, r.turn, nil); err != nil {
			return task{}, err
		}
	}
	t := r.read.task()
	t.History = newest(t.History, history)
	if !in.Artifacts {
		t.Artifacts = nil
	}
	return t, nil
}

// rows returns the tasks that a request asks for.
func (c *call) rows(ctx context.Context, in *listRequest) (all []*row, err error) {
	sessions, err := c.contexts(ctx, in.ContextID)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		req := &sessionv1.ListTurnsRequest{Parent: s.GetName(), PageSize: 1000}
		for t, err := range wire.All(ctx, c.wire.Sessions.ListTurns, req, (*sessionv1.ListTurnsResponse).GetTurns) {
			if err != nil {
				return nil, err
			}
			r, err := c.row(ctx, s, t)
			if err != nil {
				return nil, err
			}
			at, err := parseStamp(r.task.Status.Timestamp)
			if in.Status != "" && in.Status != r.task.Status.State || err == nil && at.Before(in.since) {
				continue
			}
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.task.Status.Timestamp, a.task.Status.Timestamp), cmp.Compare(b.task.ID, a.task.ID))
	})
	return all, nil
}

// row returns a task by its turn, and by its log if it waits.
func (c *call) row(ctx context.Context, s *sessionv1.Session, t *sessionv1.Turn) (*row, error) {
	r := &row{session: s, turn: t}
	if t.GetState() == sessionv1.TurnState_TURN_STATE_WAITING {
		var err error
		if r.read, err = c.read(ctx, s, t, nil); err != nil {
			return nil, err
		}
		r.task = r.read.task()
		r.task.History, r.task.Artifacts = nil, nil
		return r, nil
	}
	at := func(times ...*timestamppb.Timestamp) string {
		for _, t := range times {
			if t != nil {
				return stamp(t)
			}
		}
		return ""
	}
	r.task = task{
		ID: ref{turn: t.GetName()}.id(), ContextID: contextOf(s),
		Status: status{State: stateOf(t.GetState()), Timestamp: at(t.GetEndTime(), t.GetStartTime(), t.GetCreateTime())},
	}
	return r, nil
}

// contexts returns the sessions whose tasks are asked for.
func (c *call) contexts(ctx context.Context, id string) ([]*sessionv1.Session, error) {
	if id == "" {
		got, err := c.wire.Sessions.ListSessions(ctx, &sessionv1.ListSessionsRequest{Agent: c.agent, User: "users/me", PageSize: maxContexts})
		return got.GetSessions(), err
	}
	if contextForm.MatchString(id) {
		got, err := c.wire.Sessions.ListSessions(ctx, &sessionv1.ListSessionsRequest{Agent: c.agent, User: "users/me", Key: keyPrefix + id, PageSize: 1})
		if err != nil || len(got.GetSessions()) > 0 {
			return got.GetSessions(), err
		}
	}
	if !sessionForm.MatchString(id) {
		return nil, nil
	}
	got, err := c.wire.Sessions.GetSession(ctx, &sessionv1.GetSessionRequest{Name: "sessions/" + id})
	if err != nil || !c.of(got.GetSession()) {
		return nil, missingAsNone(err)
	}
	return []*sessionv1.Session{got.GetSession()}, nil
}
