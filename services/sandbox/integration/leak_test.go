package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox"
)

// leakRounds says how often TestNothingLeaks makes a workspace, runs commands in it
// and deletes it; `make leaks ROUNDS=10000` sets it.
const leakRounds = "FAIRLEAD_LEAK_ROUNDS"

// footprint is what could be left on the machine.
type footprint struct {
	processes, mounts, groups, files, descriptors, goroutines, threads int
	heap, resident                                                     int64 // bytes
}

func (f footprint) String() string {
	return fmt.Sprintf("%d processes, %d mounts, %d control groups, %d files, %d descriptors, %d goroutines, %d threads, heap %.1f MiB, resident %.1f MiB",
		f.processes, f.mounts, f.groups, f.files, f.descriptors, f.goroutines, f.threads, float64(f.heap)/(1<<20), float64(f.resident)/(1<<20))
}

// machine is what must be as before, once all is done.
func (f footprint) machine() footprint {
	return footprint{processes: f.processes, mounts: f.mounts, groups: f.groups, files: f.files}
}

// settlePatience is how long what the service does by itself may take to be done: it deletes, and
// makes sandboxes ahead, after it has answered.
const settlePatience = 30 * time.Second

// settled takes footprints until one is as before, or the same for a while.
func settled(t *testing.T, cfg sandbox.Config, before *footprint) footprint {
	t.Helper()
	const looks = 20 // two seconds
	last, same := takeFootprint(t, cfg), 0
	look, patience := time.NewTicker(100*time.Millisecond), time.NewTimer(settlePatience)
	defer look.Stop()
	defer patience.Stop()
	for {
		if before != nil && last.machine() == before.machine() || before == nil && same == looks {
			return last
		}
		select {
		case <-look.C:
		case <-patience.C:
			return last
		}
		next := takeFootprint(t, cfg)
		if same++; next.machine() != last.machine() {
			same = 0
		}
		last = next
	}
}

// TestNothingLeaks makes and deletes workspaces, with commands that end in every
// way, and compares what is on the machine before and after.
func TestNothingLeaks(t *testing.T) {
	rounds := 40
	if n, err := strconv.Atoi(os.Getenv(leakRounds)); err == nil {
		rounds = n
	} else {
		prove.Only(t, "it makes sandboxes many times over")
	}
	eachDriver(t, func(t *testing.T, d driver) {
		cfg := configuration(t, d.level)
		if d.open != nil {
			d.open(&cfg)
		}
		cfg.CgroupParent = "fairlead-leak-test-" + d.name + "-" + d.level
		before, after := nothingLeaks(t, cfg, rounds)
		// Each of these has some play, which does not grow with the rounds.
		if after.goroutines > before.goroutines+20 || after.threads > before.threads+20 {
			t.Errorf("the service holds more than before")
		}
		if after.heap > before.heap+(8<<20) || !raceDetector && after.resident > before.resident+(48<<20) {
			t.Errorf("the service has grown")
		}
	})
	t.Run(inPods, func(t *testing.T) {
		if os.Getenv(leakRounds) == "" {
			t.Skip("it takes long: make leaks runs it")
		}
		change := pods(t)
		cfg := configuration(t, levelPod)
		change(&cfg)
		cfg.CgroupParent = "fairlead-leak-test-pods"
		nothingLeaks(t, cfg, rounds) // memory is what the API server of the tests remembers
	})
}

// nothingLeaks plays the rounds, and compares what is left on the machine, and open in the service.
func nothingLeaks(t *testing.T, cfg sandbox.Config, rounds int) (before, after footprint) {
	t.Helper()
	ceiling()(&cfg)
	cfg.OCI.State = passable(t)                // only files of this test are counted
	cfg.UIDBase = 10_000_000 + os.Getpid()*200 // only processes of this test are counted
	c := start(t, cfg)
	const workers = 4
	play := func(rounds int) {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := w; i < rounds; i += workers {
					leakRound(t, c, i)
				}
			})
		}
		wg.Wait()
	}
	play(2 * workers * len(leakKinds)) // threads, pools and buffers that stay
	before = settled(t, cfg, nil)
	begun := time.Now()
	play(rounds)
	t.Logf("%d rounds in %v", rounds, time.Since(begun).Round(time.Second))
	after = settled(t, cfg, &before)
	t.Logf("before: %s", before)
	t.Logf("after:  %s", after)
	if after.machine() != before.machine() {
		t.Errorf("the machine is not as it was")
	}
	if after.descriptors > before.descriptors+20 { // there is some play, which does not grow with the rounds
		t.Errorf("the service has more open than before")
	}
	return before, after
}

