package main

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// turnOptions change what the agent does in the turns of a command.
type turnOptions struct {
	Model          string            `placeholder:"PROVIDER:MODEL" help:"The model, within what the agent allows."`
	ThinkingTokens *int64            `placeholder:"N" help:"The most tokens that the model may think in a step; 0: none."`
	Context        string            `placeholder:"TEXT" help:"Text that follows the agent's prompt."`
	Param          map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"The value of a parameter of the agent's prompt; may be repeated."`
}

// options returns nil if nothing is set.
func (o turnOptions) options() *sessionv1.TurnOptions {
	if o.Model == "" && o.ThinkingTokens == nil && o.Context == "" && len(o.Param) == 0 {
		return nil
	}
	return &sessionv1.TurnOptions{Model: o.Model, ThinkingTokens: o.ThinkingTokens, Context: o.Context, Parameters: o.Param}
}
