package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
)

// CheckOptions refuses options that the agent or the operator does not allow. field names them in the
// request; whole says that nothing may be missing any more.
func (s *Submitter) CheckOptions(ctx context.Context, spec agent.Spec, o *sessionv1.TurnOptions, field string, whole bool) error {
	if fault := spec.CheckOptions(o, s.Directory.DefaultModel(), whole); fault != nil {
		return refusal.Input(field+"."+fault.Field, fault.Text)
	}
	if err := s.checkModel(ctx, spec, o.GetModel(), field+".model"); err != nil {
		return err
	}
	if o == nil || o.ThinkingTokens == nil {
		return nil
	}
	if most := s.Directory.ThinkingTokens(ctx, cmp.Or(o.Model, spec.Model)); *o.ThinkingTokens > most {
		return refusal.AboveCeiling(field+".thinking_tokens", strconv.FormatInt(*o.ThinkingTokens, 10), "the configuration of the model", strconv.FormatInt(most, 10))
	}
	return nil
}

// checkModel refuses a model that the agent allows only because it allows every usable model, and that cannot be used.
func (s *Submitter) checkModel(ctx context.Context, spec agent.Spec, name, field string) error {
	if name == "" || name == cmp.Or(spec.Model, s.Directory.DefaultModel()) || slices.Contains(spec.Models, name) {
		return nil
	}
	e, err := s.Directory.Model(ctx, name)
	why := e.Unusable
	if err != nil {
		why = err.Error()
	}
	if why == "" {
		return nil
	}
	return refusal.Input(field, fmt.Sprintf("The model %.300q cannot be used: %s. List the models to see which can be used (GET /v1/models).", name, strings.TrimSuffix(why, ".")))
}

// CheckMode refuses the permission mode bypass where the operator does not allow it. While tools cannot be asked
// the mode is accepted: tools refuses each call then.
func (s *Submitter) CheckMode(ctx context.Context, spec agent.Spec, o *sessionv1.TurnOptions, field string) error {
	if o.GetPermissionMode() != commonv1.PermissionMode_PERMISSION_MODE_BYPASS {
		return nil
	}
	return s.CheckBypass(ctx, spec, field+".permission_mode")
}

// CheckBypass refuses the mode bypass where the operator does not allow it, by the field that asks for it.
func (s *Submitter) CheckBypass(ctx context.Context, spec agent.Spec, field string) error {
	ctx, cancel := context.WithTimeout(ctx, toolPatience)
	defer cancel()
	allowed, err := s.Tools.BypassAllowed(ctx, spec.Profile)
	if err != nil {
		s.Log.WarnContext(ctx, "cannot ask tools whether the mode bypass is allowed; tools decides with each call", "error", err)
		return nil
	}
	if !allowed {
		return refusal.Input(field, "The operator does not allow the permission mode BYPASS. Use another mode, or ask the operator to set tools.allow-bypass.")
	}
	return nil
}
