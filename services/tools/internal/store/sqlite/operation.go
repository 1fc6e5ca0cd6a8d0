package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// begin inserts the operation that a call has handed back.
func begin(ctx context.Context, tx *sql.Tx, ref store.Ref, o *store.NewOperation) error {
	_, err := tx.ExecContext(ctx, `
		insert into operations (tenant, id, session, tool, progress, state, create_time, expire_time, node, generation)
		values (?, ?, ?, ?, ?, 'running', `+now+`, `+now+` + ?, ?, ?)`,
		ref.Tenant, ref.CallID, ref.Session, store.Text(o.Tool), store.Text(o.Progress), o.TTL.Microseconds(), ref.Node, ref.Generation)
	return err
}

const operationColumns = `tenant, id, session, tool, progress, state, stopping, expire_time <= ` + now + `,
	create_time, end_time, expire_time, exit_code, head, tail, bytes, content, claim, node, generation,
	generation > 0 and exists (select 1 from sessions s where s.tenant = operations.tenant and s.session = operations.session and s.generation > operations.generation)`

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func operations(ctx context.Context, q querier, query string, args ...any) (found []store.Operation, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o store.Operation
		var created, expires int64
		var ended sql.NullInt64
		if err := rows.Scan(&o.Tenant, &o.ID, &o.Session, &o.Tool, &o.Progress, &o.State, &o.Stopping, &o.Overdue,
			&created, &ended, &expires, &o.ExitCode, &o.Head, &o.Tail, &o.Bytes, &o.Content, &o.Claim, &o.Node, &o.Generation, &o.Moved); err != nil {
			return nil, err
		}
		o.CreateTime, o.ExpireTime = time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC()
		if ended.Valid {
			o.EndTime = time.UnixMicro(ended.Int64).UTC()
		}
		found = append(found, o)
	}
	return found, rows.Err()
}

// one returns the only operation of a query, or ErrNoOperation.
func one(found []store.Operation, err error) (store.Operation, error) {
	if err != nil {
		return store.Operation{}, err
	}
	if len(found) == 0 {
		return store.Operation{}, store.ErrNoOperation
	}
	return found[0], nil
}

// GetOperation implements store.Operations.
func (s *Store) GetOperation(ctx context.Context, k store.OperationKey) (store.Operation, error) {
	o, err := one(operations(ctx, s.db.R, `select `+operationColumns+` from operations where tenant = ? and id = ?`, k.Tenant, k.ID))
	return o, failed(err, "read operation %s", k.ID)
}

// ListOperations implements store.Operations.
func (s *Store) ListOperations(ctx context.Context, p store.OperationPage) ([]store.Operation, error) {
	query, args := `select `+operationColumns+` from operations where tenant = ?`, []any{p.Tenant}
	if p.Session != "" {
		query, args = query+` and session = ?`, append(args, p.Session)
	}
	if p.Running {
		query += ` and state = 'running'`
	}
	if p.Before != nil {
		query, args = query+` and (create_time, id) < (?, ?)`, append(args, p.Before.CreateTime.UnixMicro(), p.Before.ID)
	}
	found, err := operations(ctx, s.db.R, query+` order by create_time desc, id desc limit ?`, append(args, p.Limit)...)
	return found, failed(err, "list operations")
}

// WatchOperations implements store.Operations.
func (s *Store) WatchOperations(ctx context.Context, owner string, ttl time.Duration, limit int) (found []store.Operation, err error) {
	err = s.db.Tx(ctx, func(tx *sql.Tx) error {
		found, err = operations(ctx, tx, `
			update operations set claim = claim + case when owner = @owner then 0 else 1 end, owner = @owner, lease_until = `+now+` + @ttl
			where state = 'running' and (owner = @owner or (tenant, id) in (
				select tenant, id from operations where state = 'running' and owner <> @owner and lease_until <= `+now+`
				order by create_time limit @limit))
			returning `+operationColumns,
			sql.Named("owner", owner), sql.Named("ttl", ttl.Microseconds()), sql.Named("limit", limit))
		return err
	})
	return found, failed(err, "watch operations")
}

