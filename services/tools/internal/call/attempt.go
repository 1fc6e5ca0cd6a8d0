package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/tools/internal/mcp"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// attempt moves one call forward from its journaled state.
type attempt struct {
	*Engine
	Request
	digest   string
	rec      store.Record
	send     Send
	span     trace.Span
	decided  permission.Request // what was decided on
	leads    string             // set by the decision; see tool.Call
	withheld []string
	terms    terms // of the approval
}

func (a *attempt) advance(ctx context.Context) error {
	switch a.rec.State {
	case store.Finished:
		result, err := decode(a.rec.Result)
		if err != nil {
			return err
		}
		return a.send(resultPiece(result))
	case store.Cancelled:
		return ErrCallCancelled
	case store.Delegated:
		return a.send(delegatedPiece(a.Tool, a.arguments()))
	}
	decider, err := a.Policies.Policy(ctx, a.query(ctx))
	if err != nil {
		return err
	}
	if placeLost(a.rec, a.Ref) {
		return a.lost(ctx)
	}
	if a.rec.State == store.Started {
		return a.resume(ctx, decider)
	}
	do := a.makeNew
	if a.rec.State == store.Asked && a.rec.Question != nil {
		do = a.proceed
	}
	ctx, a.span = a.observe.start(ctx, a.Request, false)
	err = do(ctx, decider)
	if a.span != nil {
		endSpan(a.span, err)
	}
	return err
}

// makeNew makes a call that has not run.
func (a *attempt) makeNew(ctx context.Context, decider *permission.Policy) error {
	t, args, fault := a.check(ctx)
	if fault != nil {
		return a.endUnrun(ctx, nil, fault)
	}
	if a.Approval != nil && !a.Approval.GetApproved() {
		return a.endUnrun(ctx, decisionPiece(permission.Deny, "refused by "+a.approver()), refused(a.Approval))
	}
	fault, err := a.accept(t, &args)
	if err != nil {
		return err
	}
	if fault != nil {
		return a.endUnrun(ctx, nil, fault)
	}
	d, err := a.decide(ctx, decider, t, args)
	if err != nil {
		return err
	}
	if err := a.cover(ctx, decider); err != nil {
		return err
	}
	if a.Approval != nil && (d.Kind == permission.Ask || d.Kind == permission.Allow && a.terms.arguments != nil) {
		d = permission.Decision{Kind: permission.Allow, Rule: a.approved() + d.Rule}
	}
	if d.Kind == permission.Deny && a.terms.arguments != nil {
		d.Rule = "with the arguments of " + a.approver() + ": " + d.Rule
	}
	decided(a.span, d)
	switch {
	case d.Kind == permission.Deny:
		return a.endUnrun(ctx, decisionPiece(d.Kind, d.Rule), denied(decider.Profile.Name(), a.Tool, d))
	case d.Kind == permission.Ask:
		return a.requestApproval(ctx, decider, d)
	case t.Delegated():
		return a.delegate(ctx, d)
	default:
		return a.start(ctx, t, args, d)
	}
}

// check finds the tool and checks the arguments. Faulty arguments are a result,
// which the model can correct.
func (a *attempt) check(ctx context.Context) (*tool.Tool, schema.Arguments, *tool.Result) {
	t, fault := a.lookup(ctx)
	if fault != "" {
		return nil, schema.Arguments{}, tool.Failed(fault)
	}
	args, err := t.Arguments(a.arguments())
	if err != nil {
		return nil, args, tool.Failed(fmt.Sprintf("The call of %s was not made: %s.", a.Tool, strings.TrimSuffix(err.Error(), ".")))
	}
	return t, args, nil
}

// lookup finds the tool that the call names among those that the agent may ask for.
// Without one, it returns what the model should know.
func (a *attempt) lookup(ctx context.Context) (t *tool.Tool, fault string) {
	p, _ := principal.From(ctx)
	caller := mcp.Caller{User: p.User, Ref: a.Ref}
	if mcp.Is(a.Tool) {
		return a.Engine.Servers.Find(ctx, caller, a.Servers, a.Allowed, a.Tool)
	}
	if t, ok := a.Tools.Get(a.Tool); ok && slices.Contains(a.Allowed, a.Tool) {
		return a.Engine.Servers.For(t, caller, a.Servers, a.Allowed), ""
	}
	names := slices.DeleteFunc(a.Tools.Names(), func(n string) bool { return !slices.Contains(a.Allowed, n) })
	fault = fmt.Sprintf("There is no tool \"%s\" for this agent.", store.Text(a.Tool))
	if len(names) > 0 {
		fault += " It has: " + strings.Join(names, ", ") + "."
	}
	return nil, fault
}

// endUnrun records and sends the result of a call that does not run.
func (a *attempt) endUnrun(ctx context.Context, decision *toolsv1.CallToolResponse, result *tool.Result) error {
	bytes, err := encode(result)
	if err != nil {
		return err
	}
	if err := a.journal(ctx, store.Finished, bytes); err != nil {
		return err
	}
	a.observe.ended(ctx, a.span, a.Tool, result)
	if decision != nil {
		if err := a.send(decision); err != nil {
			return err
		}
	}
	return a.send(resultPiece(result))
}

