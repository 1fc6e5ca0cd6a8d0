package bubblewrap

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// shown is a mount as bubblewrap finds it.
type shown struct {
	box.Mount
	from string
}

// ownMounts are the mounts of a sandbox that runs as the service's own user, who
// finds them where they are.
func ownMounts(s box.Sandbox) ([]shown, error) {
	all, err := s.MountList()
	if err != nil {
		return nil, err
	}
	mounts := make([]shown, 0, len(all))
	for _, m := range all {
		f, err := m.Open(s.Workspace)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Name, err)
		}
		_ = f.Close()
		mounts = append(mounts, shown{m, m.In(s.Workspace)})
	}
	return mounts, nil
}

// mounts adds what the sandbox shows besides. An alias of several parts lies in a
// folder that is a mount itself, closed to changes: otherwise a command could give
// it another name, and the mount with it.
func (v *invocation) mounts(all []shown) {
	var closed []string
	for _, m := range all {
		option := "--ro-bind"
		if m.Writable {
			option = "--bind"
		}
		if m.Original {
			v.add(option, m.from, m.Source)
		}
		if m.Alias == "" {
			continue
		}
		if first, _, deep := strings.Cut(m.Alias, "/"); deep {
			if !slices.Contains(closed, first) {
				closed = append(closed, first)
				v.add("--size", "65536", "--perms", "0755", "--tmpfs", path.Join(box.WorkspacePath, first))
			}
			v.add("--dir", path.Join(box.WorkspacePath, m.Alias))
		}
		v.add(option, m.from, filepath.Join(box.WorkspacePath, m.Alias))
	}
	for _, first := range closed {
		v.add("--remount-ro", path.Join(box.WorkspacePath, first))
	}
}
