// Package answer checks whether a waiting call accepts an answer from a person or a client, and explains a refusal.
package answer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/question"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/remote"
	"github.com/fairlead/fairlead/services/session/internal/request"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Checker checks answers. It is safe for concurrent use.
type Checker struct {
	Store store.Store
	Tools *remote.Tools // has the schemas of tools
	Log   *slog.Logger
}

// Approval refuses an answer that goes beyond this call and cannot be carried out. An answer to a call that
// does not wait is the store's to refuse.
func (s *Checker) Approval(ctx context.Context, r *sessionv1.ResolveApprovalRequest) error {
	wide := r.Scope > commonv1.ApprovalScope_APPROVAL_SCOPE_ONCE
	if !wide && r.UpdatedArgumentsJson == "" && r.Mode == 0 {
		return nil
	}
	if err := checkObject("updated_arguments_json", r.UpdatedArgumentsJson); err != nil {
		return err
	}
	p, err := s.Store.GetPending(ctx, request.Key(ctx, r.Parent), r.CallId)
	switch {
	case errors.Is(err, store.ErrCallNotWaiting):
		return nil
	case err != nil:
		return refusal.Store(err, refusal.Subject{Session: r.Parent})
	case p.Kind != sessionv1.ApprovalKind_APPROVAL_KIND_PLAN && r.Mode != 0:
		return refusal.Input("mode", "Only the answer to a plan says in which permission mode the turn goes on. Leave the mode out.")
	case p.Kind == sessionv1.ApprovalKind_APPROVAL_KIND_PLAN && wide:
		return refusal.Input("scope", "The question is whether this plan is carried out: each plan is approved by itself. Approve it without a scope.")
	case p.Kind == sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET && wide:
		return refusal.Input("scope", "The question is whether this turn may pass a soft limit. Approve it without a scope.")
	case p.Kind == sessionv1.ApprovalKind_APPROVAL_KIND_BUDGET:
		return refusal.Input("updated_arguments_json", "The question is whether this turn may pass a soft limit: it has no arguments. Approve it as it is.")
	case wide && len(p.SuggestedRules) == 0:
		return refusal.Input("scope", "No rule is known that covers this call. Approve it without a scope.")
	case wide && r.Rule != "" && r.Digest == p.Digest && !slices.Contains(p.SuggestedRules, r.Rule):
		return refusal.Input("rule", fmt.Sprintf("%q is not a rule that was suggested for this call. Choose one of: %s.", r.Rule, strings.Join(p.SuggestedRules, ", ")))
	}
	return s.checkArguments(ctx, p.Tool, r.UpdatedArgumentsJson)
}

// Question refuses an answer that does not fit the question. An answer to another question is the store's to
// refuse.
func (s *Checker) Question(ctx context.Context, r *sessionv1.AnswerQuestionRequest) error {
	if r.Action != commonv1.QuestionAction_QUESTION_ACTION_ACCEPT {
		return nil
	}
	p, err := s.Store.GetPending(ctx, request.Key(ctx, r.Parent), r.CallId)
	switch {
	case errors.Is(err, store.ErrCallNotWaiting):
		return checkObject("content_json", r.ContentJson)
	case err != nil:
		return refusal.Store(err, refusal.Subject{Session: r.Parent})
	case p.Question == nil || p.Question.Id != r.QuestionId:
		return nil
	}
	if err := question.Check(p.Question, r.ContentJson); err != nil {
		return refusal.Input("content_json", fmt.Sprintf("The answer does not fit the question: %s.", strings.TrimSuffix(err.Error(), ".")))
	}
	return nil
}

// checkArguments refuses arguments that do not match the tool's schema. Tools checks them again, also those of
// tools that are not in its list.
func (s *Checker) checkArguments(ctx context.Context, tool, text string) error {
	if text == "" {
		return nil
	}
	args, err := schema.ParseArguments(text)
	if err == nil {
		err = s.unfit(ctx, tool, args)
	}
	if err != nil {
		return refusal.Input("updated_arguments_json", fmt.Sprintf("%s cannot run with these arguments: %s.", tool, strings.TrimSuffix(err.Error(), ".")))
	}
	return nil
}

// checkObject refuses text that is not a JSON object; empty text is none.
func checkObject(field, text string) error {
	if text == "" {
		return nil
	}
	if _, err := schema.ParseArguments(text); err != nil {
		return refusal.Input(field, fmt.Sprintf("The text cannot be used: %s.", strings.TrimSuffix(err.Error(), ".")))
	}
	return nil
}

// unfit says what is wrong with the arguments of a tool, as far as its schema is known now.
func (s *Checker) unfit(ctx context.Context, tool string, args schema.Arguments) error {
	ctx, cancel := context.WithTimeout(ctx, directory.Patience)
	defer cancel()
	tools, err := s.Tools.ListTools(ctx)
	if err != nil {
		s.Log.WarnContext(ctx, "cannot read the tool's schema; tools checks the arguments when the call runs", "tool", tool, "error", err)
		return nil
	}
	for _, t := range tools {
		if t.Name != "tools/"+tool || t.InputSchemaJson == "" {
			continue
		}
		known, err := schema.Compile(t.InputSchemaJson)
		if err != nil {
			return nil // the schema is at fault, not the arguments; tools says so
		}
		return known.CheckArguments(args)
	}
	return nil
}
