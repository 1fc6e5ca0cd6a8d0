package agent

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

// Bounds of each list of Permissions, as the API has them.
const (
	maxRules       = 1024
	maxDirectories = 64
)

// Permissions are rules on an agent's calls. They only narrow what its profile allows.
type Permissions struct {
	Allow         []string `key:"allow" json:"allow,omitempty" help:"calls that may run, such as Bash(git *); none: all that are neither denied nor asked about"`
	Ask           []string `key:"ask" json:"ask,omitempty" help:"calls about which a person decides"`
	Deny          []string `key:"deny" json:"deny,omitempty" help:"calls that may not run"`
	Interrupt     []string `key:"interrupt" json:"interrupt,omitempty" help:"calls that may not run, and that end the turn"`
	EnabledTools  []string `key:"enabled-tools" json:"enabled_tools,omitempty" help:"tools that may be used, by name or by prefix; none: all"`
	DisabledTools []string `key:"disabled-tools" json:"disabled_tools,omitempty" help:"tools that may not be used"`
	Directories   []string `key:"directories" json:"directories,omitempty" help:"directories below which tools may name files; none: the whole workspace"`
}

// permissionsFrom returns the rules that a client sent.
func permissionsFrom(p *commonv1.PermissionRules) Permissions {
	return Permissions{
		Allow: p.GetAllow(), Ask: p.GetAsk(), Deny: p.GetDeny(), Interrupt: p.GetInterrupt(),
		EnabledTools: p.GetEnabledTools(), DisabledTools: p.GetDisabledTools(), Directories: p.GetDirectories(),
	}
}

// Proto returns the public form; nil without a rule.
func (p Permissions) Proto() *commonv1.PermissionRules {
	r := &commonv1.PermissionRules{
		Allow: p.Allow, Ask: p.Ask, Deny: p.Deny, Interrupt: p.Interrupt,
		EnabledTools: p.EnabledTools, DisabledTools: p.DisabledTools, Directories: p.Directories,
	}
	if proto.Size(r) == 0 {
		return nil
	}
	return r
}

// check refuses lists that the tools service would not take. It checks the rules themselves.
func (p Permissions) check() error {
	for _, list := range []struct {
		name  string
		rules []string
		most  int
	}{
		{"allow", p.Allow, maxRules}, {"ask", p.Ask, maxRules}, {"deny", p.Deny, maxRules}, {"interrupt", p.Interrupt, maxRules},
		{"enabled-tools", p.EnabledTools, maxRules}, {"disabled-tools", p.DisabledTools, maxRules}, {"directories", p.Directories, maxDirectories},
	} {
		if len(list.rules) > list.most {
			return fmt.Errorf("permissions: %s has %d entries; %d are the most", list.name, len(list.rules), list.most)
		}
	}
	return nil
}

// Filters returns the rules that narrow the profile in a session with rules of its own: the agent's, the session's,
// and those of a subagent's own agent.
func (s Spec) Filters(session *commonv1.PermissionRules) []*commonv1.PermissionRules {
	all := []*commonv1.PermissionRules{s.Permissions.Proto(), session}
	for _, p := range s.Further {
		all = append(all, p.Proto())
	}
	var filters []*commonv1.PermissionRules
	for _, f := range all {
		if proto.Size(f) > 0 && !slices.ContainsFunc(filters, func(other *commonv1.PermissionRules) bool { return proto.Equal(f, other) }) {
			filters = append(filters, f)
		}
	}
	return filters
}

// WithFilter returns the spec of an agent whose only filter is f.
func (s Spec) WithFilter(f *commonv1.PermissionRules) Spec {
	s.Permissions, s.Further = permissionsFrom(f), nil
	return s
}
