package fleet

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/allinone/internal/freeport"
)

// Shape selects the Fairlead to run.
type Shape struct {
	Programs string // the directory of the programs
	Data     string // the data directory; it may hold the data of an earlier run
	Four     bool   // four processes; else all in one
	Database string // Postgres; empty: SQLite
	Model    string // the model server's URL
	// Config is the text of a configuration file of all in one.
	Config string
}

// Fairlead is a running Fairlead.
type Fairlead struct {
	URL       string // of the gateway
	GRPC      string // address of the public gRPC services, of all in one
	Processes []*Process
}

// model is what the model server is asked for.
const model = "anthropic:claude-sonnet-4-6"

// Run starts a Fairlead and waits until it is ready. Its limits are raised for the
// measurement; everything else has its default.
func Run(ctx context.Context, s Shape) (*Fairlead, error) {
	if err := os.MkdirAll(s.Data, 0o755); err != nil { // sandboxes of other users pass through
		return nil, err
	}
	f := &Fairlead{}
	var err error
	if s.Four {
		err = f.startFour(s)
	} else {
		err = f.startOne(s)
	}
	if err == nil {
		err = f.ready(ctx)
	}
	if err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// Stop ends the programs, the gateway first.
func (f *Fairlead) Stop() {
	for i := len(f.Processes) - 1; i >= 0; i-- {
		f.Processes[i].Stop()
	}
	f.Processes = nil
}

func (f *Fairlead) start(s Shape, name string, args ...string) error {
	env := []string{"FAIRLEAD_MODEL=" + model, "ANTHROPIC_API_KEY=bench", "ANTHROPIC_BASE_URL=" + s.Model}
	if s.Four {
		env = append(env, "FAIRLEAD_INTERNAL_KEY="+base64.StdEncoding.EncodeToString(make([]byte, 32))) // of a measurement, not of anybody's server
	}
	if s.Database != "" {
		env = append(env, "FAIRLEAD_DATABASE_URL="+s.Database)
	}
	p, err := Start(s.Data, name, filepath.Join(s.Programs, name), env, args...)
	if err == nil {
		f.Processes = append(f.Processes, p)
	}
	return err
}

func (f *Fairlead) startOne(s Shape) error {
	http, err := freeport.Address()
	if err != nil {
		return err
	}
	if f.GRPC, err = freeport.Address(); err != nil {
		return err
	}
	f.URL = "http://" + http
	args := []string{"serve"}
	if s.Config != "" {
		file := filepath.Join(s.Data, "fairlead.yaml")
		if err := os.WriteFile(file, []byte(s.Config), 0o600); err != nil {
			return err
		}
		args = append(args, "--config", file)
	}
	return f.start(s, "fairlead", append(args, "--http", http, "--grpc", f.GRPC, "--data", s.Data, "--session.max-sessions", "5000",
		"--gateway.max-streams", "0", "--gateway.max-streams-per-client", "0", "--gateway.max-streams-per-user", "0", "--session.limits.user.streams", "0")...)
}

func (f *Fairlead) startFour(s Shape) error {
	a := map[string]string{}
	for _, name := range []string{"http", "session", "tools", "sandbox"} {
		var err error
		if a[name], err = freeport.Address(); err != nil {
			return err
		}
	}
	f.URL = "http://" + a["http"]
	const free = "127.0.0.1:0"
	for _, p := range [][]string{
		{"sandbox", "--peer", a["sandbox"], "--ops", free},
		{"tools", "--public", free, "--peer", a["tools"], "--ops", free, "--sandbox", a["sandbox"], "--session", a["session"]},
		{"session", "--public", free, "--peer", a["session"], "--ops", free, "--sandbox", a["sandbox"], "--tools", a["tools"], "--max-sessions", "5000"},
		{"gateway", "--public=", "--http", a["http"], "--session", a["session"], "--tools", a["tools"], "--max-streams", "0", "--max-streams-per-client", "0", "--max-streams-per-user", "0"},
	} {
		args := p[1:]
		if p[0] != "gateway" {
			args = append(args, "--data", filepath.Join(s.Data, p[0]))
		}
		if err := f.start(s, p[0], args...); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until the gateway reports that all services are ready.
func (f *Fairlead) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := Get(ctx, f.URL+"/readyz")
		if err == nil {
			return nil
		}
		for _, p := range f.Processes {
			if err := p.failed(); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		}
	}
}

// CPU returns the processor time of all its processes.
func (f *Fairlead) CPU() time.Duration {
	total := time.Duration(0)
	for _, p := range f.Processes {
		total += CPU(p.PID())
	}
	return total
}

// RSS returns the resident memory of all its processes, in bytes.
func (f *Fairlead) RSS() int64 {
	total := int64(0)
	for _, p := range f.Processes {
		total += RSS(p.PID())
	}
	return total
}

// Session creates a session and returns its name.
func (f *Fairlead) Session(ctx context.Context) (string, error) { return f.SessionOf(ctx, "coder") }

// SessionOf creates a session of an agent and returns its name.
func (f *Fairlead) SessionOf(ctx context.Context, agent string) (string, error) {
	body, err := do(ctx, http.MethodPost, f.URL+"/v1/sessions", `{"agent":"`+agent+`"}`)
	if err != nil {
		return "", err
	}
	var made struct{ Name string }
	if err := json.Unmarshal(body, &made); err != nil || made.Name == "" {
		return "", fmt.Errorf("a session was answered with %s", body)
	}
	return made.Name, nil
}

// Get makes a GET request and returns the body of a 200.
func Get(ctx context.Context, url string) ([]byte, error) { return do(ctx, http.MethodGet, url, "") }

// Post makes a POST request and returns the body of a 200.
func Post(ctx context.Context, url, body string) ([]byte, error) {
	return do(ctx, http.MethodPost, url, body)
}

// client makes the requests; each has a context with its own deadline.
var client = &http.Client{}

func do(ctx context.Context, method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return text, err
}
