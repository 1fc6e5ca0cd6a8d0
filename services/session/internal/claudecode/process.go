package claudecode

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/fairlead/fairlead/services/session/internal/claudecode/launch"
)

const (
	// maxLine bounds a line that the CLI prints, and maxRequest a request to the model.
	maxLine    = 16 << 20
	maxRequest = 64 << 20
	// maxAsks bounds the requests to the model at the same time, and maxCalls the calls that wait. The CLI makes far
	// fewer; a command in its sandbox could make more in its name.
	maxAsks  = 4
	maxCalls = 1024
	// maxNoise bounds what it may print between two messages, besides messages.
	maxNoise = 1 << 20
)

// Errors of a process.
var (
	errStopped = errors.New("the CLI was stopped")
	errLong    = fmt.Errorf("the CLI printed a line of more than %d MiB", maxLine>>20)
	errNoise   = errors.New("the CLI prints what is no message of its protocol")
)

// UnusableError says that the program cannot be used at all.
type UnusableError struct{ Why string }

// Error says why.
func (e *UnusableError) Error() string { return e.Why }

// process is a CLI that runs, at the other end of a relay.
type process struct {
	mux     *yamux.Session
	control net.Conn
	server  *http.Server
	work    sync.WaitGroup // all goroutines of the process

	asks  chan *ask     // the requests to the model
	slots chan struct{} // has an element for each of them that is not answered
	ready chan struct{} // closed when the CLI has answered the handshake
	over  chan struct{} // closed when it is gone, with fault set
	once  sync.Once
	fault error

	tools []offered    // those of the session
	waits atomic.Int64 // the calls that wait for their results

	write sync.Mutex // one line at a time

	mu      sync.Mutex
	version string
	results map[string]chan result // of tool calls, by the CLI's id
	idle    chan struct{}          // closed when the CLI waits for a message
}

// ask is a request of the CLI to the model.
type ask struct {
	body  []byte
	reply chan []byte // takes one answer, as the API streams it
}

// startProcess runs a program through a relay at the other end of pipe, which it closes in the end, and offers it tools.
func startProcess(pipe io.ReadWriteCloser, start launch.Start, tools []offered) (*process, error) {
	mux, err := yamux.Client(pipe, launch.Config())
	if err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	p := &process{
		mux: mux, asks: make(chan *ask, maxAsks), slots: make(chan struct{}, maxAsks), ready: make(chan struct{}), over: make(chan struct{}),
		results: map[string]chan result{}, idle: make(chan struct{}), tools: tools,
	}
	if p.control, err = mux.Open(); err == nil {
		err = p.send(start)
	}
	if err == nil {
		err = p.send(handshake(tools))
	}
	if err != nil {
		return nil, errors.Join(err, mux.Close())
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	p.work.Go(func() { _ = p.server.Serve(mux) }) // ends with mux
	p.work.Go(func() { p.end(p.read()) })
	return p, nil
}

// send writes one line.
func (p *process) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write a message to the CLI: %w", err)
	}
	p.write.Lock()
	defer p.write.Unlock()
	_, err = p.control.Write(append(line, '\n'))
	return err
}

// end records why the process is over, and lets go of it.
func (p *process) end(err error) {
	p.once.Do(func() {
		p.fault = err
		close(p.over)
		_ = p.control.Close()
	})
}

// stop ends the process and waits until nothing of it runs any more.
func (p *process) stop() {
	p.end(errStopped)
	_ = p.mux.Close() // ends the relay
	_ = p.server.Close()
	p.work.Wait()
}

// read reads what the CLI prints until it ends, and returns why it did.
func (p *process) read() error {
	in, noise := bufio.NewReaderSize(p.control, 64<<10), 0
	for {
		line, err := readLine(in)
		switch {
		case err != nil && errors.Is(err, errLong):
			return err
		case len(line) > 0 && line[0] == '{' && json.Valid(line):
			noise = 0
			if last := p.take(line); last != nil {
				return last
			}
		default:
			if noise += len(line) + 1; noise > maxNoise {
				return errNoise
			}
		}
		if err != nil {
			return fmt.Errorf("the connection to the CLI ended: %w", err)
		}
	}
}

// readLine reads a line without its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > maxLine:
			return nil, errLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		default:
			return []byte(strings.TrimRight(string(line), "\r\n")), err
		}
	}
}

