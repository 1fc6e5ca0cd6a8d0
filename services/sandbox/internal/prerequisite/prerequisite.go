// Package prerequisite finds out what a machine or a container lacks for sandboxes, and how to fix that. It
// is used only after a failure: it never refuses a working configuration.
package prerequisite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/cgroup"
)

// Sandboxes describes the sandboxes to make.
type Sandboxes struct {
	// Bubblewrap is the program that makes them; empty for another driver.
	Bubblewrap string
	// Groups means that control groups limit them.
	Groups bool
	// OtherUsers means that they run as other users than the service's own, which needs root. Their ids
	// begin at FirstUser, and there are Users of them.
	OtherUsers       bool
	FirstUser, Users int
}

// Advice returns a paragraph for each thing that this machine lacks: what fails, why, and what to do. It is
// empty if nothing seems to be missing.
func Advice(ctx context.Context, s Sandboxes) string {
	var all []string
	if s.OtherUsers {
		all = append(all, adviseCapabilities(), s.adviseUsers())
	}
	if s.Groups {
		all = append(all, adviseGroups())
	}
	all = append(append(all, s.adviseNamespaces(ctx)...), adviseMemoryFiles())
	var b strings.Builder
	for _, paragraph := range all {
		if paragraph != "" {
			b.WriteString("\n- " + paragraph)
		}
	}
	return b.String()
}

// needed are the capabilities without which root cannot make, see or end sandboxes of other users.
var needed = []struct {
	name string
	bit  int
}{
	{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN},
	{"CAP_CHOWN", unix.CAP_CHOWN},
	{"CAP_SETUID", unix.CAP_SETUID},
	{"CAP_SETGID", unix.CAP_SETGID},
	{"CAP_KILL", unix.CAP_KILL},
	{"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE},
	{"CAP_SYS_CHROOT", unix.CAP_SYS_CHROOT},
}

// Capabilities returns an error if this process, which is root, lacks a required capability. Without the
// capability to end a sandbox, the first sandbox would stay for ever.
func Capabilities() error {
	if len(lackingCapabilities()) > 0 {
		return errors.New("the service is root without all of root's capabilities")
	}
	return nil
}

func lackingCapabilities() []string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil
	}
	var lacking []string
	for _, c := range needed {
		if data[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			lacking = append(lacking, c.name)
		}
	}
	return lacking
}

// plainUser is the alternative without root.
const plainUser = "run the service as a user that is not root (`docker run --user 10001`; in Kubernetes `runAsUser: 10001`), which has the level `basic`"

func adviseCapabilities() string {
	lacking := lackingCapabilities()
	if len(lacking) == 0 {
		return ""
	}
	return fmt.Sprintf("The service is root without %s, so it can neither make sandboxes of other users nor end them. "+
		"Start the container with `--privileged` (in Kubernetes `securityContext: {privileged: true}`), or %s.", strings.Join(lacking, ", "), plainUser)
}

// adviseUsers is about a service that is root in a user namespace, as in a container without root.
func (s Sandboxes) adviseUsers() string {
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		raw, err := os.ReadFile(file)
		if err == nil && !mapped(string(raw), int64(s.FirstUser), int64(s.Users)) {
			return fmt.Sprintf("The service is root in a user namespace that lacks the ids %d to %d of sandboxes (%s: %s). "+
				"Set the keys `uid-base` and `uid-count` of the sandbox to ids that exist, or %s.",
				s.FirstUser, s.FirstUser+s.Users-1, file, strings.Join(strings.Fields(string(raw)), " "), plainUser)
		}
	}
	return ""
}

// mapped reports whether ids are in one line of a user namespace's map.
func mapped(text string, first, count int64) bool {
	for line := range strings.Lines(text) {
		var inside, outside, length int64
		if n, _ := fmt.Sscan(line, &inside, &outside, &length); n == 3 && inside <= first && first+count <= inside+length {
			return true
		}
	}
	return false
}

func adviseGroups() string {
	err := cgroup.Usable(cgroup.Root)
	if err == nil {
		return ""
	}
	return fmt.Sprintf("The level `full` needs control groups that the service may write to: %v. "+
		"In a container, start it with `--privileged`, and on version 2 with `--cgroupns=private`; in a unit of systemd set `Delegate=yes`. "+
		"Or choose the level `basic` (`--sandbox.level=basic`), which needs no control groups and limits less.", err)
}

// adviseMemoryFiles is about the memory file that holds a sandbox's first program.
func adviseMemoryFiles() string {
	const setting = "vm.memfd_noexec"
	raw, err := os.ReadFile("/proc/sys/vm/memfd_noexec")
	if err != nil || strings.TrimSpace(string(raw)) != "2" {
		return ""
	}
	return fmt.Sprintf("A sandbox's first program is a file in memory, which %s=2 forbids: run `sysctl -w %s=1`.", setting, setting)
}

// covers returns the mounts below a folder, except those that do not prevent a new mount of /proc.
func covers(mountinfo, folder string) []string {
	var all []string
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) > 4 && strings.HasPrefix(f[4], folder+"/") && !strings.HasPrefix(f[4], folder+"/sys/fs/") && !slices.Contains(all, f[4]) {
			all = append(all, f[4])
		}
	}
	return all
}
