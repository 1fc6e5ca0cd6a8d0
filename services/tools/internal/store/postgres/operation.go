package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead/fairlead/services/internal/kit/pg"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// begin inserts the operation that a call has handed back.
func begin(ctx context.Context, tx pgx.Tx, ref store.Ref, o *store.NewOperation) error {
	_, err := tx.Exec(ctx, `
		insert into operations (tenant, id, session, tool, progress, state, create_time, expire_time, node, generation)
		values ($1, $2, $3, $4, $5, 'running', clock_timestamp(), clock_timestamp() + $6::interval, $7, $8)`,
		ref.Tenant, ref.CallID, ref.Session, store.Text(o.Tool), store.Text(o.Progress), o.TTL, ref.Node, ref.Generation)
	return err
}

const operationColumns = `tenant, id, session, tool, progress, state, stopping, expire_time <= clock_timestamp(),
	create_time, end_time, expire_time, exit_code, head, tail, bytes, content, claim, node, generation,
	generation > 0 and exists (select 1 from sessions s where s.tenant = operations.tenant and s.session = operations.session and s.generation > operations.generation)`

// prefixed are operationColumns of a table named o.
const prefixed = `o.tenant, o.id, o.session, o.tool, o.progress, o.state, o.stopping, o.expire_time <= clock_timestamp(),
	o.create_time, o.end_time, o.expire_time, o.exit_code, o.head, o.tail, o.bytes, o.content, o.claim, o.node, o.generation,
	o.generation > 0 and exists (select 1 from sessions s where s.tenant = o.tenant and s.session = o.session and s.generation > o.generation)`

func scanOperation(r pgx.CollectableRow) (o store.Operation, err error) {
	var end *time.Time
	err = r.Scan(&o.Tenant, &o.ID, &o.Session, &o.Tool, &o.Progress, &o.State, &o.Stopping, &o.Overdue,
		&o.CreateTime, &end, &o.ExpireTime, &o.ExitCode, &o.Head, &o.Tail, &o.Bytes, &o.Content, &o.Claim, &o.Node, &o.Generation, &o.Moved)
	o.CreateTime, o.ExpireTime = o.CreateTime.UTC(), o.ExpireTime.UTC()
	if end != nil {
		o.EndTime = end.UTC()
	}
	return o, err
}

type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

func operations(ctx context.Context, q querier, query string, args ...any) ([]store.Operation, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanOperation)
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
	o, err := one(operations(ctx, s.pool, `select `+operationColumns+` from operations where tenant = $1 and id = $2`, k.Tenant, k.ID))
	return o, failed(err, "read operation %s", k.ID)
}

// ListOperations implements store.Operations.
func (s *Store) ListOperations(ctx context.Context, p store.OperationPage) ([]store.Operation, error) {
	query := `select ` + operationColumns + ` from operations where tenant = @tenant`
	args := pgx.NamedArgs{"tenant": p.Tenant, "session": p.Session, "limit": p.Limit}
	if p.Session != "" {
		query += ` and session = @session`
	}
	if p.Running {
		query += ` and state = 'running'`
	}
	if p.Before != nil {
		query += ` and (create_time, id) < (@time, @id)`
		args["time"], args["id"] = p.Before.CreateTime, p.Before.ID
	}
	found, err := operations(ctx, s.pool, query+` order by create_time desc, id desc limit @limit`, args)
	return found, failed(err, "list operations")
}

// WatchOperations implements store.Operations. It skips rows that another replica
// is about to take.
func (s *Store) WatchOperations(ctx context.Context, owner string, ttl time.Duration, limit int) ([]store.Operation, error) {
	found, err := operations(ctx, s.pool, `
		with free as (
			select tenant, id from operations
			where state = 'running' and owner <> $1 and (lease_until is null or lease_until <= clock_timestamp())
			order by create_time limit $3 for update skip locked
		), mine as (
			select tenant, id from operations where state = 'running' and owner = $1
		)
		update operations o set owner = $1, lease_until = clock_timestamp() + $2::interval,
			claim = claim + case when owner = $1 then 0 else 1 end
		from (select * from free union select * from mine) t
		where o.tenant = t.tenant and o.id = t.id and o.state = 'running'
			and (o.owner = $1 or o.lease_until is null or o.lease_until <= clock_timestamp())
		returning `+prefixed, owner, ttl, limit)
	return found, failed(err, "watch operations")
}

