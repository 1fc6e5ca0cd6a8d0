package call

import (
	"fmt"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

func resultPiece(r *tool.Result) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Result{Result: r}}
}

func delegatedPiece(name, arguments string) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Delegated{
		Delegated: &toolsv1.CallDelegated{Tool: name, ArgumentsJson: arguments},
	}}
}

func decisionPiece(k permission.Kind, rule string) *toolsv1.CallToolResponse {
	kind := toolsv1.CallDecisionKind_CALL_DECISION_KIND_DENY
	switch k {
	case permission.Allow:
		kind = toolsv1.CallDecisionKind_CALL_DECISION_KIND_ALLOW
	case permission.Ask:
		kind = toolsv1.CallDecisionKind_CALL_DECISION_KIND_ASK
	}
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Decision{
		Decision: &toolsv1.CallDecision{Decision: kind, Rule: rule},
	}}
}

func outputPiece(stream string, data []byte) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Output{
		Output: &toolsv1.CallOutput{Stream: stream, Data: data},
	}}
}

func progressPiece(message string) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Progress{
		Progress: &toolsv1.CallProgress{Message: message},
	}}
}

func denied(profile, name string, d permission.Decision) *tool.Result {
	text := fmt.Sprintf(
		"The permission profile %s does not allow this call of %s (%s). It was not made. Do not try to reach the same by other means; do without it, or say what you would need.",
		profile, name, d.Rule)
	switch {
	case d.Interrupt:
		text = fmt.Sprintf("The permission profile %s does not allow this call of %s (%s). It was not made, and the turn ends here.", profile, name, d.Rule)
	case d.Planning:
		text = fmt.Sprintf("This call of %s was not made: %s. Nothing may be changed before a person approves the plan. Read what you need, then present the plan with ExitPlanMode.", name, d.Rule)
	}
	result := tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_DENIED, text)
	result.Interrupt = d.Interrupt
	return result
}

func refused(a *toolsv1.Approval) *tool.Result {
	text := "A person refused this call. It was not made."
	if c := a.GetComment(); c != "" {
		text += " They said: " + c
	}
	return tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_REFUSED, text)
}

func cancelled() *tool.Result {
	return tool.Ended(toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED, "The call was cancelled. What it had done by then stays done.")
}
