package integration

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/runner/runnertest"
)

// attacksTable is where TestAttacks writes what came of each attack: a table in
// Markdown.
var attacksTable = flag.String("attacks", "", "file to which the table of attacks is appended")

// attackerProgram names the compiled attacker, for tests that run as another user.
const attackerProgram = "FAIRLEAD_TEST_ATTACKER"

// driver is one way to isolate commands.
type driver struct {
	name  string
	level string
	root  bool // whether it needs root
	// program is one that it needs beside bubblewrap. CI has it, unless that is left out.
	program string
	leftOut bool
	// open changes the configuration so that it is this driver's.
	open func(*sandbox.Config)
	// again is the driver for one more service, where each needs its own; nil: any may have it.
	again func(t *testing.T) driver
}

// gVisor is the driver oci with gVisor's runtime. There is a kernel of its own around the
// attackers: what is safe there often has another name, and the end of init ends it alone.
const gVisor = "oci gvisor"

// drivers are those that are attacked. What isolates nothing is not among them: to
// attack it would be to attack the machine that the tests run on.
var drivers = []driver{
	{name: "bubblewrap", level: sandbox.LevelFull, root: true},
	{name: "bubblewrap", level: sandbox.LevelBasic},
	{name: "oci", level: sandbox.LevelFull, root: true, program: "runc", open: func(c *sandbox.Config) { c.Driver, c.OCI.Runtime = sandbox.DriverOCI, "runc" }},
	{name: "oci crun", level: sandbox.LevelFull, root: true, program: "crun", leftOut: true, open: func(c *sandbox.Config) {
		c.Driver, c.OCI.Runtime = sandbox.DriverOCI, runnertest.Crun("../../../deploy/crun")
	}},
	{name: gVisor, level: sandbox.LevelFull, root: true, program: "runsc", leftOut: true, open: func(c *sandbox.Config) { c.Driver, c.OCI.Runtime = sandbox.DriverOCI, "runsc" }},
}

func (d driver) String() string { return d.name + " " + d.level }

// eachDriver runs a test against every driver that this machine and user can run.
func eachDriver(t *testing.T, test func(t *testing.T, d driver)) {
	for _, d := range drivers {
		d.run(t, test)
	}
}

// run runs a test against the driver, or skips it where the machine or the user cannot run that.
func (d driver) run(t *testing.T, test func(t *testing.T, d driver)) {
	t.Run(strings.ReplaceAll(d.String(), " ", "/"), func(t *testing.T) {
		if d.program != "" {
			prove.Only(t, d.name+" is not the default driver")
		}
		if d.root && os.Getuid() != 0 {
			t.Skip("it needs root")
		}
		if _, err := exec.LookPath(d.program); d.program != "" && err != nil && (d.leftOut || os.Getenv("CI") == "") {
			t.Skip("it needs " + d.program)
		}
		test(t, d)
	})
}

// start starts a service by the driver, with a workspace.
func (d driver) start(t *testing.T, change ...func(*sandbox.Config)) *client {
	t.Helper()
	if d.open != nil {
		change = append(change, d.open)
	}
	return open(t, d.level, change...)
}

// asAPlainUser is where the service has no privilege.
const asAPlainUser = "as a plain user"

// attack is one thing that a command tries from inside, or by way of what commands
// leave in a workspace.
type attack struct {
	name string
	// run makes it and says what came of it.
	run func(t *testing.T, s *scene) string
	// want is a regular expression for all of what is safe to come of it.
	want  string
	amd64 bool // other processors have nothing of the kind
	// apart says that it has a service of its own, so that it can be made beside others.
	apart bool
	// unlike are other outcomes, by asAPlainUser, by driver, by its name or by level.
	unlike map[string]string
}

func (a attack) wanted(d driver) string {
	keys := []string{d.String(), d.name, d.level}
	if os.Getuid() != 0 {
		keys = append([]string{asAPlainUser}, keys...)
	}
	for _, key := range keys {
		if w, ok := a.unlike[key]; ok {
			return w
		}
	}
	return a.want
}

