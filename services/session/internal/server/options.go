package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/refusal"

	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

// checkOptions refuses options that the agent or the operator does not allow. field names them in the
// request; whole says that nothing may be missing any more.
func (c *Config) checkOptions(ctx context.Context, spec agent.Spec, o *sessionv1.TurnOptions, field string, whole bool) error {
	if fault := spec.CheckOptions(o, c.Directory.DefaultModel(), whole); fault != nil {
		return refusal.Input(field+"."+fault.Field, fault.Text)
	}
	if err := c.checkModel(ctx, spec, o.GetModel(), field+".model"); err != nil {
		return err
	}
	if o == nil || o.ThinkingTokens == nil {
		return nil
	}
	if most := c.Directory.ThinkingTokens(ctx, cmp.Or(o.Model, spec.Model)); *o.ThinkingTokens > most {
		return refusal.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_LIMIT_ABOVE_CEILING,
			fmt.Sprintf("%s.thinking_tokens is %d; the configuration of the model allows at most %d.", field, *o.ThinkingTokens, most),
			apierr.Field(field+".thinking_tokens", fmt.Sprintf("above the operator's ceiling of %d", most)))
	}
	return nil
}

// checkModel refuses a model that the agent allows only because it allows every usable model, and that cannot be used.
func (c *Config) checkModel(ctx context.Context, spec agent.Spec, name, field string) error {
	if name == "" || name == cmp.Or(spec.Model, c.Directory.DefaultModel()) || slices.Contains(spec.Models, name) {
		return nil
	}
	e, err := c.Directory.Model(ctx, name)
	why := e.Unusable
	if err != nil {
		why = err.Error()
	}
	if why == "" {
		return nil
	}
	return refusal.Input(field, fmt.Sprintf("The model %.300q cannot be used: %s. List the models to see which can be used (GET /v1/models).", name, strings.TrimSuffix(why, ".")))
}

// checkMode refuses the permission mode bypass where the operator does not allow it. While tools cannot be asked
// the mode is accepted: tools refuses each call then.
func (c *Config) checkMode(ctx context.Context, spec agent.Spec, o *sessionv1.TurnOptions, field string) error {
	if o.GetPermissionMode() != commonv1.PermissionMode_PERMISSION_MODE_BYPASS {
		return nil
	}
	return c.checkBypass(ctx, spec, field+".permission_mode")
}

func (c *Config) checkBypass(ctx context.Context, spec agent.Spec, field string) error {
	ctx, cancel := context.WithTimeout(ctx, toolPatience)
	defer cancel()
	allowed, err := c.Tools.BypassAllowed(ctx, spec.Profile)
	if err != nil {
		c.Log.WarnContext(ctx, "cannot ask tools whether the mode bypass is allowed; tools decides with each call", "error", err)
		return nil
	}
	if !allowed {
		return refusal.Input(field, "The operator does not allow the permission mode BYPASS. Use another mode, or ask the operator to set tools.allow-bypass.")
	}
	return nil
}
