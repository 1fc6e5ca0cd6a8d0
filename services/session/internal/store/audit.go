package store

import (
	"context"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
)

// AuditPage selects entries of a tenant, the oldest first. Zero values filter nothing.
type AuditPage struct {
	Tenant                 string
	User, Method, Resource string
	Start, End             time.Time
	AfterSeq               int64
	Limit                  int
}

// Audit stores who changed what.
type Audit interface {
	// AppendAudit appends entries to the chain of a tenant, all or none. It sets their
	// numbers and hashes, and makes their texts fit. Several replicas may append to one
	// chain.
	AppendAudit(ctx context.Context, tenant string, entries []audit.Entry) error
	// ListAudit lists entries.
	ListAudit(ctx context.Context, p AuditPage) ([]*sessionv1.AuditEntry, error)
}
