package call

import (
	"cmp"
	"context"
	"fmt"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// decide decides on a call by its arguments and, if a rule of the profile covers
// paths, by the target of its path. The tool then opens exactly that target.
func (a *attempt) decide(ctx context.Context, decider *permission.Policy, t *tool.Tool, args schema.Arguments) (permission.Decision, error) {
	q := permission.Request{
		Tool: a.Tool, ReadOnly: t.ReadOnly, Command: args.String("command"), Path: filename.Parse(cmp.Or(args.String("file_path"), args.String("path"))),
		Name: cmp.Or(args.String("subagent_type"), args.String("skill")), Binding: t.Binding,
	}
	if r, ok := t.Runner.(tool.Resolver); ok && (decider.AsksWhereItLeads(a.Tool) || a.terms.bindsPath(a.Tool)) {
		var err error
		if q.Leads, q.Doubt, err = r.Resolve(ctx, a.call(args), q.Path); err != nil {
			return permission.Decision{}, err
		}
		a.leads, a.withheld = q.Leads, decider.Withheld(q)
	}
	a.decided = q
	return decider.Decide(q), nil
}

// decideAgain decides again on a call that was started and has not ended, if a rule
// covers paths: its path may lead elsewhere by now. It returns the result of a call that
// may not go on.
func (a *attempt) decideAgain(ctx context.Context, decider *permission.Policy, t *tool.Tool, args schema.Arguments) (*tool.Result, error) {
	if !decider.AsksWhereItLeads(a.Tool) {
		return nil, nil //nolint:nilnil // the call goes on
	}
	d, err := a.decide(ctx, decider, t, args)
	if err != nil || d.Kind == permission.Allow || d.Kind == permission.Ask && a.Approval.GetApproved() {
		return nil, err
	}
	return tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN, fmt.Sprintf(
		"The call was interrupted, and may not go on: %s. It may have taken effect: check before repeating it.", d.Rule)), nil
}

// call returns the call in the form for a tool.
func (a *attempt) call(args schema.Arguments) tool.Call {
	return tool.Call{
		Session: a.Ref.Session, Holder: a.Ref.Holder, ID: a.Ref.CallID, WorkspaceGeneration: a.Ref.Generation, Node: a.Ref.Node,
		Arguments: args.Raw, Leads: a.leads, Withheld: a.withheld,
	}
}
