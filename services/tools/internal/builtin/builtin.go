// Package builtin has the tools that are part of the service, one in each file.
// Their names, parameters and answers are those of Claude Code. All but
// those that the caller does itself, such as TodoWrite, work through the sandbox
// service: no command and no file operation happens here.
package builtin

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// sandbox has the service that does the work.
type sandbox struct {
	execs sandboxv1.ExecServiceClient
	files sandboxv1.FileServiceClient
	// background is how long a command may run in the background.
	background time.Duration
}

// All returns the built-in tools. They reach the sandbox service by conn, and
// let commands run in the background for at most operation.
func All(conn grpc.ClientConnInterface, operation time.Duration) ([]*tool.Tool, error) {
	s := &sandbox{execs: sandboxv1.NewExecServiceClient(conn), files: sandboxv1.NewFileServiceClient(conn), background: operation}
	e := effects{s}
	specs := []struct {
		spec   tool.Spec
		runner tool.Runner
	}{
		{bashSpec, bash{e}},
		{readSpec, read{s}},
		{writeSpec, write{e}},
		{editSpec, edit{e}},
		{multiEditSpec, multiEdit{e}},
		{globSpec, glob{s}},
		{grepSpec, grep{s}},
		{lsSpec, ls{s}},
		{skillSpec, nil},
		{todoWriteSpec, nil},
		{createAgentSpec, nil},
		{editAgentSpec, nil},
		{askUserQuestionSpec, nil},
		{taskSpec, nil},
		{exitPlanModeSpec, nil},
	}
	tools := make([]*tool.Tool, 0, len(specs))
	for _, t := range specs {
		t.spec.Provider = tool.Builtin
		made, err := tool.New(t.spec, t.runner)
		if err != nil {
			return nil, fmt.Errorf("built-in tool: %w", err)
		}
		tools = append(tools, made)
	}
	return tools, nil
}

// params decodes a call's arguments, which are valid against the schema.
func params(c tool.Call, into any) error {
	if err := json.Unmarshal(c.Arguments, into); err != nil {
		return fmt.Errorf("decode the arguments of a checked call: %w", err)
	}
	return nil
}
