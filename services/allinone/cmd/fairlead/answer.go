package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/client"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// question asks a person about an approval, and says which answers there are.
func question(a *sessionv1.ApprovalRequested) string {
	text := "May it go on? [y/n] "
	if tool := terminal.Line(a.GetTool(), 40); tool != "" {
		text = "May " + tool + " run? [y/n] "
	}
	if rules := a.GetSuggestedRules(); len(rules) > 0 {
		text += fmt.Sprintf("(s: yes, and all of %s in this session; a: in every session; n and a reason) ", terminal.Line(rules[0], 80))
	}
	return text
}

// approvalOf reads a person's line; nil: it is no answer.
func approvalOf(line string) *sessionv1.ResolveApprovalRequest {
	word, reason, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD")), " ")
	switch word = strings.ToLower(word); {
	case word == "n" || word == "no":
		return &sessionv1.ResolveApprovalRequest{Comment: strings.TrimSpace(reason)}
	case reason != "":
		return nil
	case word == "y" || word == "yes":
		return &sessionv1.ResolveApprovalRequest{Approved: true}
	case word == "s":
		return &sessionv1.ResolveApprovalRequest{Approved: true, Scope: commonv1.ApprovalScope_APPROVAL_SCOPE_SESSION}
	case word == "a":
		return &sessionv1.ResolveApprovalRequest{Approved: true, Scope: commonv1.ApprovalScope_APPROVAL_SCOPE_ALWAYS}
	}
	return nil
}

// answer takes a person's line as the answer to the oldest approval.
func (c *conversation) answer(ctx context.Context, line string, more bool) error {
	if !more { // the input has ended
		c.answers = nil
		return c.ask(ctx)
	}
	a, req := c.approvals[0], approvalOf(line)
	if req == nil || req.Scope != 0 && len(a.GetSuggestedRules()) == 0 {
		c.prompt("Please answer y or n: ")
		return nil
	}
	req.Parent, req.CallId, req.Digest, req.RequestId = c.session, a.GetCallId(), a.GetDigest(), id.New()
	err := client.Retry(ctx, c.backoff, func() error {
		_, err := c.sessions.ResolveApproval(ctx, req)
		return err
	})
	if err != nil && ctx.Err() == nil { // another client may have answered: the events say so
		c.notice("the answer was not accepted: %s", client.Explain(err))
		err = nil
	}
	return errors.Join(err, c.resolved(ctx, a.GetCallId()))
}
