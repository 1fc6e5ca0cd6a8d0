package tenancy

import (
	"context"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// AuditServer implements AuditService.
type AuditServer struct {
	sessionv1.UnimplementedAuditServiceServer
	*Config
}

// ListAuditEntries lists a page of entries.
func (x *AuditServer) ListAuditEntries(
	ctx context.Context, r *sessionv1.ListAuditEntriesRequest,
) (*sessionv1.ListAuditEntriesResponse, error) {
	q := store.AuditPage{
		Tenant: request.Caller(ctx).Tenant, Method: r.Method, Resource: r.Resource, Start: since(r.StartTime), End: since(r.EndTime),
	}
	if r.User != "" {
		q.User = request.UserOf(ctx, r.User).User
	}
	scope := strings.Join([]string{"ListAuditEntries", q.Tenant, q.User, q.Method, q.Resource, q.Start.String(), q.End.String()}, "\x00")
	at := func(e *sessionv1.AuditEntry) string { return strconv.FormatInt(e.Seq, 10) }
	all, next, err := request.List(scope, r, refusal.Subject{}, at, func(after string, n int) ([]*sessionv1.AuditEntry, error) {
		q.AfterSeq, _ = strconv.ParseInt(after, 10, 64) // it is from a token of ours, or empty
		q.Limit = n
		return x.Store.ListAudit(ctx, q)
	})
	return &sessionv1.ListAuditEntriesResponse{Entries: all, NextPageToken: next}, err
}

// since returns a time of a request; zero if it is not set.
func since(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
