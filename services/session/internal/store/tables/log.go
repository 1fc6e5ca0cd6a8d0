package tables

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type logs struct{ db DB }

// ListEvents implements store.Store.
func (t logs) ListEvents(ctx context.Context, k store.Key, afterSeq int64, n, maxBytes int) ([]*sessionv1.Event, error) {
	bodies, err := t.bounded(ctx, k, maxBytes,
		"select seq as place, body from events where tenant = $1 and session = $2 and seq > $3 order by seq limit $4",
		k.Tenant, k.Session, afterSeq, sqldb.Limit(n))
	if err != nil {
		return nil, t.db.Fail("list events", err)
	}
	return plan.Decode[sessionv1.Event](bodies)
}

// ListTree implements store.Store.
func (t logs) ListTree(ctx context.Context, k store.Key, after string, n, maxBytes int) ([]*sessionv1.Message, error) {
	bodies, err := t.bounded(ctx, k, maxBytes,
		"select message as place, body from messages where tenant = $1 and session = $2 and message > $3 order by message limit $4",
		k.Tenant, k.Session, after, sqldb.Limit(n))
	if err != nil {
		return nil, t.db.Fail("list the message tree", err)
	}
	return plan.Decode[sessionv1.Message](bodies)
}

// bounded reads bodies of a session. It checks that the session exists only if there is nothing to return.
func (t logs) bounded(ctx context.Context, k store.Key, maxBytes int, query string, args ...any) ([][]byte, error) {
	bodies, err := t.db.Bodies(ctx, maxBytes, query, args...)
	if err == nil && len(bodies) == 0 {
		err = exists(ctx, t.db.Reader(), k, "")
	}
	return bodies, err
}

// ListMessages implements store.Store. One scan returns the whole path. A page
// walks from the head up to the message behind which it begins, so that it reads
// only the rest of the path.
func (t logs) ListMessages(ctx context.Context, k store.Key, head, after string, n int) ([]*sessionv1.Message, error) {
	if n <= 0 && after == "" {
		return t.wholePath(ctx, k, head)
	}
	var bodies [][]byte
	err := t.db.Read(ctx, "list messages", func(q sqldb.Queryer) error {
		row, err := SessionRow(ctx, q, k)
		if err != nil {
			return err
		}
		from := head
		if from == "" {
			from = row.Head
		}
		bodies, err = pathBehind(ctx, q, k, from, after, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return plan.Decode[sessionv1.Message](bodies)
}

// pathBehind lists the first messages of the path to head behind after. Each step is a lookup by the whole key:
// a planner without statistics of the table would read all of it for a join.
func pathBehind(ctx context.Context, q sqldb.Queryer, k store.Key, head, after string, n int) ([][]byte, error) {
	if n > 0 && after != "" {
		n++ // after is the first one
	}
	var path []string
	bodies, err := sqldb.Collect(ctx, q, func(r sqldb.Row) (body []byte, err error) {
		var id string
		err = r.Scan(&id, &body)
		path = append(path, id)
		return body, err
	}, `
		with recursive path (message, depth) as (
			select message, depth from messages where tenant = $1 and session = $2 and message = $3
			union all
			select (select parent from messages m where m.tenant = $1 and m.session = $2 and m.message = p.message), depth - 1
			from path p where depth > 1 and message <> $4
		)
		select message, (select body from messages m where m.tenant = $1 and m.session = $2 and m.message = p.message)
		from (select message, depth from path order by depth limit $5::bigint + 0) p order by depth`,
		k.Tenant, k.Session, head, after, sqldb.Limit(n))
	if err != nil {
		return nil, err
	}
	path, err = plan.Behind(path, head, after)
	return bodies[len(bodies)-len(path):], err
}

// wholePath reads all messages of the session that may be on the path to head, and
// builds the path in Go: walking up a long path in the database takes several
// times as long.
func (t logs) wholePath(ctx context.Context, k store.Key, head string) ([]*sessionv1.Message, error) {
	var tree plan.Tree
	defer tree.Close()
	err := t.db.Read(ctx, "list messages", func(q sqldb.Queryer) error {
		row, err := SessionRow(ctx, q, k)
		if err != nil {
			return err
		}
		if head == "" {
			head = row.Head
		}
		var body sqldb.Raw
		return q.Query(ctx, func(r sqldb.Row) error {
			err := r.Scan(&body)
			tree.Add(body)
			return err
		}, "select body from messages where tenant = $1 and session = $2", k.Tenant, k.Session)
	})
	if err != nil {
		return nil, err
	}
	return tree.Path(k, head)
}
