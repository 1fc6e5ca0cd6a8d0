package tables

import (
	"context"
	"database/sql"
	"errors"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type turns struct{ db DB }

// decode unmarshals one body.
func decode[T any, M interface {
	*T
	proto.Message
}](body []byte) (M, error) {
	all, err := plan.Decode[T, M]([][]byte{body})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// GetTurn implements store.Store.
func (t turns) GetTurn(ctx context.Context, k store.Key, id string) (*sessionv1.Turn, error) {
	body, err := sqldb.Value[[]byte](t.db.Reader().QueryRow(ctx,
		"select body from turns where tenant = $1 and session = $2 and turn = $3", k.Tenant, k.Session, id))
	if err != nil {
		return nil, t.db.Fail("get turn", err)
	}
	return decode[sessionv1.Turn](body)
}

// TurnOfRequest implements store.Store.
func (t turns) TurnOfRequest(ctx context.Context, k store.Key, requestID string, methods ...string) (*sessionv1.Turn, error) {
	for _, method := range methods {
		body, err := sqldb.Value[[]byte](t.db.Reader().QueryRow(ctx, `
			select t.body from request_ids r join turns t on t.tenant = r.tenant and t.session = $2 and t.turn = r.answer
			where r.tenant = $1 and r.method = $3 and r.parent = $4 and r.request_id = $5`,
			k.Tenant, k.Session, method, "sessions/"+k.Session, requestID))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, t.db.Fail("find the turn of a request", err)
		}
		return decode[sessionv1.Turn](body)
	}
	return nil, t.db.Fail("find the turn of a request", sql.ErrNoRows)
}

// ListTurns implements store.Store.
func (t turns) ListTurns(ctx context.Context, k store.Key, after string, n int) ([]*sessionv1.Turn, error) {
	var bodies [][]byte
	err := t.db.Read(ctx, "list turns", func(q sqldb.Queryer) (err error) {
		if err := SessionExists(ctx, q, k); err != nil {
			return err
		}
		var behind int64
		if after != "" {
			if err := q.QueryRow(ctx, "select number from turns where tenant = $1 and session = $2 and turn = $3",
				k.Tenant, k.Session, after).Scan(&behind); err != nil {
				return err
			}
		}
		bodies, err = sqldb.Collect(ctx, q, sqldb.Value[[]byte],
			"select body from turns where tenant = $1 and session = $2 and number > $3 order by number limit $4",
			k.Tenant, k.Session, behind, sqldb.Limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return plan.Decode[sessionv1.Turn](bodies)
}

// FoldEvents implements store.Store. The session's lock prevents a deletion, and the events' locks another fold.
// Neither blocks a claim or a commit.
func (t turns) FoldEvents(ctx context.Context, k store.Key, first, last int64, events []*sessionv1.Event) error {
	rows, err := plan.ForFold(k, first, last, events)
	if err != nil {
		return t.db.Fail("fold events", err)
	}
	const covered = " from events where tenant = $1 and session = $2 and seq between $3 and $4"
	return t.db.Write(ctx, "fold events", func(tx Tx) ([]store.Wake, error) {
		if err := exists(ctx, tx, k, forKeyShare); err != nil {
			return nil, err
		}
		// A statement of its own: the next one sees what another fold has put into the place of these.
		if _, err := tx.Exec(ctx, "select 1"+covered+" order by seq for update", k.Tenant, k.Session, first, last); err != nil {
			return nil, err
		}
		old, err := sqldb.Collect(ctx, tx, func(r sqldb.Row) (e plan.Event, err error) { return e, r.Scan(&e.FirstSeq, &e.Seq) },
			"select first_seq, seq"+covered+" order by seq", k.Tenant, k.Session, first, last)
		if err != nil {
			return nil, err
		}
		if err := plan.Tile(old, first, last); err != nil {
			return nil, err
		}
		if _, err := tx.Exec(ctx, "delete"+covered, k.Tenant, k.Session, first, last); err != nil {
			return nil, err
		}
		return nil, tx.Insert(ctx, Rows{Events: rows})
	})
}
