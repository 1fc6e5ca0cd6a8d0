package server

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/login"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
)

// Logins serves LoginService.
type Logins struct {
	toolsv1.UnimplementedLoginServiceServer
	logins  *login.Logins
	servers *mcp.Pool
}

// NewLogins returns the server of LoginService.
func NewLogins(l *login.Logins, servers *mcp.Pool) *Logins {
	return &Logins{logins: l, servers: servers}
}

func ownerOf(ctx context.Context) (login.Owner, error) {
	tenant, err := tenantOf(ctx)
	p, _ := principal.From(ctx)
	return login.Owner{Tenant: tenant, User: p.User}, err
}

// BeginLogin implements LoginService.
func (s *Logins) BeginLogin(ctx context.Context, q *toolsv1.BeginLoginRequest) (*toolsv1.BeginLoginResponse, error) {
	o, err := ownerOf(ctx)
	if err != nil {
		return nil, err
	}
	page, until, err := s.logins.Begin(ctx, o, q.GetServer())
	if err != nil {
		return nil, outward(err, q.GetServer().GetName())
	}
	return &toolsv1.BeginLoginResponse{AuthorizationUrl: page, ExpireTime: timestamppb.New(until)}, nil
}

// FinishLogin implements LoginService. Its caller has no user: the login has one.
func (s *Logins) FinishLogin(ctx context.Context, q *toolsv1.FinishLoginRequest) (*toolsv1.FinishLoginResponse, error) {
	done, err := s.logins.Finish(ctx, login.Answer{State: q.GetState(), Code: q.GetCode(), Iss: q.GetIss(), Error: q.GetError()})
	if err != nil {
		return nil, outward(err, "")
	}
	s.servers.LoggedIn(done)
	return &toolsv1.FinishLoginResponse{Server: done.Server}, nil
}

// ForgetLogin implements LoginService.
func (s *Logins) ForgetLogin(ctx context.Context, q *toolsv1.ForgetLoginRequest) (*toolsv1.ForgetLoginResponse, error) {
	o, err := ownerOf(ctx)
	if err != nil {
		return nil, err
	}
	return &toolsv1.ForgetLoginResponse{}, outward(s.logins.Forget(ctx, o, q.GetServer()), q.GetServer().GetName())
}
