// Package policy finds what decides on a call: the profile of its agent, the filters and the mode.
package policy

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/permission"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// ErrProfileNotFound says that there is no such permission profile.
var ErrProfileNotFound = errors.New("there is no such permission profile")

// ErrBypass says that the operator does not allow the mode bypass.
var ErrBypass = errors.New("the mode bypass is not allowed")

// namesRead is how many profiles are read at one time.
const namesRead = 200

// Config configures a Source.
type Config struct {
	// Profiles are those of the configuration.
	Profiles permission.Set
	// AllowBypass allows the mode bypass.
	AllowBypass bool
	// Store has the profiles and grants of tenants; nil: there are none.
	Store store.Permissions
}

// Source finds policies. It is safe for concurrent use.
type Source struct {
	Config
	filters  cache[*permission.Profile]
	profiles cache[read[*permission.Profile]]
	granted  cache[read[map[string]held]]
}

// New returns a source.
func New(c Config) *Source { return &Source{Config: c} }

// Query says whose policy is wanted, and what narrows it.
type Query struct {
	Tenant, User, Session string
	// Version is the version of the tenant's permissions: what was read of an older one
	// is read again.
	Version int64
	Profile string
	Mode    commonv1.PermissionMode
	Filters []*commonv1.PermissionRules
}

// Policy returns the policy of a query. A faulty filter is a *RuleError.
func (s *Source) Policy(ctx context.Context, q Query) (*permission.Policy, error) {
	mode, err := s.Mode(q.Mode)
	if err != nil {
		return nil, err
	}
	p, err := s.profile(ctx, q)
	if err != nil {
		return nil, err
	}
	filters, err := s.compile(q.Filters)
	if err != nil {
		return nil, err
	}
	grants, err := s.grants(ctx, q)
	return &permission.Policy{Profile: p, Filters: filters, Mode: mode, Grants: grants}, err
}

// profile returns a profile of the configuration or, if there is none of this name, of
// the tenant.
func (s *Source) profile(ctx context.Context, q Query) (*permission.Profile, error) {
	if p, ok := s.Profiles[q.Profile]; ok {
		return p, nil
	}
	if s.Store == nil {
		return nil, fmt.Errorf("%w: %s", ErrProfileNotFound, q.Profile)
	}
	return reuse(&s.profiles, q.Tenant+"\x00"+q.Profile, q.Version, func() (*permission.Profile, error) {
		row, err := s.Store.GetProfile(ctx, q.Tenant, q.Profile)
		if errors.Is(err, store.ErrNoProfile) {
			return nil, fmt.Errorf("%w: %s", ErrProfileNotFound, q.Profile)
		}
		if err != nil {
			return nil, err
		}
		rules, err := Decode(row)
		if err != nil {
			return nil, err
		}
		return permission.Compile(row.ID, Rules(rules))
	})
}

// Names lists the profiles of the configuration and of a tenant. The empty tenant has none.
func (s *Source) Names(ctx context.Context, tenant string) ([]string, error) {
	names := s.Profiles.Names()
	if tenant == "" || s.Store == nil {
		return names, nil
	}
	for after := ""; ; {
		rows, err := s.Store.ListProfiles(ctx, tenant, after, namesRead)
		for _, row := range rows {
			names = append(names, row.ID)
		}
		if err != nil || len(rows) < namesRead {
			return names, err
		}
		after = rows[len(rows)-1].ID
	}
}

// Decode returns the rules of a stored profile.
func Decode(row store.Profile) (*commonv1.PermissionRules, error) {
	rules := &commonv1.PermissionRules{}
	if err := proto.Unmarshal(row.Rules, rules); err != nil {
		return nil, fmt.Errorf("read the rules of the profile %s: %w", row.ID, err)
	}
	return rules, nil
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
