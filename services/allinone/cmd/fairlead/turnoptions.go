package main

import (
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// turnOptions change what the agent does in the turns of a command.
type turnOptions struct {
	Model          string            `placeholder:"PROVIDER:MODEL" help:"The model, within what the agent allows."`
	ThinkingTokens *int64            `placeholder:"N" help:"The most tokens that the model may think in a step; 0: none."`
	Mode           string            `enum:",default,accept-edits,plan,bypass" default:"" placeholder:"MODE" help:"The permission mode: default, accept-edits, plan or bypass."`
	Context        string            `placeholder:"TEXT" help:"Text that follows the agent's prompt."`
	Param          map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"The value of a parameter of the agent's prompt; may be repeated."`
}

// options returns nil if nothing is set.
func (o turnOptions) options() *sessionv1.TurnOptions {
	if o.Model == "" && o.Mode == "" && o.ThinkingTokens == nil && o.Context == "" && len(o.Param) == 0 {
		return nil
	}
	return &sessionv1.TurnOptions{Model: o.Model, ThinkingTokens: o.ThinkingTokens, Context: o.Context, Parameters: o.Param, PermissionMode: modeOf(o.Mode)}
}

// modeOf reads the name of a permission mode; none is UNSPECIFIED.
func modeOf(name string) commonv1.PermissionMode {
	word := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return commonv1.PermissionMode(commonv1.PermissionMode_value["PERMISSION_MODE_"+word])
}
