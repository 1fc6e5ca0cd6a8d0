package tenancy

import (
	"context"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/server/request"
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
	var after string
	if r.PageToken != "" {
		if err := page.Decode(r.PageToken, scope, &after); err != nil {
			return nil, refusal.Store(err, refusal.Subject{})
		}
		q.AfterSeq, _ = strconv.ParseInt(after, 10, 64) // it is from a token of ours
	}
	all, more, err := page.Fill(page.Size(r.PageSize, 50, 1000), func(last *sessionv1.AuditEntry, n int) ([]*sessionv1.AuditEntry, error) {
		if last != nil {
			q.AfterSeq = last.Seq
		}
		q.Limit = n
		return x.Store.ListAudit(ctx, q)
	})
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	resp := &sessionv1.ListAuditEntriesResponse{Entries: all}
	if more {
		resp.NextPageToken = page.Encode(scope, strconv.FormatInt(all[len(all)-1].Seq, 10))
	}
	return resp, nil
}

// since returns a time of a request; zero if it is not set.
func since(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
