package bubblewrap

import (
	"fmt"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// shown is a mount with its path for bubblewrap.
type shown struct {
	box.Mount
	from string
}

// ownMounts returns the mounts of a sandbox that runs as the service's own user, which can reach them by
// their own paths.
func ownMounts(s box.Sandbox) ([]shown, error) {
	all, err := s.MountList()
	if err != nil {
		return nil, err
	}
	mounts := make([]shown, 0, len(all))
	for _, m := range all {
		if m.Cover { // it exists only inside
			mounts = append(mounts, shown{m, ""})
			continue
		}
		f, err := m.Open(s.Workspace)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Name, err)
		}
		_ = f.Close()
		mounts = append(mounts, shown{m, m.In(s.Workspace)})
	}
	return mounts, nil
}

// mounts adds the sandbox's further mounts.
func (v *invocation) mounts(all []shown) {
	var covers []string
	for _, m := range all {
		option := "--ro-bind"
		if m.Writable {
			option = "--bind"
		}
		if m.Original {
			v.add(option, m.from, m.Source)
		}
		at := m.Path()
		switch {
		case m.Alias == "":
			continue
		case m.Cover:
			covers = append(covers, at)
			v.add("--size", "65536", "--perms", "0755", "--tmpfs", at)
			continue
		case m.Inner():
			v.add("--dir", at)
		}
		v.add(option, m.from, at)
	}
	for _, at := range covers {
		v.add("--remount-ro", at)
	}
}
