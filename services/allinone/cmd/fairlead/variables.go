package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// variablesCommand is about the environment of a user's commands.
type variablesCommand struct {
	Set    setVariableCommand    `cmd:"" help:"Set a variable to the contents of standard input."`
	List   listVariablesCommand  `cmd:"" help:"List the names of your variables; values are never shown."`
	Delete deleteVariableCommand `cmd:"" help:"Delete a variable."`
}

// owner is the user of the variables.
type owner struct {
	User string `default:"me" help:"Your user name; me is the caller."`
}

func (o owner) parent() string { return "users/" + strings.TrimPrefix(o.User, "users/") }

// maxVariable is above the server's limit of a value, so that the server reports one
// that is too large.
const maxVariable = 1 << 20

type setVariableCommand struct {
	Name string `arg:"" help:"The variable's name."`
	owner
	target
}

// Run sets a variable. Its value is not an argument, because other users of the
// machine can see arguments, and the shell's history keeps them.
func (c setVariableCommand) Run(ctx context.Context, s stdio) error {
	raw, err := io.ReadAll(io.LimitReader(s.in, maxVariable))
	if err != nil {
		return fmt.Errorf("read the value from standard input: %w", err)
	}
	r := &sessionv1.SetUserVariableRequest{
		Name: c.parent() + "/variables/" + c.Name, Value: strings.TrimSuffix(string(raw), "\n"), RequestId: id.New(),
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		err := retry(ctx, func() error {
			_, err := b.users.SetUserVariable(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s is set for your commands from your next turn on\n", c.Name)
		return err
	})
}

type listVariablesCommand struct {
	JSON bool `name:"json" help:"Print one JSON variable per line."`
	owner
	target
}

// Run lists variables.
func (c listVariablesCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.UserVariable
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.users.ListUserVariables(ctx, &sessionv1.ListUserVariablesRequest{Parent: c.parent(), PageSize: size, PageToken: token})
			all = append(all, resp.GetVariables()...)
			return len(resp.GetVariables()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"VARIABLE", "SET"}}
		for _, v := range all {
			rows = append(rows, []string{bare(v.GetName()), stamp(v.GetUpdateTime())})
		}
		return columns(s.out, rows)
	})
}

type deleteVariableCommand struct {
	Name string `arg:"" help:"The variable's name."`
	owner
	target
}

// Run deletes a variable.
func (c deleteVariableCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.DeleteUserVariableRequest{Name: c.parent() + "/variables/" + c.Name, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return terminal.Explained(retry(ctx, func() error {
			_, err := b.users.DeleteUserVariable(ctx, r)
			return err
		}))
	})
}
