package tables

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

type operations struct{ db DB }

// insertOperation inserts the operation that a call has handed back.
func insertOperation(ctx context.Context, tx sqldb.Tx, ref store.Ref, o *store.NewOperation) error {
	_, err := tx.Exec(ctx, `
		insert into operations (tenant, id, session, tool, progress, state, create_time, expire_time, node, generation, user_id)
		values ($1, $2, $3, $4, $5, 'running', clock_timestamp(), clock_timestamp() + $6::interval, $7, $8, $9)`,
		ref.Tenant, ref.CallID, ref.Session, store.Text(o.Tool), store.Text(o.Progress), o.TTL, ref.Node, ref.Generation, store.Text(o.User))
	return err
}

// OperationColumns are the columns that ScanOperation reads, of a table named operations.
const OperationColumns = `operations.tenant, operations.id, session, tool, progress, state, stopping, expire_time <= clock_timestamp(),
	create_time, end_time, expire_time, exit_code, head, tail, bytes, content, claim, node, generation, user_id,
	generation > 0 and exists (select 1 from sessions s where s.tenant = operations.tenant and s.session = operations.session and s.generation > operations.generation)`

// ScanOperation reads OperationColumns.
func ScanOperation(r sqldb.Row) (o store.Operation, err error) {
	var end *time.Time
	err = r.Scan(&o.Tenant, &o.ID, &o.Session, &o.Tool, &o.Progress, &o.State, &o.Stopping, &o.Overdue,
		&o.CreateTime, &end, &o.ExpireTime, &o.ExitCode, &o.Head, &o.Tail, &o.Bytes, &o.Content, &o.Claim, &o.Node, &o.Generation, &o.User, &o.Moved)
	if end != nil {
		o.EndTime = *end
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNoOperation
	}
	return o, err
}

const selectOperations = "select " + OperationColumns + " from operations where "

// GetOperation implements store.Operations.
func (t operations) GetOperation(ctx context.Context, k store.OperationKey) (store.Operation, error) {
	o, err := ScanOperation(t.db.Reader().QueryRow(ctx, selectOperations+"tenant = $1 and id = $2", k.Tenant, k.ID))
	return o, Failed(t.db, err, "read operation %s", k.ID)
}

// ListOperations implements store.Operations.
func (t operations) ListOperations(ctx context.Context, p store.OperationPage) ([]store.Operation, error) {
	query, args := selectOperations+"tenant = $1", []any{p.Tenant}
	if p.Session != "" {
		args = append(args, p.Session)
		query += fmt.Sprintf(" and session = $%d", len(args))
	}
	if p.User != "" {
		args = append(args, p.User)
		query += fmt.Sprintf(" and user_id = $%d", len(args))
	}
	if p.Running {
		query += " and state = 'running'"
	}
	if p.Before != nil {
		args = append(args, p.Before.CreateTime, p.Before.ID)
		query += fmt.Sprintf(" and (create_time, id) < ($%d, $%d)", len(args)-1, len(args))
	}
	args = append(args, p.Limit)
	found, err := sqldb.Collect(ctx, t.db.Reader(), ScanOperation, query+fmt.Sprintf(" order by create_time desc, id desc limit $%d", len(args)), args...)
	return found, Failed(t.db, err, "list operations")
}

// NoteOperation implements store.Operations.
func (t operations) NoteOperation(ctx context.Context, n store.OperationNote) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		return changed(tx.Exec(ctx, `
			update operations set head = $4, tail = $5, bytes = $6, state = $7, exit_code = $8, content = $9,
				end_time = case when $7 = 'running' then null else clock_timestamp() end,
				expire_time = case when $7 = 'running' then expire_time else clock_timestamp() + $10::interval end
			where tenant = $1 and id = $2 and state = 'running' and claim = $3`,
			n.Tenant, n.ID, n.Claim, solid(n.Head), solid(n.Tail), n.Bytes, n.State, n.ExitCode, n.Content, n.Keep))
	})
	return Failed(t.db, err, "note operation %s", n.ID)
}

