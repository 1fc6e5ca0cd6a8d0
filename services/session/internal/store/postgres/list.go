package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// ListEvents implements store.Store. It checks that the session exists only if
// there is no event to return.
func (s *Store) ListEvents(ctx context.Context, k store.Key, afterSeq int64, n, maxBytes int) ([]*sessionv1.Event, error) {
	var bound *int
	if maxBytes > 0 {
		bound = &maxBytes
	}
	bodies, err := collect(ctx, s.db.pool, pgx.RowTo[[]byte], `
		select body from (
			select seq, body, row_number() over w as place, sum(octet_length(body)) over w as total
			from (select seq, body from events where tenant = $1 and session = $2 and seq > $3 order by seq limit $4) e
			window w as (order by seq)
		) e where place = 1 or $5::bigint is null or total <= $5 order by seq`,
		k.Tenant, k.Session, afterSeq, limit(n), bound)
	if err == nil && len(bodies) == 0 {
		err = tables.SessionExists(ctx, s.db.Reader(), k)
	}
	if err != nil {
		return nil, fail("list events", err)
	}
	return backend.Decode[sessionv1.Event](bodies)
}

// ListTree implements store.Store.
func (s *Store) ListTree(ctx context.Context, k store.Key, after string, n, maxBytes int) ([]*sessionv1.Message, error) {
	var bound *int
	if maxBytes > 0 {
		bound = &maxBytes
	}
	bodies, err := collect(ctx, s.db.pool, pgx.RowTo[[]byte], `
		select body from (
			select message, body, row_number() over w as place, sum(octet_length(body)) over w as total
			from (select message, body from messages where tenant = $1 and session = $2 and message > $3 order by message limit $4) m
			window w as (order by message)
		) m where place = 1 or $5::bigint is null or total <= $5 order by message`,
		k.Tenant, k.Session, after, limit(n), bound)
	if err == nil && len(bodies) == 0 {
		err = tables.SessionExists(ctx, s.db.Reader(), k)
	}
	if err != nil {
		return nil, fail("list the message tree", err)
	}
	return backend.Decode[sessionv1.Message](bodies)
}

// ListMessages implements store.Store. One scan returns the whole path. A page
// walks from the head up to the message behind which it begins, so that it reads
// only the rest of the path.
func (s *Store) ListMessages(ctx context.Context, k store.Key, head, after string, n int) ([]*sessionv1.Message, error) {
	if n <= 0 && after == "" {
		return s.wholePath(ctx, k, head)
	}
	var bodies [][]byte
	err := s.db.read(ctx, "list messages", func(tx pgx.Tx) error {
		row, err := tables.SessionRow(ctx, pg.SQL{Querier: tx}, k)
		if err != nil {
			return err
		}
		from := head
		if from == "" {
			from = row.Head
		}
		path, err := pathBehind(ctx, tx, k, from, after)
		if err != nil {
			return err
		}
		if n > 0 && len(path) > n {
			path = path[:n]
		}
		bodies, err = collect(ctx, tx, pgx.RowTo[[]byte],
			"select body from messages where tenant = $1 and session = $2 and message = any($3) order by depth",
			k.Tenant, k.Session, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return backend.Decode[sessionv1.Message](bodies)
}

// wholePath reads all messages of the session that may be on the path to head, in
// the order of the table's key, and builds the path in Go: walking up a long path
// in the database takes several times as long.
func (s *Store) wholePath(ctx context.Context, k store.Key, head string) ([]*sessionv1.Message, error) {
	var tree backend.Tree
	defer tree.Close()
	err := s.db.read(ctx, "list messages", func(tx pgx.Tx) error {
		row, err := tables.SessionRow(ctx, pg.SQL{Querier: tx}, k)
		if err != nil {
			return err
		}
		if head == "" {
			head = row.Head
		}
		rows, err := tx.Query(ctx, "select body from messages where tenant = $1 and session = $2", k.Tenant, k.Session)
		if err != nil {
			return err
		}
		var body pgtype.DriverBytes
		_, err = pgx.ForEachRow(rows, []any{&body}, func() error { tree.Add(body); return nil })
		return err
	})
	if err != nil {
		return nil, err
	}
	return tree.Path(k, head)
}

// pathBehind lists the ids of the path to head behind after. "offset 0" makes
// each step an index lookup: a planner without statistics of the table may
// otherwise read all of it for each step.
func pathBehind(ctx context.Context, q queryer, k store.Key, head, after string) ([]string, error) {
	path, err := collect(ctx, q, pgx.RowTo[string], `
		with recursive path (message, parent, depth) as (
			select message, parent, depth from messages where tenant = $1 and session = $2 and message = $3
			union all
			select m.message, m.parent, m.depth from path p,
				lateral (select * from messages where tenant = $1 and session = $2 and message = p.parent offset 0) m
			where p.message <> $4
		)
		select message from path order by depth`, k.Tenant, k.Session, head, after)
	if err != nil {
		return nil, err
	}
	return backend.Behind(path, head, after)
}