// printed is a message that the CLI prints. Unknown types and fields are ignored.
type printed struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  struct {
		Subtype  string `json:"subtype"`
		Error    string `json:"error"`
		Response struct {
			Version string `json:"claude_code_version"`
		} `json:"response"`
	} `json:"response"`
	IsError    bool     `json:"is_error"`
	Result     string   `json:"result"`
	Errors     []string `json:"errors"`
	Version    string   `json:"claude_code_version"`
	MCPServers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`
}

// take handles a message. It returns an error if the process is of no use any more.
func (p *process) take(line []byte) error {
	var m printed
	if json.Unmarshal(line, &m) != nil {
		return nil //nolint:nilerr // of another form than this version knows
	}
	switch m.Type {
	case "control_request":
		p.answer(m)
	case "control_response":
		if m.Response.Subtype == "error" {
			return fmt.Errorf("the CLI refuses the handshake: %s", m.Response.Error)
		}
		return p.greeted(m.Response.Response.Version)
	case "system":
		if m.Subtype == "init" {
			return p.begun(m)
		}
	case "result":
		if m.IsError {
			return fmt.Errorf("the CLI ended its work with an error: %s", strings.Join(append(m.Errors, m.Result), " "))
		}
		p.rest()
	case launch.Type:
		return p.relayed(line)
	}
	return nil
}

// greeted notes the answer to the handshake, in which newer versions name themselves.
func (p *process) greeted(version string) error {
	if err := p.setVersion(version); err != nil {
		return err
	}
	select {
	case <-p.ready:
	default:
		close(p.ready)
	}
	return nil
}

// relayed handles a line of the relay.
func (p *process) relayed(line []byte) error {
	var l launch.Line
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	if l.Version != "" {
		version, _, _ := strings.Cut(l.Version, " ") // 2.1.250 (Claude Code)
		return p.setVersion(version)
	}
	return ended(l)
}

// begun checks what the CLI says at the beginning of its work.
func (p *process) begun(m printed) error {
	for _, s := range m.MCPServers {
		if s.Name == serverName && s.Status != "connected" {
			return fmt.Errorf("the CLI does not offer the session's tools: their server is %s", s.Status)
		}
	}
	return nil
}

// ended says how the program ended.
func ended(l launch.Line) error {
	switch {
	case l.Missing:
		return &UnusableError{"the program does not exist in the sandbox: " + l.Fault}
	case l.Fault != "":
		return errors.New("the CLI could not be started: " + l.Fault)
	case l.Words != "":
		return fmt.Errorf("the CLI ended (%s). It printed last: %s", l.Exit, l.Words)
	default:
		return fmt.Errorf("the CLI ended (%s)", l.Exit)
	}
}

// rest notes that the CLI waits for a message.
func (p *process) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// say sends a user's message to a CLI that waits for one.
func (p *process) say(ctx context.Context, uuid string, content []block) error {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	if err := p.wait(ctx, idle, "end its last answer"); err != nil {
		return err
	}
	p.mu.Lock()
	p.idle = make(chan struct{})
	p.mu.Unlock()
	return p.send(map[string]any{
		"type": "user", "uuid": uuid, "client_composed": true, "parent_tool_use_id": nil, "session_id": "",
		"message": map[string]any{"role": "user", "content": content},
	})
}

// wait waits for an event of the process.
func (p *process) wait(ctx context.Context, event <-chan struct{}, what string) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-event:
		return nil
	case <-p.over:
		return p.fault
	case <-timer.C:
		return fmt.Errorf("the CLI did not %s within %v", what, patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// patience is how long the CLI may take for what needs no model.
const patience = time.Minute

// next returns the CLI's next request to the model.
func (p *process) next(ctx context.Context) (*ask, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-p.asks:
		return a, nil
	case <-p.over:
		return nil, p.fault
	case <-timer.C:
		return nil, fmt.Errorf("the CLI did not ask its model within %v", patience)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serve takes a request to the model, and answers it when the session does.
func (p *process) serve(w http.ResponseWriter, r *http.Request) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		http.Error(w, "too many requests", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
		return
	}
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusNotFound)
		return
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"input_tokens":%d}`, len(body)/4) // #nosec G705 -- a number
		return
	case !strings.HasSuffix(r.URL.Path, "/v1/messages"):
		w.WriteHeader(http.StatusNotFound)
		return
	}
	a := &ask{body: body, reply: make(chan []byte, 1)}
	select {
	case p.asks <- a:
	case <-p.over:
		return
	}
	select {
	case answer := <-a.reply:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(answer)
	case <-p.over:
	case <-r.Context().Done():
	}
}
