package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

// IndexMessages implements store.Store. The messages' locks prevent a deletion
// until their words are stored, so that it deletes these, too.
func (s *Store) IndexMessages(ctx context.Context, k store.Key, most int) (int, error) {
	n := 0
	err := s.db.writeUnsynced(ctx, "index messages", func(tx pgx.Tx) error {
		var one int
		if err := tx.QueryRow(ctx, "select 1 from sessions where tenant = $1 and session = $2 for key share", k.Tenant, k.Session).Scan(&one); err != nil {
			return err
		}
		bodies, err := collect(ctx, tx, pgx.RowTo[[]byte],
			"select body from messages where tenant = $1 and session = $2 and not indexed limit $3 for update", k.Tenant, k.Session, limit(most))
		if err != nil {
			return err
		}
		rows, err := plan.IndexRows(k, bodies)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		for _, r := range rows {
			b.Queue(`insert into message_index (tenant, session, message, create_time, words) values ($1, $2, $3, $4, array_to_tsvector($5::text[]))
				on conflict do nothing`, r.Tenant, r.Session, r.ID, r.Time, append([]string{}, r.Words...))
			b.Queue("update messages set indexed = true where tenant = $1 and session = $2 and message = $3", r.Tenant, r.Session, r.ID)
		}
		n = len(rows)
		return tx.SendBatch(ctx, b).Close()
	})
	return n, err
}

// SearchMessages implements store.Store.
func (s *Store) SearchMessages(ctx context.Context, m store.MessageSearch) ([]*sessionv1.Message, error) {
	query := `select m.body from message_index i join messages m using (tenant, session, message)
		where i.tenant = @tenant and i.words @@ @query::tsquery`
	args := pgx.NamedArgs{"tenant": m.Tenant, "query": plan.TSQuery(m), "limit": limit(m.Limit)}
	if m.Session != "" {
		query += " and i.session = @session"
		args["session"] = m.Session
	}
	if m.User != "" {
		query += " and exists (select 1 from sessions s where s.tenant = i.tenant and s.session = i.session and s.user_id = @user)"
		args["user"] = m.User
	}
	if m.AfterMessage != "" {
		query += " and (i.create_time, i.session, i.message) < (@time, @after_session, @after_message)"
		args["time"], args["after_session"], args["after_message"] = m.AfterTime, m.AfterSession, m.AfterMessage
	}
	bodies, err := collect(ctx, s.db.pool, pgx.RowTo[[]byte], query+" order by i.create_time desc, i.session desc, i.message desc limit @limit", args)
	if err != nil {
		return nil, fail("search messages", err)
	}
	return plan.Decode[sessionv1.Message](bodies)
}
