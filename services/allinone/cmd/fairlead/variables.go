package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// variablesCommand is about the environment of a user's commands.
type variablesCommand struct {
	Set    setVariableCommand                            `cmd:"" help:"Set a variable to the contents of standard input."`
	List   lists[listVariables, *sessionv1.UserVariable] `cmd:"" help:"List the names of your variables; values are never shown."`
	Delete does[deleteVariable]                          `cmd:"" help:"Delete a variable."`
}

// owner is the user of the variables.
type owner struct {
	User string `default:"me" help:"Your user name; me is the caller."`
}

func (o owner) parent() string { return userName(o.User) }

func (o owner) variable(name string) string { return o.parent() + "/variables/" + name }

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
	r := &sessionv1.SetUserVariableRequest{Name: c.variable(c.Name), Value: strings.TrimSuffix(string(raw), "\n")}
	return c.answer(ctx, s, c, r, func(proto.Message) error {
		_, err := fmt.Fprintf(s.out, "%s is set for your commands from your next turn on\n", c.Name)
		return err
	})
}

type listVariables struct {
	jsonList
	owner
}

func (f listVariables) request() proto.Message {
	return &sessionv1.ListUserVariablesRequest{Parent: f.parent()}
}

func (listVariables) row(v *sessionv1.UserVariable) [][]string {
	return [][]string{{"VARIABLE", bare(v.GetName())}, {"SET", stamp(v.GetUpdateTime())}}
}

type deleteVariable struct {
	Name string `arg:"" help:"The variable's name."`
	owner
}

func (f deleteVariable) request() proto.Message {
	return &sessionv1.DeleteUserVariableRequest{Name: f.variable(f.Name)}
}

func (deleteVariable) done() string { return "" }
