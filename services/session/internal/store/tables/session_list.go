package tables

import (
	"context"
	"maps"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// inState has the condition of each state of a session. The numbers are those of TurnState: QUEUED, RUNNING,
// WAITING.
var inState = map[sessionv1.SessionState]string{
	sessionv1.SessionState_SESSION_STATE_IDLE:    "s.active_turn = '' and not " + hasQueued,
	sessionv1.SessionState_SESSION_STATE_RUNNING: "(s.active_turn = '' and " + hasQueued + " or s.active_turn <> '' and not " + activeWaits + ")",
	sessionv1.SessionState_SESSION_STATE_WAITING: "s.active_turn <> '' and " + activeWaits,
}

const (
	hasQueued   = "exists (select 1 from turns t where t.tenant = s.tenant and t.session = s.session and t.state = 1)"
	activeWaits = "exists (select 1 from turns t where t.tenant = s.tenant and t.session = s.session and t.turn = s.active_turn and t.state = 3)"
)

// ListSessions implements store.Store.
func (t sessions) ListSessions(ctx context.Context, p store.SessionPage) ([]*sessionv1.Session, error) {
	q := filter("select "+shownColumns+" from sessions s where tenant = $1", p.Tenant)
	if p.Archived {
		q.and("archive_time is not null")
	} else {
		q.and("archive_time is null")
	}
	if p.Parent != "" {
		q.and("root <> '' and parent = ?", p.Parent)
	} else {
		q.and("root = ''")
	}
	if p.Agent != "" {
		q.and("agent = ?", p.Agent)
	}
	if p.User != "" {
		q.and("user_id = ?", p.User)
	}
	if p.CallerKey != "" {
		q.and("session_key = ?", p.CallerKey)
	}
	if condition := inState[p.State]; condition != "" {
		q.and(condition)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		q.and("exists (select 1 from session_labels l where l.tenant = s.tenant and l.session = s.session and l.name = ? and l.value = ?)", name, p.Labels[name])
	}
	than, order := "<", "create_time desc, session desc"
	if p.OldestFirst {
		than, order = ">", "create_time, session"
	}
	if p.AfterID != "" {
		q.and("(create_time, session) "+than+" (?, ?)", p.AfterTime, p.AfterID)
	}
	statement := q.ordered(order, p.Limit)
	out, err := sqldb.Collect(ctx, t.db.Reader(), scanShown, statement, q.args...)
	return out, t.db.Fail("list sessions", err)
}