// category is attacks of one kind.
type category struct {
	name    string
	attacks []attack
	// busy says that it takes long, so it has a scene of its own beside that of the others.
	busy bool
}

// scene is where attacks happen: a service with the attacker's session and a
// neighbor's, on a host with things to be reached.
type scene struct {
	*client  // the attacker
	driver   driver
	neighbor *client
	watch    *watch
	host     *host
}

// attacked are limits that attacks reach quickly.
func attacked(c *sandbox.Config) {
	c.Limits.Memory, c.Limits.Processes = 2<<30, 80
	c.Limits.FileSize, c.Limits.Output, c.Limits.Flood = 8<<20, 64<<10, 8<<20
	c.Limits.WorkspaceBytes, c.Limits.WorkspaceInodes = 24<<20, 500
	c.Limits.OpenFiles = 256
}

// newScene opens a service by a driver.
func newScene(t *testing.T, d driver) *scene {
	h := newHost(t)
	s := &scene{driver: d, host: h, client: d.start(t, attacked)}
	program, err := os.ReadFile(attacker(t))
	if err != nil {
		t.Fatal(err)
	}
	other := *s.client
	other.session = "sessions/neighbor"
	s.neighbor = &other
	other.ensure(t.Context(), t)
	for _, c := range []*client{s.client, s.neighbor} {
		if _, err := c.write(t, "attacker", string(program), func(w *sandboxv1.WriteFileStart) { w.Mode = 0o755 }); err != nil {
			t.Fatal(err)
		}
	}
	s.watch = s.neighbor.settle(t)
	return s
}

// attacker builds the program that makes attacks by system call, once.
func attacker(t *testing.T) string {
	t.Helper()
	path, err := buildAttacker()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildAttacker = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(attackerProgram); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "fairlead-attacker-")
	if err != nil {
		return "", err
	}
	built.Lock()
	built.folders = append(built.folders, dir)
	built.Unlock()
	path := filepath.Join(dir, "attacker")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./attacker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the attacker: %w\n%s", err, out)
	}
	return path, os.Chmod(dir, 0o755)
})

// built are the folders of programs and the segment of shared memory that tests have made.
var built struct {
	sync.Mutex
	folders []string
	segment int
	shared  bool
}

func removeBuilt() {
	for _, dir := range built.folders {
		_ = os.RemoveAll(dir)
	}
	if built.shared {
		_, _ = unix.SysvShmCtl(built.segment, unix.IPC_RMID, nil)
	}
}

// watch talks to the neighbor's process, which reports whether anything reached it.
type watch struct {
	mu     sync.Mutex
	stream sandboxv1.ExecService_ExecClient
	lines  *bufio.Scanner
}

// neighborSecret is in the neighbor's files, memory and environment.
const neighborSecret = "the neighbor's secret"

// settle starts the process that is to be left alone.
func (c *client) settle(t *testing.T) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream := c.launch(ctx, t, &sandboxv1.ExecStart{
		Call: c.call(), Argv: []string{"./attacker", "victim", "fairlead-neighbor"}, Stdin: true, Timeout: seconds(600), Env: map[string]string{"SECRET": neighborSecret},
	})
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m, err := stream.Recv()
			if err != nil || m.GetExited() != nil {
				_ = w.CloseWithError(fmt.Errorf("the neighbor's process is gone: %v, %w", m, errors.Join(err, io.ErrUnexpectedEOF)))
				return
			}
			_, _ = w.Write(append(m.GetStdout().GetData(), m.GetStderr().GetData()...))
		}
	}()
	t.Cleanup(func() { cancel(); _ = r.Close(); <-done })
	watch := &watch{stream: stream, lines: bufio.NewScanner(r)}
	if !watch.lines.Scan() || watch.lines.Text() != "ready" {
		t.Fatalf("the neighbor: %q, %v", watch.lines.Text(), watch.lines.Err())
	}
	return watch
}