// NoteOperation implements store.Operations.
func (s *Store) NoteOperation(ctx context.Context, n store.OperationNote) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		return changed(tx.ExecContext(ctx, `
			update operations set head = @head, tail = @tail, bytes = @bytes, state = @state, exit_code = @exit, content = @content,
				end_time = case when @state = 'running' then null else `+now+` end,
				expire_time = case when @state = 'running' then expire_time else `+now+` + @keep end
			where tenant = @tenant and id = @id and state = 'running' and claim = @claim`,
			sql.Named("tenant", n.Tenant), sql.Named("id", n.ID), sql.Named("claim", n.Claim), sql.Named("head", solid(n.Head)),
			sql.Named("tail", solid(n.Tail)), sql.Named("bytes", n.Bytes), sql.Named("state", n.State), sql.Named("exit", n.ExitCode),
			sql.Named("content", n.Content), sql.Named("keep", n.Keep.Microseconds())))
	})
	return failed(err, "note operation %s", n.ID)
}

// solid returns b, empty rather than nil: an empty value is not null.
func solid(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// StopOperation implements store.Operations.
func (s *Store) StopOperation(ctx context.Context, k store.OperationKey, q *store.Request) (o store.Operation, err error) {
	err = s.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := accept(ctx, tx, q); err != nil {
			return err
		}
		o, err = one(operations(ctx, tx, `
			update operations set stopping = stopping or state = 'running' where tenant = ? and id = ? returning `+operationColumns, k.Tenant, k.ID))
		return err
	})
	return o, failed(err, "stop operation %s", k.ID)
}

// accept stores a request, or finds that it was stored before.
func accept(ctx context.Context, tx *sql.Tx, q *store.Request) error {
	if q == nil {
		return nil
	}
	var digest []byte
	err := tx.QueryRowContext(ctx, `
		insert into requests (tenant, method, id, digest, keep_until) values (?, ?, ?, ?, `+now+` + ?)
		on conflict (tenant, method, id) do update set digest = requests.digest returning digest`,
		q.Tenant, q.Method, q.ID, q.Digest, q.Keep.Microseconds()).Scan(&digest)
	if err == nil && !bytes.Equal(digest, q.Digest) {
		return store.ErrRequestReused
	}
	return err
}

// ReadOperation implements store.Operations.
func (s *Store) ReadOperation(ctx context.Context, k store.OperationKey, callID string) (o store.Operation, from int64, err error) {
	err = s.db.Tx(ctx, func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, `
			update operations set read_from = case when read_call = @call then read_from else read_to end, read_call = @call, read_to = bytes
			where tenant = @tenant and id = @id returning read_from`,
			sql.Named("call", callID), sql.Named("tenant", k.Tenant), sql.Named("id", k.ID))
		if err := row.Scan(&from); errors.Is(err, sql.ErrNoRows) {
			return store.ErrNoOperation
		} else if err != nil {
			return err
		}
		o, err = one(operations(ctx, tx, `select `+operationColumns+` from operations where tenant = ? and id = ?`, k.Tenant, k.ID))
		return err
	})
	return o, from, failed(err, "read the output of operation %s", k.ID)
}

// ExpiredOperations implements store.Operations.
func (s *Store) ExpiredOperations(ctx context.Context, limit int) ([]store.Operation, error) {
	found, err := operations(ctx, s.db.R, `
		select `+operationColumns+` from operations where state <> 'running' and expire_time <= `+now+` order by expire_time limit ?`, limit)
	return found, failed(err, "list expired operations")
}

// DeleteOperation implements store.Operations.
func (s *Store) DeleteOperation(ctx context.Context, k store.OperationKey) error {
	return s.exec(ctx, "delete an operation", `delete from operations where tenant = ? and id = ? and state <> 'running'`, k.Tenant, k.ID)
}

// DeleteOperations implements store.Operations.
func (s *Store) DeleteOperations(ctx context.Context, tenant, session string) error {
	return s.exec(ctx, "delete the operations of a session", `delete from operations where tenant = ? and session = ?`, tenant, session)
}

// Sweep implements store.Operations.
func (s *Store) Sweep(ctx context.Context) error {
	return s.exec(ctx, "forget old requests", `delete from requests where keep_until <= `+now)
}

func (s *Store) exec(ctx context.Context, what, query string, args ...any) error {
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
	return failed(err, "%s", what)
}
