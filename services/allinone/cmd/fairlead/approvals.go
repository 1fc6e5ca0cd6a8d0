package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// approvalCommands answer what agents ask people.
type approvalCommands struct {
	Approvals approvalsCommand `cmd:"" help:"List what waits for your answer, the newest first."`
	Approve   approveCommand   `cmd:"" help:"Allow a call that waits."`
	Deny      denyCommand      `cmd:"" help:"Refuse a call that waits."`

	Profiles    profilesCommand    `cmd:"" set:"one=profile" help:"Create, change and list permission profiles."`
	Permissions permissionsCommand `cmd:"" set:"one=grant" help:"Explain what is decided on a call; list and take back what was allowed for longer."`
	Answer      answerCommand      `cmd:"" help:"Answer a question that waits."`
	Feedback    feedbackCommand    `cmd:"" set:"one=judgement" help:"Judge the answers of an agent, and list judgements."`
}

// approvalsCommand lists what waits for a person.
type approvalsCommand struct {
	Call    string `arg:"" optional:"" help:"Show this call alone, with all of its arguments or its plan."`
	Session string `placeholder:"ID" help:"Only what this session waits for."`
	JSON    bool   `name:"json" help:"Print one JSON question per line."`
	target
}

// Run lists what waits.
func (c approvalsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		found, err := b.pending(ctx, c.Session)
		if err != nil {
			return terminal.Explained(err)
		}
		if c.Call != "" {
			found = slices.DeleteFunc(found, func(p *sessionv1.PendingApproval) bool { return p.GetCallId() != c.Call })
			if len(found) == 0 {
				return notWaiting(c.Call)
			}
		}
		switch {
		case c.JSON:
			return printJSON(s.out, found)
		case c.Call != "":
			return show(s, found[0])
		}
		return columns(s.out, rowsOf(found, func(p *sessionv1.PendingApproval) [][]string {
			return [][]string{
				{"CALL", p.GetCallId()}, {"SESSION", bare(p.GetSession())}, {"ASKED", stamp(p.GetCreateTime())}, {"TOOL", p.GetTool()}, {"WHAT", asks(p)},
			}
		}))
	})
}

// asks returns what a question is about, on one line.
func asks(p *sessionv1.PendingApproval) string {
	if items := p.GetQuestion().GetItems(); len(items) > 0 {
		return terminal.Line(items[0].GetQuestion(), 100)
	}
	if p.GetMessage() != "" {
		return terminal.Line(p.GetMessage(), 100)
	}
	return terminal.Arguments(p.GetArgumentsJson())
}

// pending lists what waits, in one session or in all.
func (b *backend) pending(ctx context.Context, session string) ([]*sessionv1.PendingApproval, error) {
	if session != "" {
		session = sessionName(session)
	}
	return all[*sessionv1.PendingApproval](ctx, b, &sessionv1.ListApprovalsRequest{Session: session}, 0)
}