// ask has the process say how often it was reached.
func (w *watch) ask(t *testing.T) string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	send(t, w.stream, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("and?\n")}}})
	if !w.lines.Scan() {
		return fmt.Sprintf("no answer: %v", w.lines.Err())
	}
	return w.lines.Text()
}

// hostSecret is in files, in the environment and in shared memory of the host.
const hostSecret = "the host's secret"

// host holds an attacker's targets on the host. All users there can reach them.
type host struct {
	secret  string // a file
	socket  string // a Unix socket
	name    string // of an abstract Unix socket
	port    int    // of a TCP listener at loopback
	process int
	reached atomic.Int64
	null    string // whose the machine's /dev/null is, and who may use it
}

// ownerOfNull tells it as host does.
func ownerOfNull(t *testing.T) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(os.DevNull, &st); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d:%d %o", st.Uid, st.Gid, st.Mode)
}

func newHost(t *testing.T) *host {
	h := &host{name: "fairlead-host-" + rand.Text(), null: ownerOfNull(t)}
	dir, err := os.MkdirTemp("/tmp", "fairlead-host-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h.secret, h.socket = filepath.Join(dir, "secret"), filepath.Join(dir, "socket")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(h.secret, []byte(hostSecret), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, a := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", h.socket}, {"unix", "@" + h.name}} {
		l, err := net.Listen(a[0], a[1])
		if err != nil {
			t.Fatal(err)
		}
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			h.port = tcp.Port
		}
		h.serve(t, l)
	}
	process := exec.Command("sleep", "600")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	h.process = process.Process.Pid
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	shareMemory()
	return h
}

// shareMemory makes a segment of shared memory that all users of the host may read, once for all scenes.
var shareMemory = sync.OnceFunc(func() {
	id, err := unix.SysvShmGet(0x5ec2e7, 4096, 0o1666)
	built.Lock()
	defer built.Unlock()
	built.segment, built.shared = id, err == nil
})

// serve counts who connects.
func (h *host) serve(t *testing.T, l net.Listener) {
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.reached.Add(1)
			_ = c.Close()
		}
	}()
}

// fill puts the host's particulars into a script.
func (h *host) fill(script string) string {
	return strings.NewReplacer("{secret}", h.secret, "{socket}", h.socket, "{name}", h.name,
		"{port}", strconv.Itoa(h.port), "{pid}", strconv.Itoa(h.process)).Replace(script)
}

// unharmed checks what no attack may touch.
func (s *scene) unharmed(t *testing.T) {
	t.Helper()
	if got := s.watch.ask(t); got != "reached 0" {
		t.Fatalf("the neighbor: %s", got)
	}
	r, err := s.neighbor.exec(t.Context(), "echo fine", nil)
	if err != nil || r.out != "fine\n" {
		t.Errorf("the neighbor's next command: %q %q %v %v", r.out, r.err, r.ExecExited, err)
	}
	if now := ownerOfNull(t); now != s.host.null {
		t.Errorf("the machine's /dev/null was %s, and is %s", s.host.null, now)
	}
	if n := s.host.reached.Load(); n != 0 {
		t.Errorf("the host's services were reached %d times", n)
	}
	if b, err := os.ReadFile(s.host.secret); err != nil || string(b) != hostSecret {
		t.Errorf("the host's file holds %q, %v", b, err)
	}
	if err := unix.Kill(s.host.process, 0); err != nil {
		t.Errorf("the host's process: %v", err)
	}
}

// shell is an attack by a script; what it prints is what came of it, and how it
// ended, unless it exited.
func shell(script string, change ...func(*sandboxv1.ExecStart)) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		r, err := s.exec(t.Context(), s.host.fill(script), func(x *sandboxv1.ExecStart) {
			for _, f := range change {
				f(x)
			}
		})
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(strings.ReplaceAll(strings.TrimSpace(r.out), "\n", "; ") + " " + r.end())
	}
}

