package policy

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
)

// ErrRules says that rules are faulty.
var ErrRules = errors.New("a permission rule is not valid")

// RuleError has the faults of rules.
type RuleError struct {
	// In is the field that has the lists of rules, as `filters[1]`.
	In     string
	Faults []permission.RuleError
}

// Error names the first fault.
func (e *RuleError) Error() string {
	text := fmt.Sprintf("%s: %s", e.In, e.Faults[0])
	if more := len(e.Faults) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Unwrap returns ErrRules.
func (e *RuleError) Unwrap() error { return ErrRules }

// Fields returns the paths of the faulty rules, with what is wrong.
func (e *RuleError) Fields(yield func(path, fault string) bool) {
	for _, f := range e.Faults {
		if !yield(strings.TrimPrefix(e.In+"."+f.Field, "."), f.Err.Error()) {
			return
		}
	}
}

// Rules converts rules of the API.
func Rules(r *commonv1.PermissionRules) permission.Rules {
	return permission.Rules{
		Allow: r.GetAllow(), Ask: r.GetAsk(), Deny: r.GetDeny(), Interrupt: r.GetInterrupt(),
		EnabledTools: r.GetEnabledTools(), DisabledTools: r.GetDisabledTools(), Directories: r.GetDirectories(),
	}
}

// Proto is the reverse of Rules.
func Proto(r permission.Rules) *commonv1.PermissionRules {
	return &commonv1.PermissionRules{
		Allow: r.Allow, Ask: r.Ask, Deny: r.Deny, Interrupt: r.Interrupt,
		EnabledTools: r.EnabledTools, DisabledTools: r.DisabledTools, Directories: r.Directories,
	}
}

// Check checks the rules in a field of a request: a fault is a *RuleError.
func Check(field string, r *commonv1.PermissionRules) error {
	if _, faults := permission.CompileFilter(Rules(r)); len(faults) > 0 {
		return &RuleError{In: field, Faults: faults}
	}
	return nil
}

// compile compiles filters, or takes them as they were compiled for another call.
func (s *Source) compile(filters []*commonv1.PermissionRules) ([]*permission.Profile, error) {
	if len(filters) == 0 {
		return nil, nil
	}
	all := make([]*permission.Profile, 0, len(filters))
	for i, f := range filters {
		key, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("encode filter %d: %w", i, err)
		}
		p, known := s.filters.get(string(key))
		if !known {
			made, faults := permission.CompileFilter(Rules(f))
			if len(faults) > 0 {
				return nil, &RuleError{In: fmt.Sprintf("filters[%d]", i), Faults: faults}
			}
			p = made
			s.filters.put(string(key), p)
		}
		all = append(all, p)
	}
	return all, nil
}
