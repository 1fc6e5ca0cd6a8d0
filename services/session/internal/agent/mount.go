package agent

import (
	"fmt"
	"slices"
	"strings"

	"buf.build/go/protovalidate"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// maxMounts bounds the mounts of an agent. A session may name as many
// (Session.mounts), and the sandbox accepts both together.
const maxMounts = 32

// Mount is a request for a mount of the sandbox's operator.
type Mount struct {
	Name     string `key:"name" json:"name" help:"the operator's name for the mount"`
	Path     string `key:"path" json:"path,omitempty" help:"folder in the mount to show instead of the whole"`
	Alias    string `key:"alias" json:"alias,omitempty" help:"path below the workspace, in mnt; empty: the operator's"`
	Mode     string `key:"mode" json:"mode,omitempty" help:"ro or rw, at most what the operator gives; empty: the operator's"`
	Optional bool   `key:"optional" json:"optional,omitempty" help:"whether sessions go on, with a warning, if the mount does not exist"`
}

func (m Mount) proto() *commonv1.Mount {
	return &commonv1.Mount{Name: m.Name, Path: m.Path, Alias: m.Alias, Mode: m.Mode, Optional: m.Optional}
}

func mountsFrom(all []*commonv1.Mount) []Mount {
	var mounts []Mount
	for _, m := range all {
		mounts = append(mounts, Mount{m.GetName(), m.GetPath(), m.GetAlias(), m.GetMode(), m.GetOptional()})
	}
	return mounts
}

func mountsProto(all []Mount) []*commonv1.Mount {
	var mounts []*commonv1.Mount
	for _, m := range all {
		mounts = append(mounts, m.proto())
	}
	return mounts
}

// checkMounts checks only the form: the sandbox service knows which mounts exist,
// and for whom.
func checkMounts(all []Mount) error {
	if len(all) > maxMounts {
		return fmt.Errorf("%d mounts are more than %d", len(all), maxMounts)
	}
	for i, m := range all {
		if err := protovalidate.Validate(m.proto()); err != nil {
			return fmt.Errorf("mount %q: %w", m.Name, err)
		}
		for _, other := range all[:i] {
			switch {
			case m.Name == other.Name:
				return fmt.Errorf("mount %q is named twice", m.Name)
			case m.Alias != "" && m.Alias == other.Alias:
				return fmt.Errorf("mounts %q and %q have the same alias %s", other.Name, m.Name, m.Alias)
			}
		}
	}
	return nil
}

// workspaceMounts returns the agent's mounts and the session's. For a mount of both, the
// session decides how it is shown. An empty list removes the mounts of the session's earlier agent.
func (s Spec) workspaceMounts(session []*commonv1.Mount) *sandboxv1.WorkspaceMounts {
	all := slices.DeleteFunc(mountsProto(s.Mounts), func(m *commonv1.Mount) bool {
		return slices.ContainsFunc(session, func(own *commonv1.Mount) bool { return own.GetName() == m.GetName() })
	})
	all = append(all, session...)
	slices.SortFunc(all, func(a, b *commonv1.Mount) int { return strings.Compare(a.GetName(), b.GetName()) })
	return &sandboxv1.WorkspaceMounts{Mounts: all}
}
