package calls

import (
	"context"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// Tools is what this package needs of the tools service. Refusals are the errors of package remote.
type Tools interface {
	// CallTool makes a call, or attaches to it. next returns its pieces until io.EOF.
	CallTool(ctx context.Context, r *toolsv1.CallToolRequest) (next func() (*toolsv1.CallToolResponse, error), err error)
	// CancelCall stops a call and returns its result, if it has one.
	CancelCall(ctx context.Context, call *commonv1.CallRef) (*toolsv1.CallResult, error)
	// ReportResult gives a delegated call its result.
	ReportResult(ctx context.Context, call *commonv1.CallRef, result *toolsv1.CallResult) error
}

// Skills has the instructions of skills.
type Skills interface {
	// Instructions returns those of a skill of a tenant. skill.ErrGone if it was deleted.
	Instructions(ctx context.Context, tenant string, s agent.Skill) (string, error)
}
