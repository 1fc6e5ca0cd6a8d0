package integration

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/plainuser"
	"github.com/fairlead/fairlead/services/sandbox/internal/seccomp"
)

// startHere has this test binary start a service, with a driver, a level and a data directory, as
// TestASmallPlaceIsToldWithItsCure runs it.
const startHere = "FAIRLEAD_TEST_START_HERE"

func TestStartHere(t *testing.T) {
	words := strings.Fields(os.Getenv(startHere))
	if len(words) != 3 {
		t.Skip("runs in a process of its own")
	}
	c := configuration(t, words[1])
	c.Driver, c.Data, c.OCI.State = words[0], words[2], words[2]+"/oci"
	s, err := sandbox.New(t.Context(), c, sandbox.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println("REFUSED", err)
		return
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	fmt.Println("STARTED")
}

// Parts of small places, as the beginning of a shell's command.
const (
	asNobody    = `set -- setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; `
	without     = `set -- setpriv --inh-caps=-all --bounding-set=%s "$@"; `
	coveredProc = `mount -t tmpfs none /proc/scsi 2>/dev/null || mount -t tmpfs none /proc/fs; mount --bind /dev/null /proc/keys; `
	noUsers     = `echo 0 > /proc/sys/user/max_user_namespaces; `
	readOnly    = `mount --make-rprivate /; for m in $(grep -E " cgroup2? " /proc/mounts | cut -d" " -f2); do mount -o remount,ro,bind $m; done; `
	noGroups    = `umount -R /sys/fs/cgroup; `
	filtered    = `set -- bwrap --dev-bind / / --cap-add ALL --seccomp 3 -- "$@"; `
	noMemory    = `echo 2 > /proc/sys/vm/memfd_noexec; `
)

// TestASmallPlaceIsToldWithItsCure starts a service in places that lack something, as containers and
// hardened machines do. It refuses, and says all that is missing with what to do; it never takes less.
func TestASmallPlaceIsToldWithItsCure(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make such places")
	}
	const capabilities, plain, unmask, filter = "`--privileged`", "`docker run --user 10001`", "`--security-opt systempaths=unconfined`", "`--security-opt seccomp=unconfined`"
	const groups, users, basic = "control groups that the service may write to", "`sysctl -w user.max_user_namespaces=15000`", "`--sandbox.level=basic`"
	mounts := uintptr(syscall.CLONE_NEWNS)
	for _, tt := range []struct {
		name          string
		driver, level string
		flags         uintptr
		place         string
		want          []string // none: it starts
	}{
		{name: "nothing is missing", level: "full", flags: mounts},
		{name: "nothing is missing for a plain user", level: "basic", flags: mounts, place: asNobody},
		{name: "no capabilities", level: "full", place: fmt.Sprintf(without, "-all"), want: []string{"CAP_SYS_ADMIN", "CAP_KILL", capabilities, plain, groups, basic}},
		{name: "no capabilities at level basic", level: "basic", place: fmt.Sprintf(without, "-all"), want: []string{"CAP_SYS_ADMIN", capabilities, plain}},
		{name: "no capabilities for a runtime", driver: "oci", level: "full", place: fmt.Sprintf(without, "-all"), want: []string{"CAP_SYS_ADMIN", capabilities, plain}},
		{name: "no capability to end a sandbox", level: "full", place: fmt.Sprintf(without, "-kill"), want: []string{"CAP_KILL", capabilities}},
		{name: "no capability to see into one", level: "full", place: fmt.Sprintf(without, "-sys_ptrace"), want: []string{"CAP_SYS_PTRACE"}},
		{name: "parts of /proc are covered", level: "full", flags: mounts, place: coveredProc, want: []string{"/proc/keys", unmask}},
		{name: "the same at level basic", level: "basic", flags: mounts, place: coveredProc, want: []string{"/proc/keys", unmask}},
		{name: "the same as a plain user", level: "basic", flags: mounts, place: coveredProc + asNobody, want: []string{"/proc/keys", unmask}},
		{name: "the same for a runtime", driver: "oci", level: "full", flags: mounts, place: coveredProc, want: []string{"/proc/keys", unmask}},
		{name: "no user namespaces", level: "full", flags: syscall.CLONE_NEWUSER, place: noUsers, want: []string{users}},
		{name: "no user namespaces for a plain user", level: "basic", flags: syscall.CLONE_NEWUSER, place: noUsers + asNobody, want: []string{users}},
		{name: "no user namespaces for a runtime", driver: "oci", level: "full", flags: syscall.CLONE_NEWUSER, place: noUsers, want: []string{users}},
		{name: "control groups are read-only", level: "full", flags: mounts, place: readOnly, want: []string{groups, "read-only file system", basic, "`--cgroupns=private`"}},
		{name: "the same at level basic", level: "basic", flags: mounts, place: readOnly},
		{name: "control groups are not mounted", level: "full", flags: mounts, place: noGroups, want: []string{groups, basic}},
		{name: "a filter refuses mounts and namespaces", level: "full", place: filtered, want: []string{filter}},
		{name: "the same as a plain user", level: "basic", place: filtered + asNobody, want: []string{filter}},
		{name: "no programs in memory", level: "full", flags: mounts | syscall.CLONE_NEWPID, place: "mount -t proc proc /proc; " + noMemory, want: []string{"`sysctl -w vm.memfd_noexec=1`"}},
		{name: "several things at once", level: "full", flags: mounts, place: coveredProc + readOnly + fmt.Sprintf(without, "-kill"), want: []string{"CAP_KILL", groups, unmask}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.driver == "" {
				tt.driver = "bubblewrap"
			} else if _, err := exec.LookPath("runc"); err != nil {
				t.Skip("runc is not here")
			}
			said := startIn(t, tt.driver+" "+tt.level, tt.flags, tt.place)
			if len(tt.want) == 0 {
				if !strings.Contains(said, "STARTED") {
					t.Error(said)
				}
				return
			}
			if strings.Contains(said, "STARTED") || !strings.Contains(said, "REFUSED") {
				t.Fatalf("it did not refuse: %s", said)
			}
			for _, w := range tt.want {
				if !strings.Contains(said, w) {
					t.Errorf("%q is not in: %s", w, said)
				}
			}
		})
	}
}

// startIn runs TestStartHere in a place that a shell makes, and returns what it says.
func startIn(t *testing.T, how string, flags uintptr, place string) string {
	t.Helper()
	dir := plainuser.Folder(t)
	program := filepath.Join(filepath.Dir(dir), "package.test")
	if out, err := exec.CommandContext(t.Context(), "cp", fmt.Sprintf("/proc/%d/exe", os.Getpid()), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	owner := 0
	if strings.Contains(place, asNobody) {
		owner = 65534
	}
	filter, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(seccomp.Filter())
	if err := errors.Join(err, w.Close(), os.Chown(dir, owner, owner)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = filter.Close() }()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", place+`exec "$@"`, "sh", program, "-test.run=^TestStartHere$", "-test.v")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "GORACE=atexit_sleep_ms=0", startHere + "=" + how + " " + filepath.Join(dir, "data")}
	cmd.ExtraFiles = []*os.File{filter}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER != 0 {
		all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 20}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = all, all, true
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	return string(out)
}
