// Program example runs a turn of the agent coder: it answers what the agent asks, and has a tool of its own.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	fairlead "github.com/fairlead/fairlead/clients/go"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := fairlead.Connect(cmp.Or(os.Getenv("FAIRLEAD_TARGET"), "127.0.0.1:9090"), fairlead.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	session, err := client.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "agents/coder"}})
	if err != nil {
		return err
	}
	end, err := client.Run(ctx, &sessionv1.RunTurnRequest{Parent: session.GetName(), Text: "hello"}, fairlead.Handlers{
		Event: func(e *sessionv1.Event) { fmt.Print(e.GetTextDelta().GetText()) },
		Approve: func(_ context.Context, a *sessionv1.ApprovalRequested) (*sessionv1.ResolveApprovalRequest, error) {
			fmt.Printf("\n[%s is approved]\n", a.GetTool())
			return &sessionv1.ResolveApprovalRequest{Approved: true}, nil
		},
		Tools: []fairlead.Tool{{
			Name: "where", Description: "Returns where the person is.",
			Run: func(context.Context, json.RawMessage) (string, error) { return "Berlin", nil },
		}},
	})
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n", end.GetState())
	return nil
}