// NoteOperation implements store.Operations.
func (s *Store) NoteOperation(ctx context.Context, n store.OperationNote) error {
	done, err := s.pool.Exec(ctx, `
		update operations set head = @head, tail = @tail, bytes = @bytes, state = @state, exit_code = @exit, content = @content,
			end_time = case when @state = 'running' then null else clock_timestamp() end,
			expire_time = case when @state = 'running' then expire_time else clock_timestamp() + @keep::interval end
		where tenant = @tenant and id = @id and state = 'running' and claim = @claim`,
		pgx.NamedArgs{
			"tenant": n.Tenant, "id": n.ID, "claim": n.Claim, "head": solid(n.Head), "tail": solid(n.Tail), "bytes": n.Bytes,
			"state": n.State, "exit": n.ExitCode, "content": n.Content, "keep": n.Keep,
		})
	if err == nil && done.RowsAffected() == 0 {
		err = store.ErrConflict
	}
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
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := accept(ctx, tx, q); err != nil {
			return err
		}
		o, err = one(operations(ctx, tx, `
			update operations o set stopping = stopping or state = 'running' where tenant = $1 and id = $2 returning `+prefixed, k.Tenant, k.ID))
		return err
	})
	return o, failed(err, "stop operation %s", k.ID)
}

// accept stores a request, or finds that it was stored before.
func accept(ctx context.Context, tx pgx.Tx, q *store.Request) error {
	if q == nil {
		return nil
	}
	var digest []byte
	err := tx.QueryRow(ctx, `
		insert into requests as r (tenant, method, id, digest, keep_until) values ($1, $2, $3, $4, clock_timestamp() + $5::interval)
		on conflict (tenant, method, id) do update set digest = r.digest returning digest`,
		q.Tenant, q.Method, q.ID, q.Digest, q.Keep).Scan(&digest)
	if err == nil && !bytes.Equal(digest, q.Digest) {
		return store.ErrRequestReused
	}
	return err
}

// ReadOperation implements store.Operations.
func (s *Store) ReadOperation(ctx context.Context, k store.OperationKey, callID string) (o store.Operation, from int64, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		row := tx.QueryRow(ctx, `
			update operations set read_from = case when read_call = $3 then read_from else read_to end, read_call = $3, read_to = bytes
			where tenant = $1 and id = $2 returning read_from`, k.Tenant, k.ID, callID)
		if err := row.Scan(&from); errors.Is(err, pgx.ErrNoRows) {
			return store.ErrNoOperation
		} else if err != nil {
			return err
		}
		o, err = one(operations(ctx, tx, `select `+operationColumns+` from operations where tenant = $1 and id = $2`, k.Tenant, k.ID))
		return err
	})
	return o, from, failed(err, "read the output of operation %s", k.ID)
}

// ExpiredOperations implements store.Operations.
func (s *Store) ExpiredOperations(ctx context.Context, limit int) ([]store.Operation, error) {
	found, err := operations(ctx, s.pool, `
		select `+operationColumns+` from operations where state <> 'running' and expire_time <= clock_timestamp() order by expire_time limit $1`, limit)
	return found, failed(err, "list expired operations")
}

// DeleteOperation implements store.Operations.
func (s *Store) DeleteOperation(ctx context.Context, k store.OperationKey) error {
	_, err := s.pool.Exec(ctx, `delete from operations where tenant = $1 and id = $2 and state <> 'running'`, k.Tenant, k.ID)
	return failed(err, "delete operation %s", k.ID)
}

// DeleteOperations implements store.Operations.
func (s *Store) DeleteOperations(ctx context.Context, tenant, session string) error {
	_, err := s.pool.Exec(ctx, `delete from operations where tenant = $1 and session = $2`, tenant, session)
	return failed(err, "delete the operations of %s", session)
}

// Sweep implements store.Operations.
func (s *Store) Sweep(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `delete from requests where keep_until <= clock_timestamp()`)
	return failed(err, "forget old requests")
}
