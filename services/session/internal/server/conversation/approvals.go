package conversation

import (
	"context"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

type approvalCursor struct {
	Time    time.Time `json:"t"`
	Session string    `json:"s"`
	Call    string    `json:"c"`
}

// ListApprovals lists a page of what waits for people.
func (s *SessionServer) ListApprovals(ctx context.Context, r *sessionv1.ListApprovalsRequest) (*sessionv1.ListApprovalsResponse, error) {
	p := store.PendingPage{Tenant: request.Key(ctx, "").Tenant, User: listedUser(ctx, r.User), Session: request.Key(ctx, r.Session).Session}
	scope := strings.Join([]string{"ListApprovals", p.Tenant, p.User, p.Session}, "\x00")
	list := func(after approvalCursor, n int) ([]*sessionv1.PendingApproval, error) {
		p.AfterTime, p.AfterSession, p.AfterCall, p.Limit = after.Time, after.Session, after.Call, n
		return s.Store.ListPending(ctx, p)
	}
	all, next, err := request.List(scope, r, refusal.Subject{}, approvalCursorAt, list)
	return &sessionv1.ListApprovalsResponse{Approvals: all, NextPageToken: next}, err
}

func approvalCursorAt(p *sessionv1.PendingApproval) approvalCursor {
	return approvalCursor{Time: p.CreateTime.AsTime(), Session: request.LastSegment(p.Session), Call: p.CallId}
}
