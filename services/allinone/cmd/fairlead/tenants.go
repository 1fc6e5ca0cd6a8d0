package main

import (
	"context"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// tenantsCommand is about tenants, for admins of the tenant default.
type tenantsCommand struct {
	Create createTenantCommand `cmd:"" help:"Make a tenant with an admin. Prints the admin's key, which is not shown again."`
	List   listTenantsCommand  `cmd:"" help:"List the tenants."`
}

// createTenantCommand makes a tenant.
type createTenantCommand struct {
	ID    string `arg:"" help:"The tenant's id: up to 63 lower-case letters, digits, - and _."`
	Admin string `default:"admin" help:"The id of its first admin."`
	Title string `help:"A name to show."`
	JSON  bool   `name:"json" help:"Print the tenant, the admin and the key as JSON."`
	target
}

// Run makes a tenant.
func (c createTenantCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.CreateTenantRequest{
		TenantId: strings.TrimPrefix(c.ID, "tenants/"), AdminId: c.Admin, Tenant: &sessionv1.Tenant{Title: c.Title}, RequestId: id.New(),
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		made, err := b.people.CreateTenant(ctx, r) // not again: a repeated request does not show the key
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, []*sessionv1.CreateTenantResponse{made})
		}
		return columns(s.out, [][]string{
			{"tenant", strings.TrimPrefix(made.GetTenant().GetName(), "tenants/")}, {"admin", strings.TrimPrefix(made.GetAdmin().GetName(), "users/")}, {"key", made.GetSecret()},
		})
	})
}

// listTenantsCommand lists tenants.
type listTenantsCommand struct {
	JSON bool `name:"json" help:"Print one JSON tenant per line."`
	target
}

// Run lists tenants.
func (c listTenantsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Tenant
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.people.ListTenants(ctx, &sessionv1.ListTenantsRequest{PageSize: size, PageToken: token})
			all = append(all, resp.GetTenants()...)
			return len(resp.GetTenants()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"TENANT", "CREATED", "TITLE"}}
		for _, t := range all {
			rows = append(rows, []string{strings.TrimPrefix(t.GetName(), "tenants/"), stamp(t.GetCreateTime()), t.GetTitle()})
		}
		return columns(s.out, rows)
	})
}
