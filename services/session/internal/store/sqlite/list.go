package sqlite

import (
	"context"
	"database/sql"
	"errors"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/backend"
	"github.com/fairlead/fairlead/services/session/internal/store/tables"
)

// ListEvents implements store.Store.
func (s *Store) ListEvents(ctx context.Context, k store.Key, afterSeq int64, n, maxBytes int) ([]*sessionv1.Event, error) {
	var bodies [][]byte
	err := s.db.read(ctx, "list events", func(tx *sql.Tx) (err error) {
		if err = tables.SessionExists(ctx, s.sql(tx), k); err != nil {
			return err
		}
		bodies, err = boundedBodies(ctx, tx, maxBytes,
			"select body from events where tenant = ? and session = ? and seq > ? order by seq limit ?", k.Tenant, k.Session, afterSeq, limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return backend.Decode[sessionv1.Event](bodies)
}

// ListTree implements store.Store.
func (s *Store) ListTree(ctx context.Context, k store.Key, after string, n, maxBytes int) ([]*sessionv1.Message, error) {
	var bodies [][]byte
	err := s.db.read(ctx, "list the message tree", func(tx *sql.Tx) (err error) {
		if err = tables.SessionExists(ctx, s.sql(tx), k); err != nil {
			return err
		}
		bodies, err = boundedBodies(ctx, tx, maxBytes,
			"select body from messages where tenant = ? and session = ? and message > ? order by message limit ?", k.Tenant, k.Session, after, limit(n))
		return err
	})
	if err != nil {
		return nil, err
	}
	return backend.Decode[sessionv1.Message](bodies)
}

// boundedBodies reads bodies up to about maxBytes (0: no bound), but at least
// one.
func boundedBodies(ctx context.Context, q queryer, maxBytes int, query string, args ...any) (_ [][]byte, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var bodies [][]byte
	size := 0
	for rows.Next() {
		body, err := scanBody(rows)
		if err != nil {
			return nil, err
		}
		size += len(body)
		if maxBytes > 0 && size > maxBytes && len(bodies) > 0 {
			break
		}
		bodies = append(bodies, body)
	}
	return bodies, rows.Err()
}

// ListMessages implements store.Store. One scan returns the whole path. A page
// walks from the head up to the message behind which it begins, so that it reads
// only the rest of the path.
func (s *Store) ListMessages(ctx context.Context, k store.Key, head, after string, n int) ([]*sessionv1.Message, error) {
	if n <= 0 && after == "" {
		return s.wholePath(ctx, k, head)
	}
	var bodies [][]byte
	err := s.db.read(ctx, "list messages", func(tx *sql.Tx) error {
		row, err := tables.SessionRow(ctx, s.sql(tx), k)
		if err != nil {
			return err
		}
		if head == "" {
			head = row.Head
		}
		path, err := pathBehind(ctx, tx, k, head, after)
		if err != nil {
			return err
		}
		if n > 0 && len(path) > n {
			path = path[:n]
		}
		for _, id := range path {
			body, err := collect(ctx, tx, scanBody,
				"select body from messages where tenant = ? and session = ? and message = ?", k.Tenant, k.Session, id)
			if err != nil {
				return err
			}
			bodies = append(bodies, body...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return backend.Decode[sessionv1.Message](bodies)
}

// wholePath reads all messages of the session that may be on the path to head, and
// builds the path in Go: walking up a long path in the database takes several
// times as long.
func (s *Store) wholePath(ctx context.Context, k store.Key, head string) ([]*sessionv1.Message, error) {
	var tree backend.Tree
	defer tree.Close()
	err := s.db.read(ctx, "list messages", func(tx *sql.Tx) (err error) {
		row, err := tables.SessionRow(ctx, s.sql(tx), k)
		if err != nil {
			return err
		}
		if head == "" {
			head = row.Head
		}
		rows, err := tx.QueryContext(ctx, "select body from messages where tenant = ? and session = ?", k.Tenant, k.Session)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		var body sql.RawBytes
		for rows.Next() {
			if err := rows.Scan(&body); err != nil {
				return err
			}
			tree.Add(body)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return tree.Path(k, head)
}

// pathBehind lists the ids of the path to head behind after.
func pathBehind(ctx context.Context, q queryer, k store.Key, head, after string) ([]string, error) {
	path, err := collect(ctx, q, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) }, `
		with recursive path (message, parent, depth) as (
			select message, parent, depth from messages where tenant = ?1 and session = ?2 and message = ?3
			union all
			select m.message, m.parent, m.depth from path p
			join messages m on m.tenant = ?1 and m.session = ?2 and m.message = p.parent
			where p.message <> ?4
		)
		select message from path order by depth`, k.Tenant, k.Session, head, after)
	if err != nil {
		return nil, err
	}
	return backend.Behind(path, head, after)
}
