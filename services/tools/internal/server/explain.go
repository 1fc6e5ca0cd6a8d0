package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/policy"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// ExplainCall implements ProfileService.
func (s *Profiles) ExplainCall(ctx context.Context, q *toolsv1.ExplainCallRequest) (*toolsv1.ExplainCallResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	args, err := schema.ParseArguments(cmp.Or(q.GetArgumentsJson(), "{}"))
	if err != nil {
		why := strings.TrimSuffix(err.Error(), ".")
		return nil, apierr.New(codes.InvalidArgument, apierr.Domain, apierr.ReasonInvalidRequest, "the arguments cannot be read: "+why, apierr.Field("arguments_json", why))
	}
	version, err := s.store.PermissionVersion(ctx, tenant)
	if err != nil {
		return nil, outward(err, q.GetName())
	}
	p, _ := principal.From(ctx)
	query := policy.Query{
		Tenant: tenant, User: p.User, Session: q.GetSession(), Version: version, Profile: profileID(q.GetName()), Mode: q.GetMode(), Filters: q.GetFilters(),
	}
	decider, err := s.policies.Policy(ctx, query)
	if errors.Is(err, policy.ErrProfileNotFound) {
		err = store.ErrNoProfile // it is the request's resource
	}
	if err != nil {
		return nil, outward(err, q.GetName())
	}
	request := permission.Request{
		Tool: q.GetTool(), Command: args.String("command"), Path: filename.Parse(cmp.Or(args.String("file_path"), args.String("path"))),
		Name: cmp.Or(args.String("subagent_type"), args.String("skill")), Binding: permission.AnyBinding,
	}
	if t, ok := s.tools.Get(q.GetTool()); ok {
		request.ReadOnly = t.ReadOnly
	}
	e, err := decider.Explain(ctx, request)
	if err != nil {
		return nil, outward(err, q.GetName())
	}
	answer := &toolsv1.ExplainCallResponse{
		Decision: decisionKind(e.Decision.Kind), Rule: e.Decision.Rule, Interrupt: e.Decision.Interrupt, Remedy: e.Remedy, SuggestedRules: e.Rules,
	}
	for i, d := range e.Layers {
		layer := "profile"
		if i > 0 {
			layer = fmt.Sprintf("filters[%d]", i-1)
		}
		answer.Layers = append(answer.Layers, &toolsv1.LayerDecision{Layer: layer, Decision: decisionKind(d.Kind), Rule: d.Rule})
	}
	rows, err := s.policies.Rows(ctx, query)
	if err != nil {
		return nil, outward(err, q.GetName())
	}
	for _, i := range e.Grants {
		if i < len(rows) {
			answer.Grants = append(answer.Grants, grantToProto(rows[i]))
		}
	}
	return answer, nil
}

func decisionKind(k permission.Kind) toolsv1.CallDecisionKind {
	switch k {
	case permission.Allow:
		return toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW
	case permission.Ask:
		return toolsv1.CallDecisionKind_CALL_DECISION_KIND_ASK
	default:
		return toolsv1.CallDecisionKind_CALL_DECISION_KIND_DENY
	}
}
