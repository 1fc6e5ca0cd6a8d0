package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T) Hierarchy {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("control groups need root")
	}
	h, err := Open(Root, fmt.Sprintf("fairlead-test/%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err != nil {
		t.Skipf("no control groups here: %v", err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestGroupCountsAndKillsItsMemoryHog(t *testing.T) {
	h := open(t)
	g, err := h.New("hog", Limits{MemoryBytes: 32 << 20, Processes: 50, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	// The shell waits for a line, so that it eats only after it was moved.
	cmd := exec.Command("sh", "-c", "read x; head -c 200000000 /dev/zero | tail > /dev/null; exit 3")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	u := g.Usage()
	if u.OOMKills < 1 || u.CPU <= 0 {
		t.Errorf("usage %+v, want a kill and processor time", u)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

func TestSweepKillsWhatAnEarlierRunLeft(t *testing.T) {
	tests := []struct {
		name string
		left func(Group) error
	}{
		{"running", func(Group) error { return nil }},
		{"frozen", func(g Group) error { return g.Freeze(t.Context()) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t)
			g, err := h.New("left", Limits{Processes: 10})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sleep", "600")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if err := errors.Join(g.Add(cmd.Process.Pid), tt.left(g)); err != nil {
				t.Fatal(err)
			}
			if err := h.Sweep(); err != nil {
				t.Fatal(err, g.Thaw())
			}
			if err := <-ended; err == nil {
				t.Error("the process ended by itself")
			}
		})
	}
}

// TestVersion2WritesItsFiles uses a plain folder in place of the kernel's, which
// shows names and values but not their effect.
func TestVersion2WritesItsFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"", "a", "a/b", "a/b/one", "a/b/one/main", "a/b/one/sub"} {
		path := filepath.Join(root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "cgroup.controllers"), []byte("cpu io memory pids\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := openV2(root, "0::/\n", "a/b")
	if err != nil {
		t.Fatal(err)
	}
	g, err := h.New("one", Limits{MemoryBytes: 1 << 20, Processes: 7, CPUs: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Add(42); err != nil {
		t.Fatal(err)
	}
	below, err := g.Below("sub", Limits{MemoryBytes: 4096, Processes: 2, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := below.Add(43); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range []string{
		"memory.max", "pids.max", "cpu.max", "main/cgroup.procs",
		"sub/memory.max", "sub/pids.max", "sub/cgroup.procs", "sub/cpu.max",
	} {
		raw, err := os.ReadFile(filepath.Join(root, "a/b/one", f))
		if err != nil {
			t.Fatal(err)
		}
		got[f] = string(raw)
	}
	want := map[string]string{
		"memory.max": "1048576", "pids.max": "7", "cpu.max": "50000 100000", "main/cgroup.procs": "42",
		"sub/memory.max": "4096", "sub/pids.max": "2", "sub/cgroup.procs": "43",
		"sub/cpu.max": "100000 100000",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, text := range map[string]string{
		"cpu.stat": "usage_usec 1500\nuser_usec 1\nnr_throttled 3\nthrottled_usec 2500\n", "pids.events": "max 4\n", "memory.peak": "4096\n", "main/memory.events.local": "oom 3\noom_kill 2\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "a/b/one", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(Usage{CPU: 1500 * time.Microsecond, MaxMemoryBytes: 4096, OOMKills: 2}, g.Usage()); d != "" {
		t.Error(d)
	}
	counts := Counts{OOMKills: 2, Refused: 4, Throttled: 2500 * time.Microsecond}
	if d := cmp.Diff(counts, g.Counts()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Counts{OOMKills: 1, Refused: 4, Throttled: 500 * time.Microsecond}, counts.Since(Counts{OOMKills: 1, Throttled: 2 * time.Millisecond})); d != "" {
		t.Error(d)
	}
	// Limits are set anew in place.
	if err := g.Limit(Limits{Processes: 3, CPUs: 0.25}); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]string{"pids.max": "3", "cpu.max": "25000 100000", "memory.max": "1048576"} {
		if raw, err := os.ReadFile(filepath.Join(root, "a/b/one", f)); err != nil || string(raw) != want {
			t.Errorf("%s is %q, %v", f, raw, err)
		}
	}
}

// Instances on one machine share the folder above their own, which the last of them removes.
func TestInstancesComeAndGoSideBySide(t *testing.T) {
	open(t) // or skip
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 100 {
				h, err := Open(Root, fmt.Sprintf("fairlead-side-test/%d", i))
				if err == nil {
					err = h.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestMissingControllersAreNamed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if _, err := openV1(root, "a"); err == nil {
		t.Error("version 1 opened without controllers")
	}
	if err := os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte("hugetlb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openV2(root, "0::/\n", "a"); err == nil {
		t.Error("version 2 opened without controllers")
	}
}

func TestACommandsGroupIsKilledWithoutItsSandbox(t *testing.T) {
	h := open(t)
	g, err := h.New("box", Limits{Processes: 100})
	if err != nil {
		t.Fatal(err)
	}
	below, err := g.Below("one", Limits{Processes: 50})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[Group]chan error{}
	for _, in := range []Group{g, below} {
		// The shell waits for a line, so that it forks only after it was moved.
		cmd := exec.Command("sh", "-c", "read x; sleep 600 & sleep 600 & echo forked; wait")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := in.Add(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if _, err := stdin.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 7)); err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		ends[in] = end
		go func() { end <- cmd.Wait() }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := g.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := below.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ends[below]; err == nil {
		t.Error("the command ended by itself")
	}
	if err := below.Remove(); err != nil {
		t.Error(err)
	}
	if n := len(g.Pids()); n != 3 {
		t.Errorf("%d processes are left in the sandbox's group, not 3", n)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if err := <-ends[g]; err == nil {
		t.Error("the sandbox ended by itself")
	}
}

func TestAGroupCountsWhatItsLimitsRefuse(t *testing.T) {
	h := open(t)
	g, err := h.New("counts", Limits{Processes: 50, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}()
	below, err := g.Below("one", Limits{Processes: 50, CPUs: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	if err := below.Limit(Limits{Processes: 2}); err != nil {
		t.Fatal(err)
	}
	before := below.Counts()
	cmd := exec.Command("sh", "-c", "read x; (sleep 1 & sleep 1 & sleep 1) 2>/dev/null; timeout 1 sh -c 'while :; do :; done'; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := below.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := below.Counts().Since(before); got.Refused == 0 || got.Throttled == 0 {
		t.Errorf("counted %+v", got)
	}
	if err := below.Remove(); err != nil {
		t.Error(err)
	}
}
