package tables

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/store/plan"
)

type audits struct{ db DB }

const auditColumns = "tenant, seq, time, user_id, credential, client, method, resource, request_id, code, reason, hash"

// AppendAudit implements store.Audit. The row of the head orders the replicas.
func (t audits) AppendAudit(ctx context.Context, tenant string, entries []audit.Entry) error {
	return t.db.Write(ctx, "append to the audit log", func(tx Tx) ([]store.Wake, error) {
		if _, err := tx.Exec(ctx, "insert into audit_heads (tenant, seq, hash) values ($1, 0, $2) on conflict do nothing", tenant, []byte{}); err != nil {
			return nil, err
		}
		var seq int64
		var hash []byte
		if err := tx.QueryRow(ctx, "select seq, hash from audit_heads where tenant = $1"+forChange, tenant).Scan(&seq, &hash); err != nil {
			return nil, err
		}
		chained := plan.Chained(tenant, seq, hash, entries)
		all := make([]sqldb.Statement, 0, len(chained)+1)
		for _, e := range chained {
			all = append(all, sqldb.S("insert into audit_entries ("+auditColumns+") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
				e.Tenant, e.Seq, e.Time, e.User, e.Credential, e.Client, e.Method, e.Resource, e.RequestID, e.Code, e.Reason, e.Hash))
			seq, hash = e.Seq, e.Hash
		}
		_, err := tx.Send(ctx, append(all, sqldb.S("update audit_heads set seq = $2, hash = $3 where tenant = $1", tenant, seq, hash))...)
		return nil, err
	})
}

// ListAudit implements store.Audit.
func (t audits) ListAudit(ctx context.Context, p store.AuditPage) ([]*sessionv1.AuditEntry, error) {
	q := filter("select "+auditColumns+" from audit_entries where tenant = $1", p.Tenant)
	if p.AfterSeq > 0 {
		q.and("seq > ?", p.AfterSeq)
	}
	if p.User != "" {
		q.and("user_id = ?", p.User)
	}
	if p.Method != "" {
		q.and("method = ?", p.Method)
	}
	if p.Resource != "" {
		q.and("resource = ?", p.Resource)
	}
	if !p.Start.IsZero() {
		q.and("time >= ?", p.Start)
	}
	if !p.End.IsZero() {
		q.and("time < ?", p.End)
	}
	statement := q.ordered("seq", p.Limit)
	out, err := sqldb.Collect(ctx, t.db.Reader(), func(r sqldb.Row) (*sessionv1.AuditEntry, error) {
		var e audit.Entry
		err := r.Scan(&e.Tenant, &e.Seq, &e.Time, &e.User, &e.Credential, &e.Client, &e.Method, &e.Resource, &e.RequestID, &e.Code, &e.Reason, &e.Hash)
		return plan.AuditProto(e), err
	}, statement, q.args...)
	return out, t.db.Fail("list the audit log", err)
}
