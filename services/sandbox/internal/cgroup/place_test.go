package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestThePlaceIsTheGroupThatWasGiven uses plain folders in place of the kernel's.
func TestThePlaceIsTheGroupThatWasGiven(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		self       string
		typed      bool   // the root is not the machine's
		delegated  string // by systemd
		others     bool   // it belongs to another service
		want       string
		wantsGiven bool
	}{
		{name: "a machine without a service manager", self: "0::/", want: ""},
		{name: "a login, which was given nothing", self: "0::/user.slice/session-1.scope", want: ""},
		{name: "a unit with Delegate=yes", self: "0::/system.slice/one.service", delegated: "system.slice/one.service", want: "system.slice/one.service", wantsGiven: true},
		{name: "a unit with DelegateSubgroup=", self: "0::/system.slice/one.service/main", delegated: "system.slice/one.service", want: "system.slice/one.service", wantsGiven: true},
		{name: "below a user's service manager", self: "0::/user@7.service/app.slice/x.scope", delegated: "user@7.service", want: ""},
		{name: "in another user's unit", self: "0::/one.service", delegated: "one.service", others: true, want: ""},
		{name: "a container", self: "0::/", typed: true, want: "", wantsGiven: true},
		{name: "a container, out of the way already", self: "0::/fairlead-service", typed: true, want: "", wantsGiven: true},
		{name: "a group outside of the namespace", self: "0::/../other", typed: true, want: "", wantsGiven: true},
		{name: "both versions", self: "4:memory:/x\n0::/one.service\n", delegated: "one.service", want: "one.service", wantsGiven: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for line := range strings.Lines(tt.self) {
				if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && !strings.HasPrefix(path, "/..") {
					makeFolder(t, filepath.Join(root, path), strconv.Itoa(os.Getpid()))
				}
			}
			if tt.typed {
				makeFile(t, filepath.Join(root, "cgroup.type"), "domain\n")
			}
			if tt.delegated != "" {
				dir := filepath.Join(root, tt.delegated)
				if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
					t.Skipf("the temporary folder's file system: %v", err)
				}
				if tt.others && os.Chown(dir, os.Getuid()+1, -1) != nil {
					t.Skip("it needs root")
				}
			}
			if got, want := findPlace(root, tt.self), (place{filepath.Join(root, tt.want), tt.wantsGiven}); got != want {
				t.Errorf("it is %+v, want %+v", got, want)
			}
		})
	}
}

func makeFolder(t *testing.T, dir, members string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	makeFile(t, filepath.Join(dir, "cgroup.procs"), members+"\n")
}

func makeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// where has this test binary open a hierarchy in a group, as TestTheServiceMakesRoom runs it.
const where = "FAIRLEAD_TEST_CGROUP"

func TestOpenInAGroup(t *testing.T) {
	prefix := os.Getenv(where)
	if prefix == "" {
		t.Skip("runs in a process of its own")
	}
	for range 2 { // the second time it is out of the way already
		h, err := Open(Root, prefix)
		if err != nil {
			fmt.Println("SAYS", err)
			return
		}
		g, err := h.New("one", Limits{MemoryBytes: 64 << 20, Processes: 10, CPUs: 1})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := g.Add(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(g.Remove(), h.Close()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		fmt.Println("SAYS", h.Below())
	}
}

// TestTheServiceMakesRoom has it run in groups as service managers and containers give
// them, with another process in each.
func TestTheServiceMakesRoom(t *testing.T) {
	if os.Getuid() != 0 || !isV2(Root) {
		t.Skip("it needs root and control groups of version 2")
	}
	if findPlace(Root, "").delegated {
		t.Skip("it needs the machine's own root")
	}
	if err := enable(Root); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		name      string
		delegated bool
		enter     string // becomes the program that is appended
		want      func(group string) string
		moves     bool
	}{
		{name: "a group that was not given", enter: "exec", want: func(string) string { return "/" }},
		{name: "a unit with Delegate=yes", delegated: true, enter: "exec", want: func(group string) string { return "/" + group }, moves: true},
		{name: "a container", enter: `exec unshare -C -m sh -ec 'umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$0" "$@"'`, want: func(string) string { return "/" }, moves: true},
		{
			name: "a container that may not", enter: `exec unshare -C -m sh -ec 'umount /sys/fs/cgroup; mount -r -t cgroup2 none /sys/fs/cgroup; exec "$0" "$@"'`,
			want: func(string) string { return "delegate controllers" },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			group := fmt.Sprintf("fairlead-test-place-%d-%d", os.Getpid(), i)
			dir := filepath.Join(Root, group)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := removeGroup(dir); err != nil {
					t.Error(err)
				}
			})
			if tt.delegated {
				if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
					t.Fatal(err)
				}
			}
			other := exec.Command("sleep", "600")
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
			if err := write(dir, "cgroup.procs", strconv.Itoa(other.Process.Pid)); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-ec", `echo $$ > "$0/cgroup.procs"; `+tt.enter+` "$@"`, dir, self, "-test.run=^TestOpenInAGroup$", "-test.v")
			cmd.Env = append(os.Environ(), where+"=fairlead-test-place/"+group)
			out, err := cmd.CombinedOutput()
			if !strings.Contains(string(out), "SAYS "+tt.want(group)) || err != nil {
				t.Errorf("want %q: %v\n%s", tt.want(group), err, out)
			}
			if moved := slices.Contains(members(filepath.Join(dir, serviceGroup)), other.Process.Pid); moved != tt.moves {
				t.Errorf("the other process was moved: %v", moved)
			}
		})
	}
}