// leakKinds are commands that end, or leave something, in different ways.
var leakKinds = []func(*sandboxv1.ExecStart){
	func(s *sandboxv1.ExecStart) { s.Argv = []string{"true"} },
	func(s *sandboxv1.ExecStart) { s.Argv = []string{"bash", "-c", "setsid sleep 600 & exit 3"} },
	func(s *sandboxv1.ExecStart) { s.Argv = []string{"no-such-program"} },
	func(s *sandboxv1.ExecStart) { s.Argv, s.Timeout = []string{"sleep", "600"}, seconds(0.02) },
	func(s *sandboxv1.ExecStart) {
		s.Argv, s.Terminal = []string{"stty", "size"}, &sandboxv1.TerminalSize{Rows: 20, Columns: 50}
	},
	func(s *sandboxv1.ExecStart) {
		s.Argv, s.Limits = []string{"bash", "-c", "sleep 600 & kill -9 $$"}, &sandboxv1.ExecLimits{Processes: 20}
	},
	func(s *sandboxv1.ExecStart) { // one that is left open, one that waits to be accepted, and a request that no rule allows
		s.Argv = []string{"bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET http://192.0.2.1/ HTTP/1.1\r\nHost: x\r\n\r\n' >&3 && read -r <&3 && exec 4<>/dev/tcp/127.0.0.1/3128; kill -9 $$`}
	},
	func(s *sandboxv1.ExecStart) {
		s.Argv = []string{"bash", "-c", "mkdir -p a/b /tmp/x; head -c 300000 /dev/zero | tee a/b/c > /tmp/x/y; ln -s / link"}
	},
}

// leakRound makes a workspace, runs two commands at once, and deletes it.
func leakRound(t *testing.T, shared *client, i int) {
	c := *shared
	c.session = fmt.Sprintf("sessions/leak-%d", i%64)
	ensure := &sandboxv1.EnsureWorkspaceRequest{Call: c.call()}
	if i%2 == 0 {
		ensure.Network = &sandboxv1.NetworkPolicy{Rules: []*sandboxv1.NetworkRule{{Host: "a.example.com"}}}
	}
	if _, err := c.workspaces.EnsureWorkspace(t.Context(), ensure); err != nil {
		t.Error(err)
		return
	}
	var wg sync.WaitGroup
	for j := range 2 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel() // the client's half of the stream
			if _, err := c.exec(ctx, "", leakKinds[(i+3*j)%len(leakKinds)]); err != nil {
				t.Errorf("round %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if _, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session}); err != nil {
		t.Error(err)
	}
}

func takeFootprint(t *testing.T, cfg sandbox.Config) (f footprint) {
	t.Helper()
	f.processes = len(children(os.Getpid())) + ownedBy(cfg.UIDBase, cfg.UIDBase+cfg.UIDCount)
	tasks, err := filepath.Glob("/proc/self/task/*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	f.threads = len(tasks)
	for _, file := range tasks { // one thread sees more mounts than the others
		raw, _ := os.ReadFile(file)
		f.mounts = max(f.mounts, strings.Count(string(raw), "\n"))
	}
	f.groups = countFiles("/sys/fs/cgroup", func(path string, d fs.DirEntry) bool {
		return d.IsDir() && strings.Contains(path, "/"+cfg.CgroupParent)
	})
	all := func(string, fs.DirEntry) bool { return true }
	f.files = countFiles(cfg.Data, all) + countFiles(cfg.OCI.State, all)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	f.descriptors = len(open)
	debug.FreeOSMemory() // collects, too: what is garbage says nothing
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap, f.goroutines = int64(m.HeapAlloc), runtime.NumGoroutine()
	f.resident = statusKiB("VmRSS:") << 10
	return f
}

// passable is a folder that other users can pass through.
func passable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func statusKiB(key string) int64 {
	raw, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(raw)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return n
		}
	}
	return 0
}

func countFiles(root string, counts func(string, fs.DirEntry) bool) (n int) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && counts(path, d) {
			n++
		}
		return nil
	})
	return n
}

// ownedBy counts the processes of users from one to another: a runtime's processes have
// no parent here. Those that have ended, and for which the machine's first process has not
// waited yet, do not count.
func ownedBy(from, to int) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		raw, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil || strings.Contains(string(raw), "\nState:\tZ") {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
				if uid, _ := strconv.Atoi(strings.Fields(ids)[0]); uid >= from && uid <= to {
					n++
				}
			}
		}
	}
	return n
}

// children are the processes below one, at any depth.
func children(of int) []int {
	parents := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		parent, _ := strconv.Atoi(fields[1])
		parents[parent] = append(parents[parent], pid)
	}
	all := parents[of]
	for i := 0; i < len(all); i++ {
		all = append(all, parents[all[i]]...)
	}
	return all
}
