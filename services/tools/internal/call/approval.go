package call

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// ErrGrant says that the rule of an approval does not fit the call.
var ErrGrant = errors.New("the approval's rule does not fit the call")

// GrantError is an ErrGrant with its reason, for people.
type GrantError struct{ Why string }

// Error returns the reason.
func (e *GrantError) Error() string { return e.Why }

// Unwrap returns ErrGrant.
func (e *GrantError) Unwrap() error { return ErrGrant }

// terms are what an approval says besides yes. They are stored with the start of the call.
type terms struct {
	// arguments are those with which the call runs; nil: the model's.
	arguments []byte
	grant     *permission.Grant
	row       *store.Grant
	alone     string // the rule that is not kept, because it does not cover the person's arguments
}

// bindsPath reports whether the approval's rule is about the path of a tool.
func (t terms) bindsPath(tool string) bool { return t.grant != nil && t.grant.BindsPath(tool) }

// arguments returns the arguments with which the call runs: those of the journal, because
// every replica must use the same, of the approval, or of the model.
func (a *attempt) arguments() string {
	switch {
	case a.rec.Arguments != nil:
		return string(a.rec.Arguments)
	case a.terms.arguments != nil:
		return string(a.terms.arguments)
	default:
		return a.Arguments
	}
}

// query returns what is needed to find the policy of the call.
func (a *attempt) query(ctx context.Context) policy.Query {
	p, _ := principal.From(ctx)
	q := a.Policy
	q.Tenant, q.User, q.Session, q.Version = a.Ref.Tenant, p.User, a.Ref.Session, a.rec.Permissions
	return q
}

func (a *attempt) approver() string { return cmp.Or(a.Approval.GetUser(), "a person") }

// approved begins the text of a decision that a person took.
func (a *attempt) approved() string {
	switch {
	case a.terms.alone != "":
		return "approved by " + a.approver() + " with other arguments, which " + a.terms.alone + " does not cover, so for this call alone: "
	case a.terms.arguments != nil:
		return "approved by " + a.approver() + " with other arguments: "
	}
	return "approved by " + a.approver() + ": "
}

// accept reads the terms of an approval, and replaces the arguments by those of the person.
// If these are not valid, the call ends with a result that says so.
func (a *attempt) accept(t *tool.Tool, args *schema.Arguments) (*tool.Result, error) {
	if text := a.Approval.GetUpdatedArgumentsJson(); text != "" {
		edited, err := t.Arguments(text)
		if err != nil {
			return tool.Failed(fmt.Sprintf("The call of %s was not made: a person put other arguments in place of yours, and these are not valid: %s.",
				a.Tool, strings.TrimSuffix(err.Error(), "."))), nil
		}
		*args, a.terms.arguments = edited, []byte(text)
	}
	if rule := a.Approval.GetRule(); a.lasting() && rule != "" {
		g, err := permission.NewGrant(a.Tool, rule, "")
		if err != nil {
			return nil, &GrantError{fmt.Sprintf("the rule %.200q cannot be granted with a call of %s: %s", rule, a.Tool, err)}
		}
		a.terms.grant = &g
	}
	return nil, nil //nolint:nilnil // the call goes on
}

// lasting reports whether the approval holds for more than the call.
func (a *attempt) lasting() bool {
	return a.Approval.GetScope() > commonv1.ApprovalScope_APPROVAL_SCOPE_ONCE
}

// cover makes the grant of an approval, whose rule must cover what was decided on. A rule that covers the model's
// arguments, and not those of the person, is not kept: the next such call asks again.
func (a *attempt) cover(ctx context.Context, decider *permission.Policy) error {
	if !a.lasting() {
		return nil
	}
	rule := a.Approval.GetRule()
	switch suggested := decider.Suggest(a.decided); {
	case rule == "" && len(suggested) == 0:
		return &GrantError{fmt.Sprintf("no rule covers just such calls of %s; approve it for this call alone, or name a rule", a.Tool)}
	case rule == "":
		rule = suggested[0]
	case decider.Covers(a.terms.grant.Bound(a.decided.Binding), a.decided):
	case a.terms.arguments != nil:
		a.terms.alone, a.terms.grant = rule, nil
		return nil
	default:
		return &GrantError{fmt.Sprintf("the rule %.200q does not cover the call of %s; name one that does", rule, a.Tool)}
	}
	p, _ := principal.From(ctx)
	g := &store.Grant{
		Tenant: a.Ref.Tenant, User: p.User, Session: a.Ref.Session, Profile: decider.Profile.Name(), Rule: rule,
		Approver: a.approver(), CallID: a.Ref.CallID, Binding: a.decided.Binding,
	}
	if a.Approval.GetScope() == commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS {
		g.Session = ""
	}
	g.ID = store.GrantID(g.User, g.Session, g.Profile, g.Rule, g.Binding)
	a.terms.row = g
	return nil
}
