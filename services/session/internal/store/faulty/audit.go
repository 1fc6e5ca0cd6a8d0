package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of the audit log.
const (
	AppendAudit Method = "AppendAudit"
	ListAudit   Method = "ListAudit"
)

// AppendAudit implements store.Audit.
func (s audits) AppendAudit(ctx context.Context, tenant string, entries []audit.Entry) error {
	return just(ctx, s.injector, AppendAudit, func() error { return s.inner.AppendAudit(ctx, tenant, entries) })
}

// ListAudit implements store.Audit.
func (s audits) ListAudit(ctx context.Context, p store.AuditPage) ([]*sessionv1.AuditEntry, error) {
	return do(ctx, s.injector, ListAudit, func() ([]*sessionv1.AuditEntry, error) { return s.inner.ListAudit(ctx, p) })
}