// end says how a command ended that did not exit by itself.
func (r result) end() string {
	switch r.GetReason() {
	case sandboxv1.ExitReason_EXIT_REASON_EXITED:
		return ""
	case sandboxv1.ExitReason_EXIT_REASON_SIGNALED:
		return fmt.Sprintf("SIGNALED %d", r.GetSignal())
	}
	return strings.TrimPrefix(r.GetReason().String(), "EXIT_REASON_")
}

// program is an attack by the attacker program.
func program(arguments string) func(t *testing.T, s *scene) string {
	return shell("exec ./attacker " + arguments + " 2>&1")
}

// row is what came of an attack by each driver.
type row struct {
	category, attack string
	outcomes         map[string]string
}

// table gathers rows, and shows them in the order of the attacks.
type table struct {
	mu   sync.Mutex
	rows []*row
}

func (b *table) add(d driver, c category, a attack, outcome string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rows {
		if r.category == c.name && r.attack == a.name {
			r.outcomes[d.String()] = outcome
			return
		}
	}
	b.rows = append(b.rows, &row{c.name, a.name, map[string]string{d.String(): outcome}})
}

// write appends the table to the file that was asked for.
func (b *table) write(t *testing.T) {
	if *attacksTable == "" {
		return
	}
	columns := b.columns()
	slices.SortFunc(b.rows, func(x, y *row) int { return cmp.Compare(x.place(), y.place()) })
	var text strings.Builder
	fmt.Fprintf(&text, "As user %d: %d attacks.\n\n| kind | attack | %s |\n|%s\n", os.Getuid(), len(b.rows), strings.Join(columns, " | "), strings.Repeat(" --- |", 2+len(columns)))
	for _, r := range b.rows {
		fmt.Fprintf(&text, "| %s | %s |", r.category, r.attack)
		for _, c := range columns {
			fmt.Fprintf(&text, " %s |", cell(r.outcomes[c]))
		}
		text.WriteString("\n")
	}
	if err := appendTo(*attacksTable, text.String()+"\n"); err != nil {
		t.Error(err)
	}
}

// place is where the attack is among all of them.
func (r *row) place() (n int) {
	for _, c := range attacks {
		for _, a := range c.attacks {
			if c.name == r.category && a.name == r.attack {
				return n
			}
			n++
		}
	}
	return n
}

// columns are the drivers that were attacked, in the order of their names.
func (b *table) columns() []string {
	all := map[string]bool{}
	for _, r := range b.rows {
		for d := range r.outcomes {
			all[d] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func appendTo(name, text string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// cell is an outcome in one line that a table can hold.
func cell(s string) string {
	s = strings.NewReplacer("|", "\\|", "\n", " ", "`", "'").Replace(s)
	if len(s) > 90 {
		s = s[:90] + "…"
	}
	return s
}

// assault makes all attacks of a category, those apart beside the others, and records what comes of them.
func (s *scene) assault(t *testing.T, b *table, c category) {
	t.Helper()
	var both sync.WaitGroup
	for _, apart := range []bool{false, true} {
		both.Go(func() {
			for _, a := range c.attacks {
				if a.apart == apart {
					t.Run(a.name, func(t *testing.T) { s.judge(t, b, c, a) })
				}
			}
		})
	}
	both.Wait()
}

// judge runs an attack and compares what came of it with what is safe.
func (s *scene) judge(t *testing.T, b *table, c category, a attack) {
	if a.amd64 && runtime.GOARCH != "amd64" {
		t.Skip("this processor has nothing of the kind")
	}
	got := a.run(t, s)
	b.add(s.driver, c, a, got)
	if want := a.wanted(s.driver); !regexp.MustCompile("^(?s:" + want + ")$").MatchString(got) {
		t.Errorf("it came to\n\t%s\nand not to\n\t%s", got, want)
	}
	s.unharmed(t)
}
