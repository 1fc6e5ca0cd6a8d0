package sqlite

import (
	"context"
	"database/sql"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// IndexMessages implements store.Store.
func (s *Store) IndexMessages(ctx context.Context, k store.Key, most int) (int, error) {
	n := 0
	err := s.db.writeBy(ctx, s.db.TxUnsynced, "index messages", func(tx *sql.Tx) ([]store.Wake, error) {
		if err := tables.SessionExists(ctx, s.sql(tx), k); err != nil {
			return nil, err
		}
		bodies, err := sqldb.Collect(ctx, s.sql(tx), sqldb.Value[[]byte],
			"select body from messages where tenant = $1 and session = $2 and indexed = 0 limit $3 + 0", k.Tenant, k.Session, sqldb.Limit(most))
		if err != nil {
			return nil, err
		}
		rows, err := plan.IndexRows(k, bodies)
		if err != nil {
			return nil, err
		}
		n = len(rows)
		if err := each(ctx, tx, "insert into message_index (tenant, session, message, create_time) values (?, ?, ?, ?)",
			rows, func(r plan.Indexed) []any { return []any{r.Tenant, r.Session, r.ID, micros(r.Time)} }); err != nil {
			return nil, err
		}
		if err := each(ctx, tx, `insert into message_words (rowid, words) values
			((select id from message_index where tenant = ? and session = ? and message = ?), ?)`,
			rows, func(r plan.Indexed) []any {
				return []any{r.Tenant, r.Session, r.ID, strings.Join(r.Words, " ")}
			}); err != nil {
			return nil, err
		}
		return nil, each(ctx, tx, "update messages set indexed = 1 where tenant = ? and session = ? and message = ?",
			rows, func(r plan.Indexed) []any { return []any{r.Tenant, r.Session, r.ID} })
	})
	return n, err
}

// SearchMessages implements store.Store.
func (s *Store) SearchMessages(ctx context.Context, m store.MessageSearch) ([]*sessionv1.Message, error) {
	query := `select m.body from message_words join message_index i on i.id = message_words.rowid
		join messages m on m.tenant = i.tenant and m.session = i.session and m.message = i.message
		where message_words match ? and i.tenant = ?`
	args := []any{plan.FTSQuery(m), m.Tenant}
	if m.Session != "" {
		query += " and i.session = ?"
		args = append(args, m.Session)
	}
	if m.User != "" {
		query += " and exists (select 1 from sessions s where s.tenant = i.tenant and s.session = i.session and s.user_id = ?)"
		args = append(args, m.User)
	}
	if m.AfterMessage != "" {
		query += " and (i.create_time, i.session, i.message) < (?, ?, ?)"
		args = append(args, m.AfterTime, m.AfterSession, m.AfterMessage)
	}
	bodies, err := sqldb.Collect(ctx, s.db.Reader(), sqldb.Value[[]byte],
		query+" order by i.create_time desc, i.session desc, i.message desc limit ?", append(args, sqldb.Limit(m.Limit))...)
	if err != nil {
		return nil, s.db.Fail("search messages", err)
	}
	return plan.Decode[sessionv1.Message](bodies)
}