// solid returns b, empty rather than nil: an empty value is not null.
func solid(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// StopOperation implements store.Operations.
func (t operations) StopOperation(ctx context.Context, k store.OperationKey, q *store.Request) (o store.Operation, err error) {
	err = t.db.Write(ctx, func(tx sqldb.Tx) error {
		if _, err := accept(ctx, tx, q); err != nil {
			return err
		}
		o, err = ScanOperation(tx.QueryRow(ctx, `
			update operations set stopping = stopping or state = 'running' where tenant = $1 and id = $2 returning `+OperationColumns, k.Tenant, k.ID))
		return err
	})
	return o, Failed(t.db, err, "stop operation %s", k.ID)
}

// accept stores a request and reports whether it was stored before.
func accept(ctx context.Context, tx sqldb.Tx, q *store.Request) (repeated bool, err error) {
	if q == nil {
		return false, nil
	}
	n, err := tx.Exec(ctx, `
		insert into requests (tenant, method, id, digest, keep_until) values ($1, $2, $3, $4, clock_timestamp() + $5::interval)
		on conflict (tenant, method, id) do nothing`, q.Tenant, q.Method, q.ID, q.Digest, q.Keep)
	if err != nil || n > 0 {
		return false, err
	}
	digest, err := sqldb.Value[[]byte](tx.QueryRow(ctx, `
		select digest from requests where tenant = $1 and method = $2 and id = $3`, q.Tenant, q.Method, q.ID))
	if err == nil && !bytes.Equal(digest, q.Digest) {
		err = store.ErrRequestReused
	}
	return true, err
}

// ReadOperation implements store.Operations.
func (t operations) ReadOperation(ctx context.Context, k store.OperationKey, callID string) (o store.Operation, from int64, err error) {
	err = t.db.Write(ctx, func(tx sqldb.Tx) error {
		err := tx.QueryRow(ctx, `
			update operations set read_from = case when read_call = $3 then read_from else read_to end, read_call = $3, read_to = bytes
			where tenant = $1 and id = $2 returning read_from`, k.Tenant, k.ID, callID).Scan(&from)
		if errors.Is(err, sql.ErrNoRows) {
			return store.ErrNoOperation
		}
		if err != nil {
			return err
		}
		o, err = ScanOperation(tx.QueryRow(ctx, selectOperations+"tenant = $1 and id = $2", k.Tenant, k.ID))
		return err
	})
	return o, from, Failed(t.db, err, "read the output of operation %s", k.ID)
}

// ExpiredOperations implements store.Operations.
func (t operations) ExpiredOperations(ctx context.Context, limit int) ([]store.Operation, error) {
	found, err := sqldb.Collect(ctx, t.db.Reader(), ScanOperation,
		selectOperations+"state <> 'running' and expire_time <= clock_timestamp() order by expire_time limit $1", limit)
	return found, Failed(t.db, err, "list expired operations")
}

// DeleteOperation implements store.Operations.
func (t operations) DeleteOperation(ctx context.Context, k store.OperationKey) error {
	return t.exec(ctx, "delete an operation", "delete from operations where tenant = $1 and id = $2 and state <> 'running'", k.Tenant, k.ID)
}

// DeleteOperations implements store.Operations.
func (t operations) DeleteOperations(ctx context.Context, tenant, session string) error {
	return t.exec(ctx, "delete the operations of a session", "delete from operations where tenant = $1 and session = $2", tenant, session)
}

// Sweep implements store.Operations.
func (t operations) Sweep(ctx context.Context) error {
	return t.exec(ctx, "forget old requests", "delete from requests where keep_until <= clock_timestamp()")
}

func (t operations) exec(ctx context.Context, what, query string, args ...any) error {
	err := t.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	return Failed(t.db, err, "%s", what)
}
