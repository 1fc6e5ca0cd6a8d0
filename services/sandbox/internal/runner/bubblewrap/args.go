package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/rootfs"
	"github.com/fairlead/fairlead/services/sandbox/internal/seccomp"
)

// insideID is the user and group id inside a sandbox.
const insideID = "1000"

// invocation is a call of bubblewrap under construction: its arguments and the descriptors that it
// inherits. It inherits nothing else, because Go opens all files close-on-exec.
type invocation struct {
	args      []string
	inherited []*os.File // the child's descriptors 3, 4, …
	owned     []*os.File // to close once the child has its copies

	info    *os.File // bubblewrap reports here which process it made
	unblock *os.File // writing here lets init start
}

// pass makes the child inherit a file and returns the file's number there.
func (v *invocation) pass(f *os.File) string {
	v.inherited = append(v.inherited, f)
	return strconv.Itoa(2 + len(v.inherited))
}

func (v *invocation) add(args ...string) { v.args = append(v.args, args...) }

// data makes the child inherit a pipe that holds bytes. They must fit into the pipe's buffer, because
// nothing reads it yet.
func (v *invocation) data(b []byte) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	v.owned = append(v.owned, r)
	_, err = w.Write(b)
	return v.pass(r), errors.Join(err, w.Close())
}

// closeInherited closes the files that only the child needs.
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

// invoke makes the arguments for a sandbox. On an error it closes all files.
func (m *maker) invoke(s box.Sandbox, f folders, socket *os.File) (_ *invocation, err error) {
	v := &invocation{}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	v.pass(socket) // the first is wire.FD
	v.add("--unshare-all", "--unshare-user", "--unshare-cgroup", "--disable-userns", "--uid", insideID, "--gid", insideID,
		"--hostname", "sandbox", "--cap-drop", "ALL", "--die-with-parent", "--as-pid-1", "--new-session", "--clearenv")
	root := m.ownRoot
	if s.Owner != box.Self {
		root = m.stageRoot
	}
	if err := root(v); err != nil {
		return nil, err
	}
	v.writable(s.Limits, f)
	v.mounts(f.mounts)
	v.add("--remount-ro", "/")
	// Its two goroutines mostly wait in the kernel; each processor takes memory.
	v.add("--setenv", "GOMAXPROCS", "1")
	filter, err := v.data(seccomp.Filter())
	if err != nil {
		return nil, err
	}
	v.add("--seccomp", filter)
	if err := v.controls(); err != nil {
		return nil, err
	}
	v.add("--chdir", "/", "--", "/proc/self/fd/"+v.pass(m.image), initName(m.name))
	return v, nil
}

// stageRoot adds the read-only root for sandboxes that use the stage: most of it is there, and furnish adds
// the rest.
func (m *maker) stageRoot(v *invocation) error {
	v.show(m.layout.Binds, outsideETC)
	v.links(m.layout.Links)
	at, err := m.etc.path()
	if err != nil {
		return err
	}
	v.add("--ro-bind", at, etcPath)
	v.show(m.layout.Extra, outsideETC)
	v.add("--proc", "/proc", "--dev-bind", m.fixtures.at+devicesPart, "/dev")
	return nil
}

// ownRoot adds the read-only root for the service's own user.
func (m *maker) ownRoot(v *invocation) error {
	everything := func(rootfs.Bind) bool { return true }
	v.show(m.layout.Binds, everything)
	v.links(m.layout.Links)
	if err := v.makeFiles(); err != nil {
		return err
	}
	v.show(m.layout.Extra, everything)
	v.add("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
	for _, f := range m.layout.MaskedFiles {
		v.add("--ro-bind", os.DevNull, f) // a device that no mount allows to open
	}
	for _, f := range m.layout.MaskedFolders {
		v.add("--size", "4096", "--tmpfs", f, "--remount-ro", f)
	}
	return nil
}

// outsideETC reports whether the bind is not in the stage's /etc.
func outsideETC(b rootfs.Bind) bool { return !below(b.Path) }

// show adds the selected folders and files of the machine.
func (v *invocation) show(all []rootfs.Bind, wanted func(rootfs.Bind) bool) {
	for _, b := range all {
		if wanted(b) {
			v.add("--ro-bind", b.Source, b.Path)
		}
	}
}

func (v *invocation) links(all []rootfs.Link) {
	for _, x := range all {
		v.add("--symlink", x.Target, x.Path)
	}
}

// makeFiles adds the generated files of /etc.
func (v *invocation) makeFiles() error {
	for _, f := range rootfs.MadeFiles {
		number, err := v.data([]byte(f.Text))
		if err != nil {
			return err
		}
		v.add("--perms", "0444", "--file", number, f.Path)
	}
	return nil
}

// writable adds the few places that commands may write to, each with a limit.
func (v *invocation) writable(l box.Limits, f folders) {
	if f.tmp != "" {
		v.add("--bind", f.tmp, "/tmp", "--bind", f.shm, "/dev/shm")
	} else {
		v.add("--size", strconv.FormatInt(l.TmpBytes, 10), "--perms", "1777", "--tmpfs", "/tmp",
			"--size", strconv.FormatInt(l.ShmBytes, 10), "--perms", "1777", "--tmpfs", "/dev/shm")
	}
	v.add("--dir", "/var", "--symlink", "/tmp", "/var/tmp",
		"--bind", f.home, box.HomePath, "--bind", f.workspace, box.WorkspacePath)
}

// controls adds the pipes that report and hold the start.
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
