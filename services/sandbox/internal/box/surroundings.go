package box

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

// hitStorage is the name of a mount's limit.
const hitStorage = "storage"

// surroundings returns the mounts and the environment of a command of the caller, and a watch of the
// folders that it may fill. mu is held.
func (ws *workspace) surroundings(c Call) (mounts string, env []string, w watch, err error) {
	all, err := ws.mounts(c.User)
	if err != nil {
		return "", nil, nil, err
	}
	mounts = EncodeMounts(all)
	if err := ws.refuseBeside(sharing{mounts, ws.separateUser(c.User)}); err != nil {
		return "", nil, nil, err
	}
	if env, err = ws.environment(c.User); err != nil {
		return "", nil, nil, err
	}
	w, err = ws.watchMounts(all)
	return mounts, env, w, err
}

// watchMounts returns a watch that also covers the limited mounts. A mount that was full before the command
// may grow by a little, so that the command can make room.
func (ws *workspace) watchMounts(all []Mount) (watch, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(m Mount) bool { return m.Bytes == 0 })
	if len(all) == 0 {
		return ws.watch, nil
	}
	bounds := make([]Limits, len(all))
	for i, m := range all {
		u, err := ws.node.storages.of(m).Near(m.limits().room(), m.Source)
		if err != nil {
			return nil, fmt.Errorf("count mount %s: %w", m.Name, err)
		}
		bounds[i] = m.limits()
		if u.Over(bounds[i].room()) != "" {
			if u, err = disk.Measure(bounds[i].far().room(), m.Source); err != nil {
				return nil, fmt.Errorf("count mount %s: %w", m.Name, err)
			}
			bounds[i].WorkspaceBytes = max(m.Bytes, u.Bytes) + slackBytes
			bounds[i].WorkspaceInodes = max(m.Inodes, u.Inodes) + slackInodes
		}
	}
	return func(l Limits, quick bool) (limit, why string) {
		limit, why = ws.watch(l, quick)
		for i, m := range all {
			if w := ws.watchMount(m, bounds[i], quick); w != "" && limit == "" {
				limit, why = hitStorage, w
			}
		}
		return limit, why
	}, nil
}

func (ws *workspace) watchMount(m Mount, bound Limits, quick bool) string {
	u, err := ws.node.storages.of(m).Look(quick, bound.room(), m.Source)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			ws.node.o.Log.Error("cannot count a mount", "mount", m.Name, "error", err)
		}
		return ""
	}
	if why := u.Over(bound.room()); why != "" {
		return "mount " + m.Name + " is too large: " + why
	}
	return ""
}

// Environment is a user's variables for the environment of commands.
type Environment struct {
	User      string            `json:"user,omitempty"`
	Variables map[string]string `json:"-"`
	// Secret says that there are variables, also if their values are not known any more.
	Secret bool `json:"secret,omitempty"`
}

func (e Environment) equal(o Environment) bool {
	if e.User != o.User || e.Secret != o.Secret || len(e.Variables) != len(o.Variables) {
		return false
	}
	for k, v := range e.Variables {
		if w, ok := o.Variables[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// environment returns the variables of the operator and the acting user; later ones win. mu is held.
func (ws *workspace) environment(user string) (env []string, err error) {
	if ws.node.o.Mounts != nil {
		if env, err = ws.node.o.Mounts.Environment(ws.key.Tenant, user); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIsolation, err)
		}
	}
	if e := ws.meta.Environment; e.User == user {
		if e.Secret && len(e.Variables) == 0 {
			return nil, ErrForgotten
		}
		for k, v := range e.Variables {
			env = append(env, k+"="+v)
		}
	}
	return env, nil
}

// separateUser returns the user that needs a sandbox of its own, or an empty string if users share sandboxes with
// equal mounts.
func (ws *workspace) separateUser(user string) string {
	if ws.node.o.Mounts == nil || !ws.node.o.Mounts.Private(ws.key.Tenant) {
		return ""
	}
	return user
}

// refuseBeside refuses a command while commands run that it must not share a sandbox with. A command with other
// mounts could change the places that this command's mounts are to lie over. mu is held.
func (ws *workspace) refuseBeside(wanted sharing) error {
	for _, e := range ws.execs.live() {
		if e.shared != wanted {
			return fmt.Errorf("%w: command %s: wait for its end, or end it", ErrMountsInUse, e.ID())
		}
	}
	return nil
}
