// Package e2e runs the same tests against the programs as users run them: all
// in one process, and four processes that find each other by configuration; on
// SQLite and on Postgres.
package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/services/allinone/internal/freeport"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/pg/pgtest"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// programs is where TestMain has put the binaries.
var programs string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "fairlead-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs = dir
	const services = "github.com/fairlead/fairlead/services/"
	build := exec.Command("go", "build", "-o", dir+"/", services+"allinone/cmd/fairlead",
		services+"session/cmd/session", services+"tools/cmd/tools", services+"sandbox/cmd/sandbox", services+"gateway/cmd/gateway")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return 0, fmt.Errorf("build the programs: %w", err)
	}
	prove.SideBySide(4) // they wait for turns and for servers to start
	return m.Run(), nil
}

// system is a running Fairlead.
type system struct {
	http, grpc string // addresses
	toolsGRPC  string // the public listener of tools; of all in one, the same as grpc
	options    options
	processes  []*process
}

type options struct {
	four     bool   // four processes
	database string // Postgres; empty: SQLite
	data     string
	scenario string   // file of the provider play
	env      []string // more of it
	agents   string   // further agents, as YAML
	sandbox  string   // configuration of the sandbox service, as YAML
	tools    string   // configuration of the tools service, as YAML
	files    string   // the store of users' files
	addrs    map[string]string
}

type process struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
	done chan error
}

// shapes runs a test in the four ways in which the programs run. `make test` leaves two of them to `make prove`: each
// program shape and each store is in the other two.
func shapes(t *testing.T, test func(t *testing.T, o options)) {
	eachShape(t, func(four, postgres bool) bool { return four == postgres || !testing.Short() }, test)
}

// everyShape runs a test in all four ways, also in `make test`.
func everyShape(t *testing.T, test func(t *testing.T, o options)) {
	eachShape(t, func(bool, bool) bool { return true }, test)
}

func eachShape(t *testing.T, wanted func(four, postgres bool) bool, test func(t *testing.T, o options)) {
	for _, four := range []bool{false, true} {
		for _, postgres := range []bool{false, true} {
			if !wanted(four, postgres) {
				continue
			}
			name := map[bool]string{false: "all in one", true: "four processes"}[four] + " on " + map[bool]string{false: "SQLite", true: "Postgres"}[postgres]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o := options{four: four}
				if postgres {
					o.database = pgtest.New(t)
				}
				test(t, o)
			})
		}
	}
}

// start runs a system until the test ends, and returns when it is ready.
func start(t *testing.T, o options) *system {
	t.Helper()
	s := launch(t, o)
	s.waitReady(t)
	return s
}

// launch runs a system that is not ready yet.
func launch(t *testing.T, o options) *system {
	t.Helper()
	if o.data == "" {
		o.data = sandboxDir(t)
	}
	if o.scenario == "" {
		o.scenario = filepath.Join("testdata", "scenario.yaml")
	}
	scenario, err := filepath.Abs(o.scenario)
	if err != nil {
		t.Fatal(err)
	}
	o.scenario = scenario
	if o.addrs == nil {
		o.addrs = map[string]string{}
		for _, name := range []string{"http", "session", "tools", "session-peer", "tools-peer", "sandbox-peer", "session-ops", "tools-ops", "sandbox-ops"} {
			o.addrs[name] = freeAddress(t)
		}
	}
	s := &system{http: o.addrs["http"], grpc: o.addrs["session"], toolsGRPC: o.addrs["session"], options: o}
	t.Cleanup(func() { s.stop(t) })
	if o.four {
		s.toolsGRPC = o.addrs["tools"]
		s.startFour(t)
	} else {
		s.startOne(t)
	}
	return s
}

func (s *system) startOne(t *testing.T) {
	o := s.options
	text := "session:\n" + indent(s.sessionConfig())
	if o.sandbox != "" {
		text += "sandbox:\n" + indent(o.sandbox)
	}
	if o.tools != "" {
		text += "tools:\n" + indent(o.tools)
	}
	config := writeConfig(t, text)
	s.spawn(t, "fairlead", []string{"serve", "--config", config, "--http", o.addrs["http"], "--grpc", o.addrs["session"], "--data", o.data})
}

