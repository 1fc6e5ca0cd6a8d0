package tables

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type approvals struct{ db DB }

// The condition is that of the indexes.
const selectPending = `select session, turn, call, user_name, digest, create_time, shown from pending_calls
	where shown is not null and not answered and tenant = $1`

// ListPending implements store.Approvals.
func (t approvals) ListPending(ctx context.Context, p store.PendingPage) ([]*sessionv1.PendingApproval, error) {
	q := filter(selectPending, p.Tenant)
	if p.User != "" {
		q.and("user_name = ?", p.User)
	}
	if p.Session != "" {
		q.and("session = ?", p.Session)
	}
	if p.AfterCall != "" {
		q.and("(create_time, session, call) < (?, ?, ?)", p.AfterTime, p.AfterSession, p.AfterCall)
	}
	statement := q.ordered("create_time desc, session desc, call desc", p.Limit)
	out, err := sqldb.Collect(ctx, t.db.Reader(), scanPending, statement, q.args...)
	return out, t.db.Fail("list what waits for people", err)
}

// GetPending implements store.Approvals.
func (t approvals) GetPending(ctx context.Context, k store.Key, call string) (*sessionv1.PendingApproval, error) {
	out, err := scanPending(t.db.Reader().QueryRow(ctx, selectPending+" and session = $2 and call = $3", k.Tenant, k.Session, call))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, store.ErrCallNotWaiting
	}
	return out, t.db.Fail("read what call "+call+" waits for", err)
}

func scanPending(r sqldb.Row) (*sessionv1.PendingApproval, error) {
	var session, turn, call, user, digest string
	var created time.Time
	var shown []byte
	if err := r.Scan(&session, &turn, &call, &user, &digest, &created, &shown); err != nil {
		return nil, err
	}
	p, err := decode[sessionv1.PendingApproval](shown)
	if err != nil {
		return nil, err
	}
	p.Session, p.Turn, p.CallId, p.Digest = plan.SessionName(session), plan.TurnName(session, turn), call, digest
	p.User, p.CreateTime = plan.UserName(user), timestamppb.New(created)
	return p, nil
}
