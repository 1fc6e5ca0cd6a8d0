package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/seccomp"
)

// IDs of the user inside a sandbox.
const insideID = "1000"

// invocation is one call of bubblewrap under construction: its arguments and the
// descriptors that it inherits. Nothing else is inherited, because Go opens
// everything close-on-exec.
type invocation struct {
	args      []string
	inherited []*os.File // the child's descriptors 3, 4, …
	owned     []*os.File // to close once the child has its copies

	info    *os.File // where bubblewrap writes which process it made
	unblock *os.File // writing here lets init start
}

// pass has the child inherit a file and returns its number there.
func (v *invocation) pass(f *os.File) string {
	v.inherited = append(v.inherited, f)
	return strconv.Itoa(2 + len(v.inherited))
}

func (v *invocation) add(args ...string) { v.args = append(v.args, args...) }

// data has the child inherit a pipe that holds bytes. It must fit into a pipe's
// buffer, for nobody reads it yet.
func (v *invocation) data(b []byte) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	v.owned = append(v.owned, r)
	_, err = w.Write(b)
	return v.pass(r), errors.Join(err, w.Close())
}

// closeInherited closes what only the child needs.
func (v *invocation) closeInherited() {
	for _, f := range v.owned {
		_ = f.Close()
	}
	v.owned = nil
}

func (v *invocation) close() {
	v.closeInherited()
	for _, f := range []*os.File{v.info, v.unblock} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// invoke makes the arguments for a sandbox. The socket is init's to talk to the
// service; the child takes it. On an error everything is closed.
func (r *Runner) invoke(s box.Sandbox, f folders, socket *os.File) (_ *invocation, err error) {
	v := &invocation{owned: []*os.File{socket}}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	v.pass(socket) // the first is wire.FD
	v.add("--unshare-all", "--unshare-user", "--unshare-cgroup", "--disable-userns", "--uid", insideID, "--gid", insideID,
		"--hostname", "sandbox", "--cap-drop", "ALL", "--die-with-parent", "--as-pid-1", "--new-session", "--clearenv")
	if err := v.root(r.layout); err != nil {
		return nil, err
	}
	v.writable(s.Limits, f)
	v.add("--remount-ro", "/dev", "--remount-ro", "/")
	// Its two goroutines that wait in the kernel keep one processor each.
	v.add("--setenv", "GOMAXPROCS", "3")
	filter, err := v.data(seccomp.Filter())
	if err != nil {
		return nil, err
	}
	v.add("--seccomp", filter)
	if err := v.controls(); err != nil {
		return nil, err
	}
	v.add("--chdir", "/", "--", "/proc/self/fd/"+v.pass(r.image))
	return v, nil
}

// root adds the curated, read-only part of the tree.
func (v *invocation) root(l *layout) error {
	v.add(l.args...)
	for _, f := range madeFiles {
		number, err := v.data([]byte(f.text))
		if err != nil {
			return err
		}
		v.add("--perms", "0444", "--file", number, f.path)
	}
	for _, x := range l.extra {
		v.add("--ro-bind", x.source, x.path)
	}
	v.add("--proc", "/proc", "--dev", "/dev")
	v.add(l.masks...)
	return nil
}

// writable adds the few places that commands may write to, each of them bounded.
func (v *invocation) writable(l box.Limits, f folders) {
	v.add("--size", strconv.FormatInt(l.TmpBytes, 10), "--perms", "1777", "--tmpfs", "/tmp",
		"--size", strconv.FormatInt(l.ShmBytes, 10), "--perms", "1777", "--tmpfs", "/dev/shm",
		"--dir", "/var", "--symlink", "/tmp", "/var/tmp",
		"--bind", f.home, box.HomePath, "--bind", f.workspace, box.WorkspacePath)
}

// controls adds the pipes by which the start is followed and held.
func (v *invocation) controls() error {
	for _, p := range []struct {
		option string
		ours   **os.File
		reads  bool // whether the child reads
	}{
		{"--info-fd", &v.info, false},
		{"--block-fd", &v.unblock, true},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make a pipe: %w", err)
		}
		theirs := w
		*p.ours = r
		if p.reads {
			theirs, *p.ours = r, w
		}
		v.owned = append(v.owned, theirs)
		v.add(p.option, v.pass(theirs))
	}
	return nil
}

// environment is a command's: clean, but for what it asks for.
func environment(path string, c box.Command) []string {
	term := "dumb"
	if c.Terminal != nil {
		term = "xterm-256color"
	}
	env := []string{
		"HOME=" + box.HomePath, "USER=agent", "LOGNAME=agent", "SHELL=/bin/bash", "PATH=" + path, "LANG=C.UTF-8",
		"TERM=" + term, "TMPDIR=/tmp", "GOTOOLCHAIN=local", "PWD=" + c.Dir,
	}
	at := map[string]int{}
	for i, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		at[k] = i
	}
	for _, kv := range c.Env {
		k, _, _ := strings.Cut(kv, "=")
		if i, ok := at[k]; ok {
			env[i] = kv
			continue
		}
		at[k] = len(env)
		env = append(env, kv)
	}
	return env
}
