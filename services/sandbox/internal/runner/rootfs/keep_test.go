package rootfs

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhichMountsAreWanted(t *testing.T) {
	t.Parallel()
	paths := []string{"/proc", "/usr", "/opt/tools/bin/bwrap"}
	for at, want := range map[string]bool{
		"/proc": true, "/proc/sys/fs/binfmt_misc": true, "/usr": true, "/usr/local": true, "/usrlocal": false,
		"/opt": true, "/opt/tools": true, "/opt/to": false, "/opt/other": false, "/sys": false, "/dev/pts": false,
	} {
		if got := coversPath(at, paths); got != want {
			t.Errorf("%s: %t", at, got)
		}
	}
	list := "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n22 21 0:5 / /with\\040space rw - tmpfs none rw\n23 21 0:6 / /sys rw - sysfs sysfs rw\n"
	if d := cmp.Diff([]string{"/", "/sys"}, mountPoints(list)); d != "" {
		t.Error(d)
	}
}

// What is taken is taken from the stage alone.
func TestAStageKeepsFewMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a stage takes root")
	}
	thread := NewThread(0)
	defer thread.Close()
	g, err := NewStage(thread)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Keep([]string{"/proc", "/usr"}); err != nil {
		t.Fatal(err)
	}
	mounts := func() []string {
		raw, err := os.ReadFile("/proc/thread-self/mountinfo")
		if err != nil {
			t.Error(err)
		}
		return mountPoints(string(raw))
	}
	var on []string
	_ = g.Do(func() error { on = mounts(); return nil })
	for _, at := range []string{"/", "/proc", g.dir} {
		if !slices.Contains(on, at) {
			t.Errorf("the stage has no %s: %q", at, on)
		}
	}
	for _, at := range []string{"/sys", "/dev/shm", "/dev"} {
		if slices.Contains(on, at) {
			t.Errorf("the stage has %s", at)
		}
	}
	if !slices.Contains(mounts(), "/sys") {
		t.Error("the machine has lost /sys")
	}
}
