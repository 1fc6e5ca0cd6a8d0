// Package policy finds what decides on a call: the profile of its agent, the filters and the mode.
package policy

import (
	"context"
	"errors"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
)

// ErrProfileNotFound says that there is no such permission profile.
var ErrProfileNotFound = errors.New("there is no such permission profile")

// ErrBypass says that the operator does not allow the mode bypass.
var ErrBypass = errors.New("the mode bypass is not allowed")

// Config configures a Source.
type Config struct {
	// Profiles are those of the configuration.
	Profiles permission.Set
	// AllowBypass allows the mode bypass.
	AllowBypass bool
}

// Source finds policies. It is safe for concurrent use.
type Source struct {
	Config
	filters cache[*permission.Profile]
}

// New returns a source.
func New(c Config) *Source { return &Source{Config: c} }

// Query says whose policy is wanted, and what narrows it.
type Query struct {
	Profile string
	Mode    commonv1.PermissionMode
	Filters []*commonv1.PermissionRules
}

// Policy returns the policy of a query. A faulty filter is a *RuleError.
func (s *Source) Policy(_ context.Context, q Query) (*permission.Policy, error) {
	p, ok := s.Profiles[q.Profile]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrProfileNotFound, q.Profile)
	}
	policy := &permission.Policy{Profile: p}
	var err error
	if policy.Mode, err = s.Mode(q.Mode); err != nil {
		return nil, err
	}
	policy.Filters, err = s.compile(q.Filters)
	return policy, err
}

// Mode returns a mode, unless the operator does not allow it.
func (s *Source) Mode(m commonv1.PermissionMode) (permission.Mode, error) {
	switch m {
	case commonv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS:
		return permission.AcceptEdits, nil
	case commonv1.PermissionMode_PERMISSION_MODE_PLAN:
		return permission.Plan, nil
	case commonv1.PermissionMode_PERMISSION_MODE_BYPASS:
		if !s.AllowBypass {
			return permission.Default, ErrBypass
		}
		return permission.Bypass, nil
	default:
		return permission.Default, nil
	}
}