func (s *system) startFour(t *testing.T) {
	a := s.options.addrs
	data := func(service string) string { return filepath.Join(s.options.data, service) }
	s.spawn(t, "sandbox", []string{"--peer", a["sandbox-peer"], "--ops", a["sandbox-ops"], "--data", data("sandbox"), "--config", writeConfig(t, s.options.sandbox)})
	s.spawn(t, "tools", []string{"--public", a["tools"], "--peer", a["tools-peer"], "--ops", a["tools-ops"], "--data", data("tools"), "--sandbox", a["sandbox-peer"],
		"--session", a["session-peer"], "--config", writeConfig(t, s.options.tools)})
	s.spawn(t, "session", []string{"--public", a["session"], "--peer", a["session-peer"], "--ops", a["session-ops"], "--data", data("session"),
		"--sandbox", a["sandbox-peer"], "--tools", a["tools-peer"], "--config", writeConfig(t, s.sessionConfig())})
	s.spawn(t, "gateway", []string{"--public=", "--http", a["http"], "--session", a["session-peer"], "--tools", a["tools-peer"]})
}

// sessionConfig sets up the provider play, whose model plays the scenario.
func (s *system) sessionConfig() string {
	return fmt.Sprintf(`
providers:
  play: {kind: scripted, scenario: %q}
agents:
  asker: {description: asks before it writes, prompt: Ask., profile: ask-writes, tools: [Read, Write, Bash]}
%s
files: {store: %q}
`, s.options.scenario, s.options.agents, s.options.files)
}

// spawn starts a program; its log is a file that a failed test shows.
func (s *system) spawn(t *testing.T, name string, args []string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(programs, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "FAIRLEAD_MODEL=play:" + scenarioName}, s.options.env...)
	if name != "fairlead" {
		cmd.Env = append(cmd.Env, "FAIRLEAD_INTERNAL_KEY="+internalKey)
	}
	if s.options.database != "" {
		cmd.Env = append(cmd.Env, "FAIRLEAD_DATABASE_URL="+s.options.database)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	s.processes = append(s.processes, p)
}

// internalKey is the key of four processes.
var internalKey = base64.StdEncoding.EncodeToString(make([]byte, internaltoken.SeedSize))

// dialPeer connects to a peer listener of four processes, as a service.
func dialPeer(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	keys, err := auth.Config{InternalKey: config.Secret(internalKey)}.Keys()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(address, rpc.WithKeys(keys), rpc.WithFallback(principal.Service("default", "default")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// scenarioName is the name in testdata/scenario.yaml.
const scenarioName = "e2e"

// stop ends the programs as an operator would, the gateway first, and shows
// their logs when the test has failed.
func (s *system) stop(t *testing.T) {
	t.Helper()
	for i := len(s.processes) - 1; i >= 0; i-- {
		p := s.processes[i]
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-p.done:
			if err != nil {
				t.Errorf("%s ended with %v", p.name, err)
			}
		case <-time.After(20 * time.Second):
			_ = p.cmd.Process.Kill()
			_ = <-p.done //nolint:staticcheck // only the end matters
			t.Errorf("%s did not stop within 20 s of SIGTERM", p.name)
		}
	}
	s.show(t)
	s.processes = nil
}

// kill ends the programs without a warning.
func (s *system) kill() {
	for _, p := range s.processes {
		_ = p.cmd.Process.Kill()
		_ = <-p.done //nolint:staticcheck // only the end matters
		_ = p.log.Close()
	}
	s.processes = nil
}

func (s *system) show(t *testing.T) {
	for _, p := range s.processes {
		_ = p.log.Close()
		if text, err := os.ReadFile(p.log.Name()); err == nil && t.Failed() {
			t.Logf("log of %s:\n%s", p.name, tail(string(text), 6000))
		}
	}
}

// restart starts the system again on the same data and addresses.
func (s *system) restart(t *testing.T) *system {
	t.Helper()
	return start(t, s.options)
}

// waitReady waits until the gateway says that all is ready, and the sandbox service, too, where
// it is a process of its own: others are ready without it.
func (s *system) waitReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx, "http://"+s.http+"/readyz")
		for _, ops := range []string{"sandbox-ops", "tools-ops", "session-ops"} { // the gateway asks session alone
			if err == nil && s.options.four {
				err = ready(ctx, "http://"+s.options.addrs[ops]+"/readyz")
			}
		}
		for _, p := range s.processes {
			select {
			case e := <-p.done:
				p.done <- e
				t.Fatalf("%s ended at its start: %v", p.name, e)
			default:
			}
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("not ready in time: %v", err)
		}
		pause(ctx)
	}
}

func ready(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// pause waits a moment before a program in another process is asked again.
func pause(ctx context.Context) {
	timer := time.NewTimer(30 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// freeAddress is a loopback address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// sandboxDir is a data directory that other users can pass through, as the uids
// of sandboxes have to.
func sandboxDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fairlead-data-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the data directory cannot be removed: %v", err)
		}
	})
	return dir
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

func tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return "…" + text[len(text)-n:]
}