// waiting finds the question of a call.
func (b *backend) waiting(ctx context.Context, call string) (*sessionv1.PendingApproval, error) {
	found, err := b.pending(ctx, "")
	for _, p := range found {
		if p.GetCallId() == call {
			return p, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, notWaiting(call)
}

func notWaiting(call string) error {
	return fmt.Errorf("no question about the call %s waits; it may have an answer already. `fairlead approvals` lists what waits", terminal.Line(call, 100))
}

// show shows what waits as `fairlead run` does.
func show(s stdio, p *sessionv1.PendingApproval) error {
	e := &sessionv1.Event{Body: &sessionv1.Event_QuestionRequested{QuestionRequested: &sessionv1.QuestionRequested{Question: p.GetQuestion()}}}
	if p.GetQuestion() == nil {
		e.Body = &sessionv1.Event_ApprovalRequested{ApprovalRequested: &sessionv1.ApprovalRequested{
			CallId: p.GetCallId(), Kind: p.GetKind(), Tool: p.GetTool(), ArgumentsJson: p.GetArgumentsJson(), Rule: p.GetRule(), Message: p.GetMessage(),
		}}
	}
	view := terminal.NewRenderer(s.out, terminal.Options{Colors: terminal.Colors(s.out, s.env)})
	view.Event(e)
	if p.GetShortened() && p.GetKind() != sessionv1.ApprovalKind_APPROVAL_KIND_PLAN {
		_, _ = fmt.Fprintf(s.out, "The arguments are long. All of them: fairlead events %s\n", bare(p.GetSession()))
	}
	return view.Err()
}

// resolve answers the question of a call, and returns the question.
func (b *backend) resolve(ctx context.Context, call string, answer *sessionv1.ResolveApprovalRequest) (*sessionv1.PendingApproval, error) {
	p, err := b.waiting(ctx, call)
	if err != nil {
		return nil, err
	}
	if p.GetQuestion() != nil {
		return nil, fmt.Errorf("the call %s asks a question: use `fairlead answer`", terminal.Line(call, 100))
	}
	answer.Parent, answer.CallId, answer.Digest = p.GetSession(), p.GetCallId(), p.GetDigest()
	_, err = b.repeat(ctx, answer)
	return p, err
}

// approveCommand allows a call.
type approveCommand struct {
	Call         string `arg:"" help:"The call, as fairlead approvals lists it."`
	SessionScope bool   `xor:"scope" help:"Do not ask again in this session about calls that the rule covers."`
	Always       bool   `xor:"scope" help:"Do not ask again in any session of its user about calls that the rule covers."`
	Rule         string `placeholder:"RULE" help:"The rule of --session-scope or --always. The default is the narrowest that covers the call."`
	Edit         string `placeholder:"FILE" help:"Run the call with the arguments in this file, a JSON object; - is standard input."`
	Mode         string `enum:",default,accept-edits" default:"" placeholder:"MODE" help:"Of a plan: carry it out in this permission mode, default or accept-edits."`
	Comment      string `placeholder:"TEXT" help:"Say this to the model."`
	target
}

// Run allows the call. A plan is shown: it has just become what the agent does.
func (c approveCommand) Run(ctx context.Context, s stdio) error {
	answer := &sessionv1.ResolveApprovalRequest{Approved: true, Rule: c.Rule, Comment: c.Comment, Mode: modeOf(c.Mode)}
	switch {
	case c.SessionScope:
		answer.Scope = commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION
	case c.Always:
		answer.Scope = commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS
	case c.Rule != "":
		return usage("--rule needs --session-scope or --always")
	}
	if c.Edit != "" {
		text, err := readArguments(s, c.Edit)
		if err != nil {
			return err
		}
		answer.UpdatedArgumentsJson = text
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		p, err := b.resolve(ctx, c.Call, answer)
		if err == nil && p.GetKind() == sessionv1.ApprovalKind_APPROVAL_KIND_PLAN {
			return show(s, p)
		}
		return terminal.Explained(err)
	})
}

// readArguments reads a person's arguments of a call.
func readArguments(s stdio, name string) (string, error) {
	if name == "-" {
		data, err := io.ReadAll(io.LimitReader(s.in, maxPrompt+1))
		return string(data), err
	}
	data, err := os.ReadFile(name)
	return string(data), err
}

// denyCommand refuses a call.
type denyCommand struct {
	Call    string `arg:"" help:"The call, as fairlead approvals lists it."`
	Comment string `placeholder:"TEXT" help:"Say this to the model: what to do instead."`
	target
}

// Run refuses the call.
func (c denyCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		_, err := b.resolve(ctx, c.Call, &sessionv1.ResolveApprovalRequest{Comment: c.Comment})
		return terminal.Explained(err)
	})
}

// answerCommand answers a question.
type answerCommand struct {
	Call    string   `arg:"" help:"The call that asks, as fairlead approvals lists it."`
	Answers []string `arg:"" optional:"" help:"The answer to each question, in their order: the number of an option, its label, or other text; several options separated by commas."`
	Content string   `placeholder:"JSON" help:"The answer as a JSON object, for a form."`
	Decline bool     `help:"Refuse to answer. The agent goes on without one."`
	target
}

// Run answers the question.
func (c answerCommand) Run(ctx context.Context, s stdio) error {
	if c.Decline && (c.Content != "" || len(c.Answers) > 0) || c.Content != "" && len(c.Answers) > 0 {
		return usage("give answers, --content or --decline, but only one of them")
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		p, err := b.waiting(ctx, c.Call)
		if err != nil {
			return terminal.Explained(err)
		}
		if p.GetQuestion() == nil {
			return fmt.Errorf("the call %s waits for an approval: use `fairlead approve` or `fairlead deny`", terminal.Line(c.Call, 100))
		}
		r := &sessionv1.AnswerQuestionRequest{
			Parent: p.GetSession(), CallId: p.GetCallId(), QuestionId: p.GetQuestion().GetId(), Action: declined,
		}
		if !c.Decline {
			r.Action = accepted
			if r.ContentJson, err = c.content(p.GetQuestion()); err != nil {
				return err
			}
		}
		_, err = b.repeat(ctx, r)
		return terminal.Explained(err)
	})
}

// content returns the content of the answer.
func (c answerCommand) content(q *commonv1.Question) (string, error) {
	items := q.GetItems()
	if c.Content != "" || len(items) == 0 && len(c.Answers) == 0 {
		return c.Content, nil
	}
	if len(c.Answers) != len(items) {
		return "", usage("questions: %d, answers: %d; give one answer for each question, in their order", len(items), len(c.Answers))
	}
	answers := map[string]any{}
	for i, item := range items {
		answers[item.GetQuestion()] = choice(item, c.Answers[i])
	}
	return contentOf(answers), nil
}
