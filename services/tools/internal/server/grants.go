package server

import (
	"context"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

const grantPrefix = "grants/"

// Grants serves GrantService.
type Grants struct {
	toolsv1.UnimplementedGrantServiceServer
	store store.Store
}

// NewGrants returns the server of GrantService.
func NewGrants(s store.Store) *Grants { return &Grants{store: s} }

// owner returns the user whose grants the caller may see; empty: all of the tenant.
func owner(ctx context.Context) string {
	p, _ := principal.From(ctx)
	if p.Role >= principal.RoleOperator {
		return ""
	}
	return p.User
}

// ListGrants implements GrantService.
func (s *Grants) ListGrants(ctx context.Context, q *toolsv1.ListGrantsRequest) (*toolsv1.ListGrantsResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	want := store.GrantPage{Tenant: tenant, User: owner(ctx), Session: q.GetSession()}
	scope := strings.Join([]string{"ListGrants", tenant, q.GetSession(), want.User}, "\x00")
	if q.GetPageToken() != "" {
		want.Before = &store.GrantCursor{}
		if err := page.Decode(q.GetPageToken(), scope, want.Before); err != nil {
			return nil, outward(err, "")
		}
	}
	all, more, err := page.Fill(page.Size(q.GetPageSize(), defaultPage, maxPage), func(last *toolsv1.Grant, n int) (some []*toolsv1.Grant, _ error) {
		if last != nil {
			want.Before = grantCursor(last)
		}
		want.Limit = n
		rows, err := s.store.ListGrants(ctx, want)
		for _, row := range rows {
			some = append(some, grantToProto(row))
		}
		return some, outward(err, "")
	})
	if err != nil {
		return nil, err
	}
	answer := &toolsv1.ListGrantsResponse{Grants: all}
	if more {
		answer.NextPageToken = page.Encode(scope, grantCursor(all[len(all)-1]))
	}
	return answer, nil
}

func grantCursor(g *toolsv1.Grant) *store.GrantCursor {
	return &store.GrantCursor{CreateTime: g.GetCreateTime().AsTime(), ID: strings.TrimPrefix(g.GetName(), grantPrefix)}
}

// DeleteGrant implements GrantService.
func (s *Grants) DeleteGrant(ctx context.Context, q *toolsv1.DeleteGrantRequest) (*toolsv1.DeleteGrantResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	err = s.store.DeleteGrant(ctx, tenant, strings.TrimPrefix(q.GetName(), grantPrefix), owner(ctx), requestOf(tenant, "DeleteGrant", q.GetRequestId(), q.GetName()))
	return &toolsv1.DeleteGrantResponse{}, outward(err, q.GetName())
}

func grantToProto(g store.Grant) *toolsv1.Grant {
	return &toolsv1.Grant{
		Name: grantPrefix + g.ID, User: "users/" + g.User, Session: g.Session, Profile: profilePrefix + g.Profile, Rule: g.Rule,
		Approver: g.Approver, CallId: g.CallID, CreateTime: timestamppb.New(g.CreateTime),
	}
}

// DeleteUserGrants implements CallService.
func (s *Calls) DeleteUserGrants(ctx context.Context, _ *toolsv1.DeleteUserGrantsRequest) (*toolsv1.DeleteUserGrantsResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	p, _ := principal.From(ctx)
	return &toolsv1.DeleteUserGrantsResponse{}, outward(s.engine.Store.DeleteGrants(ctx, tenant, p.User), "users/"+p.User)
}
