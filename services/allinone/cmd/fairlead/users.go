package main

import (
	"context"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// usersCommand is about the users of a tenant.
type usersCommand struct {
	Create createUserCommand `cmd:"" help:"Make a user, or bring a deleted one back."`
	List   listUsersCommand  `cmd:"" help:"List users."`
	Role   roleCommand       `cmd:"" help:"Change what a user may do."`
	Delete deleteUserCommand `cmd:"" help:"Disable a user and revoke their keys, and the keys that these have made."`
}

func userName(given string) string { return "users/" + strings.TrimPrefix(given, "users/") }

type createUserCommand struct {
	ID    string `arg:"" help:"The user's id, such as a name or an e-mail address."`
	Role  string `enum:"viewer,user,operator,admin" default:"user" help:"What the user may do: viewer, user, operator or admin."`
	Title string `help:"A name to show."`
	target
}

// Run makes a user.
func (c createUserCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		made, err := b.people.CreateUser(ctx, &sessionv1.CreateUserRequest{
			UserId: strings.TrimPrefix(c.ID, "users/"), User: &sessionv1.User{Title: c.Title, Role: roleOf(c.Role)}, RequestId: id.New(),
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s is a user with the role %s; make a key with `fairlead keys create --user %s`\n",
			made.GetUser().GetName(), roleName(made.GetUser().GetRole()), strings.TrimPrefix(c.ID, "users/"))
		return err
	})
}

type listUsersCommand struct {
	Limit int  `default:"50" help:"The most users."`
	JSON  bool `name:"json" help:"Print one JSON user per line."`
	target
}

// Run lists users.
func (c listUsersCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.User
		err := pages(ctx, c.Limit, func(size int32, token string) (int, string, error) {
			resp, err := b.people.ListUsers(ctx, &sessionv1.ListUsersRequest{PageSize: size, PageToken: token})
			all = append(all, resp.GetUsers()...)
			return len(resp.GetUsers()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"USER", "ROLE", "STATE", "CREATED", "TITLE"}}
		for _, u := range all {
			state := "enabled"
			if u.GetDisabled() {
				state = "deleted"
			}
			rows = append(rows, []string{strings.TrimPrefix(u.GetName(), "users/"), roleName(u.GetRole()), state, stamp(u.GetCreateTime()), u.GetTitle()})
		}
		return columns(s.out, rows)
	})
}

type roleCommand struct {
	ID   string `arg:"" help:"The user."`
	Role string `arg:"" enum:"viewer,user,operator,admin" help:"viewer, user, operator or admin."`
	target
}

// Run changes a user's role.
func (c roleCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		u, err := b.people.UpdateUser(ctx, &sessionv1.UpdateUserRequest{Name: userName(c.ID), Role: roleOf(c.Role).Enum(), RequestId: id.New()})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s has the role %s\n", u.GetUser().GetName(), roleName(u.GetUser().GetRole()))
		return err
	})
}

type deleteUserCommand struct {
	ID string `arg:"" help:"The user."`
	target
}

// Run disables a user.
func (c deleteUserCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		gone, err := b.people.DeleteUser(ctx, &sessionv1.DeleteUserRequest{Name: userName(c.ID), RequestId: id.New()})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s is disabled, and the keys are revoked; the sessions stay\n%s", userName(c.ID),
			ended("Revoked, with the keys of others that they have made:", gone.GetRevokedKeys()))
		return err
	})
}
