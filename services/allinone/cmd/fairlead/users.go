package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// tenantsCommand is about tenants, for admins of the tenant default.
type tenantsCommand struct {
	Create shows[createTenant, *sessionv1.CreateTenantResponse] `cmd:"" set:"one=tenant, the admin and the key" help:"Make a tenant with an admin. Prints the admin's key, which is not shown again."`
	List   lists[listTenants, *sessionv1.Tenant]                `cmd:"" help:"List the tenants."`
}

type createTenant struct {
	ID    string `arg:"" help:"The tenant's id: up to 63 lower-case letters, digits, - and _."`
	Admin string `default:"admin" help:"The id of its first admin."`
	Title string `help:"A name to show."`
	jsonOne
	once // a repeated request does not show the key
}

func (f createTenant) request() proto.Message {
	return &sessionv1.CreateTenantRequest{TenantId: strings.TrimPrefix(f.ID, "tenants/"), AdminId: f.Admin, Tenant: &sessionv1.Tenant{Title: f.Title}}
}

func (createTenant) show(s stdio, made *sessionv1.CreateTenantResponse) error {
	return columns(s.out, [][]string{
		{"tenant", strings.TrimPrefix(made.GetTenant().GetName(), "tenants/")}, {"admin", userID(made.GetAdmin().GetName())}, {"key", made.GetSecret()},
	})
}

type listTenants struct{ jsonList }

func (listTenants) request() proto.Message { return &sessionv1.ListTenantsRequest{} }

func (listTenants) row(t *sessionv1.Tenant) [][]string {
	return [][]string{{"TENANT", strings.TrimPrefix(t.GetName(), "tenants/")}, {"CREATED", stamp(t.GetCreateTime())}, {"TITLE", t.GetTitle()}}
}

// usersCommand is about the users of a tenant.
type usersCommand struct {
	Create shows[createUser, *sessionv1.User]               `cmd:"" help:"Make a user, or bring a deleted one back."`
	List   lists[listUsers, *sessionv1.User]                `cmd:"" help:"List users."`
	Role   shows[changeRole, *sessionv1.User]               `cmd:"" help:"Change what a user may do."`
	Delete shows[deleteUser, *sessionv1.DeleteUserResponse] `cmd:"" help:"Disable a user and revoke their keys, and the keys that these have made."`
}

// userID returns the id in a user's name, and userName the name of a user with an id or a name.
func userID(name string) string { return strings.TrimPrefix(name, "users/") }

func userName(given string) string { return "users/" + userID(given) }

type createUser struct {
	ID    string `arg:"" help:"The user's id, such as a name or an e-mail address."`
	Role  string `enum:"viewer,user,operator,admin" default:"user" help:"What the user may do: viewer, user, operator or admin."`
	Title string `help:"A name to show."`
	once
}

func (f createUser) request() proto.Message {
	return &sessionv1.CreateUserRequest{UserId: userID(f.ID), User: &sessionv1.User{Title: f.Title, Role: roleOf(f.Role)}}
}

func (f createUser) show(s stdio, made *sessionv1.User) error {
	_, err := fmt.Fprintf(s.out, "%s is a user with the role %s; make a key with `fairlead keys create --user %s`\n",
		made.GetName(), roleName(made.GetRole()), userID(f.ID))
	return err
}

type listUsers struct {
	Limit int `default:"50" help:"The most users."`
	jsonList
}

func (f listUsers) limit() int { return f.Limit }

func (listUsers) request() proto.Message { return &sessionv1.ListUsersRequest{} }

func (listUsers) row(u *sessionv1.User) [][]string {
	state := "enabled"
	if u.GetDisabled() {
		state = "deleted"
	}
	return [][]string{
		{"USER", userID(u.GetName())}, {"ROLE", roleName(u.GetRole())}, {"STATE", state}, {"CREATED", stamp(u.GetCreateTime())}, {"TITLE", u.GetTitle()},
	}
}

type changeRole struct {
	ID   string `arg:"" help:"The user."`
	Role string `arg:"" enum:"viewer,user,operator,admin" help:"viewer, user, operator or admin."`
	once
}

func (f changeRole) request() proto.Message {
	return &sessionv1.UpdateUserRequest{Name: userName(f.ID), Role: roleOf(f.Role).Enum()}
}

func (changeRole) show(s stdio, u *sessionv1.User) error {
	_, err := fmt.Fprintf(s.out, "%s has the role %s\n", u.GetName(), roleName(u.GetRole()))
	return err
}

type deleteUser struct {
	ID string `arg:"" help:"The user."`
	once
}

func (f deleteUser) request() proto.Message {
	return &sessionv1.DeleteUserRequest{Name: userName(f.ID)}
}

func (f deleteUser) show(s stdio, gone *sessionv1.DeleteUserResponse) error {
	_, err := fmt.Fprintf(s.out, "%s is disabled, and the keys are revoked; the sessions stay\n%s", userName(f.ID),
		ended("Revoked, with the keys of others that they have made:", gone.GetRevokedKeys()))
	return err
}
