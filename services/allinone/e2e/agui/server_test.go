// Package agui speaks AG-UI with a running server: by hand, and with the official clients.
package agui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/allinone/internal/freeport"
)

var program string

// client makes the requests; each has a context with its own end.
var client = &http.Client{}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fairlead-agui-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "fairlead")
	build := exec.Command("go", "build", "-o", program, "github.com/fairlead/fairlead/services/allinone/cmd/fairlead")
	build.Stderr = os.Stderr
	code := 1
	if err = build.Run(); err == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server is a running program with the scripted model.
type server struct {
	at, dir string
	cmd     *exec.Cmd
	done    chan error
	log     bytes.Buffer
}

const config = `
session:
  providers:
    play: {kind: scripted, scenario: %q}
  agents:
    asker: {description: asks before it writes, prompt: Ask., profile: ask-writes, tools: [Read, Write, Bash, TodoWrite, AskUserQuestion]}
    lead:
      description: gives work
      prompt: Lead.
      profile: ask-writes
      tools: [Task, Write]
      subagents:
        - {name: leaf, description: writes, prompt: Write., tools: [Write]}
`

// serve runs a server until the test ends.
func serve(t *testing.T) *server {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{at: at, dir: t.TempDir()}
	scenario, err := filepath.Abs("testdata/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "config.yaml"), fmt.Appendf(nil, config, scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		if err := <-s.done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", &s.log)
		}
	})
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(program, "serve", "--config", filepath.Join(s.dir, "config.yaml"), "--http", s.at, "--grpc=", "--data", filepath.Join(s.dir, "data"))
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "FAIRLEAD_MODEL=play:agui"}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan<- error) { done <- cmd.Wait() }(s.cmd, s.done)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		if code, _ := s.call(ctx, http.MethodGet, "/v1/agui/asker/health", nil); code == http.StatusOK {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case err := <-s.done:
			s.done <- err
			t.Fatalf("the server ended at its start: %v\n%s", err, &s.log)
		case <-ctx.Done():
			t.Fatalf("the server does not start:\n%s", &s.log)
		}
	}
}

// kill ends the server without a warning.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = <-s.done //nolint:staticcheck // only the end matters
}

// call makes a request; code 0 is a server that cannot be reached.
func (s *server) call(ctx context.Context, method, path string, body any, header ...string) (code int, text string) {
	resp, err := s.open(ctx, method, path, body, header...)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(b)
}

func (s *server) open(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.at+path, in)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return client.Do(req)
}

// object is JSON.
type object = map[string]any

// frame is an event with its id.
type frame struct {
	id string
	object
}

// run makes a run and reads it, until its end or see returns false.
func (s *server) run(t *testing.T, agent string, in object, see func(frame) bool, header ...string) []frame {
	t.Helper()
	return s.read(t, http.MethodPost, "/v1/agui/"+agent, in, see, header...)
}

func (s *server) read(t *testing.T, method, path string, in any, see func(frame) bool, header ...string) (all []frame) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	resp, err := s.open(ctx, method, path, in, header...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, b)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	var f frame
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			f.id = id
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		f.object = object{}
		if err := json.Unmarshal([]byte(data), &f.object); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
		if see != nil && !see(f) {
			return all
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("the stream broke after %s: %v", kinds(all), err)
	}
	return all
}

// kinds are the types of events, those of one kind in a row written once.
func kinds(all []frame) string {
	var names []string
	for _, f := range all {
		if name := fmt.Sprint(f.object["type"]); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// said is the text that the agent says.
func said(all []frame) string { return words(all, "assistant") }

// words is the text of the messages of a role.
func words(all []frame, role string) string {
	var text strings.Builder
	now := "assistant" // the beginning of a message may lie before a cut
	for _, f := range all {
		if f.object["type"] == "TEXT_MESSAGE_START" {
			now, _ = f.object["role"].(string)
		}
		if f.object["type"] == "TEXT_MESSAGE_CONTENT" && now == role {
			text.WriteString(f.object["delta"].(string))
		}
	}
	return text.String()
}

// input is the body of a run with a user's message.
func input(thread, run, text string) object {
	return object{
		"threadId": thread, "runId": run, "protocolVersion": "1.0", "state": object{}, "tools": []any{}, "context": []any{}, "forwardedProps": object{},
		"messages": []any{object{"id": "m-" + run, "role": "user", "content": text}},
	}
}

// outcome is how a run ended.
func outcome(all []frame) object {
	o, _ := all[len(all)-1].object["outcome"].(object)
	return o
}

func jsonOf(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