func (a *attempt) requestApproval(ctx context.Context, decider *permission.Policy, d permission.Decision) error {
	if a.rec.State != store.Asked {
		if err := a.journal(ctx, store.Asked, nil); err != nil {
			return err
		}
	}
	if err := a.send(decisionPiece(d.Kind, d.Rule)); err != nil {
		return err
	}
	return a.send(&toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Ask{Ask: &toolsv1.CallAsk{
		Digest: a.digest, Rule: d.Rule, SuggestedRules: decider.Suggest(a.decided),
	}}})
}

func (a *attempt) delegate(ctx context.Context, d permission.Decision) error {
	if err := a.journal(ctx, store.Delegated, nil); err != nil {
		return err
	}
	if err := a.send(decisionPiece(d.Kind, d.Rule)); err != nil {
		return err
	}
	return a.send(delegatedPiece(a.Tool, a.arguments()))
}

// journal stores a new state, fenced, from the state that was read.
func (a *attempt) journal(ctx context.Context, to store.State, result []byte) error {
	c := store.Change{
		From: a.rec.State, To: to, Fenced: true, Tool: a.Tool, Digest: a.digest, Result: result, At: a.Now(),
		Owner: a.Self, TTL: a.Lease, Claim: a.rec.Claim,
	}
	if to == store.Started || to == store.Delegated {
		c.Arguments, c.Grant = a.terms.arguments, a.terms.row
	}
	return a.Store.Move(ctx, a.Ref, c)
}

// start journals the call as started, and runs it.
func (a *attempt) start(ctx context.Context, t *tool.Tool, args schema.Arguments, d permission.Decision) error {
	r, other, err := a.acquireRun(ctx, t, args)
	if err != nil || other != nil {
		return errors.Join(err, a.attach(ctx, other))
	}
	if err := a.journal(ctx, store.Started, nil); err != nil {
		a.abandon(r)
		return err
	}
	r.own(1)
	a.launch(ctx, r)
	if err := a.send(decisionPiece(d.Kind, d.Rule)); err != nil {
		return err
	}
	return r.follow(ctx, a.send)
}

// resume continues a call that was started before: by this replica, by another
// live one, or by a dead one.
func (a *attempt) resume(ctx context.Context, decider *permission.Policy) error {
	if r := a.find(a.Ref); r != nil {
		return a.attach(ctx, r)
	}
	if a.rec.Live && a.rec.Owner.ID != a.Self.ID {
		return a.elsewhere(ctx)
	}
	t, fault := a.lookup(ctx)
	args, err := schema.ParseArguments(a.arguments())
	if fault != "" || err != nil || t.Delegated() {
		return a.endUnrun(ctx, nil, tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN,
			fmt.Sprintf("The tool %s is gone, and how this call ended is not known. It may have taken effect: check before repeating it.", a.Tool)))
	}
	refused, err := a.decideAgain(ctx, decider, t, args)
	if err != nil {
		return err
	}
	if refused != nil {
		return a.endUnrun(ctx, nil, refused)
	}
	r, other, err := a.acquireRun(ctx, t, args)
	if err != nil || other != nil {
		return errors.Join(err, a.attach(ctx, other))
	}
	// Another replica may have finished the call since it was read, or taken it
	// over.
	if err := a.Store.TakeOver(ctx, a.Ref, a.rec.Claim, a.Self, a.Lease); err != nil {
		a.abandon(r)
		return err
	}
	r.own(a.rec.Claim + 1)
	r.call.Resumed, r.call.Begun = true, a.rec.Begun
	if err := a.answerAgain(r); err != nil {
		a.abandon(r)
		return err
	}
	ctx, a.span = a.observe.start(ctx, a.Request, true)
	a.launch(ctx, r)
	return r.follow(ctx, a.send)
}

// stillMine returns ErrConflict when the call was settled meanwhile, or taken
// over.
func (e *Engine) stillMine(ctx context.Context, r *run) error {
	ref := r.ref
	ref.Epoch = r.epoch.Load()
	rec, err := e.Store.Enter(ctx, ref)
	if err == nil && (rec.State != store.Started || rec.Claim != r.claim.Load()) {
		return store.ErrConflict
	}
	return err
}

// acquireRun waits for a slot and makes a run for the call, or returns the existing
// run.
func (a *attempt) acquireRun(ctx context.Context, t *tool.Tool, args schema.Arguments) (mine, other *run, err error) {
	if other := a.find(a.Ref); other != nil {
		return nil, other, nil
	}
	release, err := a.slots.acquire(ctx, a.Ref.Tenant, a.Ref.Session)
	if err != nil {
		return nil, nil, err
	}
	r := newRun(ctx, a.Ref, a.digest, t, a.Limits.OutputBytes, release)
	r.call = a.call(args)
	r.call.Seen = func() { r.begun.Store(true) }
	r.call.Open = func(ctx context.Context) error { return a.stillMine(ctx, r) }
	got, err := a.register(r)
	if err != nil || got != r {
		release()
		return nil, got, err
	}
	return r, nil, nil
}

// abandon gives up a run that did not start.
func (a *attempt) abandon(r *run) {
	a.settle(r, nil, store.ErrConflict)
}

// attach follows a call that runs here.
func (a *attempt) attach(ctx context.Context, r *run) error {
	if r == nil {
		return nil
	}
	if r.digest != a.digest {
		return ErrIDReused
	}
	r.raise(a.Ref.Epoch)
	if a.Answer != nil {
		if err := r.answer(a.Answer); err != nil {
			return err
		}
	}
	return r.follow(ctx, a.send)
}
