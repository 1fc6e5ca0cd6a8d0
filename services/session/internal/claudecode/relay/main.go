//go:build linux

// The relay runs the Claude Code CLI in a sandbox without a network. It carries the CLI's standard streams and
// its connections to the model over its own standard input and output; see package launch.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/fairlead/fairlead/services/session/internal/claudecode/launch"
)

const (
	// prefix names the private folders of all relays.
	prefix = "fairlead-claude-code-"
	// maxStart bounds the first line, which has the conversation.
	maxStart = 64 << 20
	// lastWords is how much is kept of what the CLI prints on its standard error.
	lastWords = 2 << 10
	// grace is how long the CLI may take to end after a signal, and the session to read the last line.
	grace = 2 * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

// stdio is the relay's standard input and output as one connection.
type stdio struct{}

func (stdio) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (stdio) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

func run() error {
	mux, err := yamux.Server(stdio{}, launch.Config())
	if err != nil {
		return err
	}
	control, err := mux.Accept()
	if err != nil {
		return err
	}
	in := bufio.NewReader(io.LimitReader(control, maxStart))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	var start launch.Start
	if err := json.Unmarshal(line, &start); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	last := relay(mux, control, io.MultiReader(rest(in), control), start)
	last.Type = launch.Type
	if line, err = json.Marshal(last); err == nil {
		_, _ = control.Write(append(line, '\n')) // the session may be gone already
	}
	_ = control.Close()
	select { // the session closes its end when it has read the line
	case <-mux.CloseChan():
	case <-time.After(grace):
	}
	return err
}

// rest returns what a reader has read ahead.
func rest(in *bufio.Reader) io.Reader {
	b, _ := in.Peek(in.Buffered())
	return strings.NewReader(string(b))
}

// relay runs the program and returns its last line.
func relay(mux *yamux.Session, out io.Writer, in io.Reader, start launch.Start) launch.Line {
	dir, unlock, err := private()
	if err != nil {
		return launch.Line{Fault: err.Error()}
	}
	defer unlock()
	if err := furnish(dir, start); err != nil {
		return launch.Line{Fault: err.Error()}
	}
	ctx := context.Background() // the end of its input is what ends a relay
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(dir, launch.Socket))
	if err != nil {
		return launch.Line{Fault: err.Error()}
	}
	var work sync.WaitGroup
	work.Go(func() { serve(mux, listener, &work) })
	defer work.Wait()
	defer func() { _ = listener.Close() }()

	fill := strings.NewReplacer(launch.Dir, dir)
	var args, env []string
	for _, a := range start.Args {
		args = append(args, fill.Replace(a))
	}
	for _, e := range start.Env {
		env = append(env, fill.Replace(e))
	}
	env = append(env, "PATH="+os.Getenv("PATH"))
	if start.Version {
		tellVersion(ctx, out, start.Program, env)
	}
	return execute(exec.CommandContext(ctx, start.Program, args...), env, in, out) //nolint:gosec // the session says what to run
}

// versionTime bounds how long the program may take to say its version, and maxVersion how long that is.
const (
	versionTime = 30 * time.Second
	maxVersion  = 100
)

// tellVersion writes a line with the program's version, if it says one.
func tellVersion(ctx context.Context, out io.Writer, program string, env []string) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env, cmd.WaitDelay, cmd.SysProcAttr = env, grace, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return // the program itself will not start either, and says why
	}
	version := make([]byte, maxVersion)
	n, _ := io.ReadFull(said, version)
	cancel() // it has said all, or more than a version
	_ = cmd.Wait()
	line, err := json.Marshal(launch.Line{Type: launch.Type, Version: strings.TrimSpace(string(version[:n]))})
	if err == nil && n > 0 {
		_, _ = out.Write(append(line, '\n')) // the session may be gone already
	}
}

// execute runs the program to its end.
func execute(cmd *exec.Cmd, env []string, in io.Reader, out io.Writer) launch.Line {
	words := &tail{}
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, out, words, grace
	// The kernel ends the program with the relay, however that ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return launch.Line{Missing: errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound), Fault: err.Error()}
	}
	ended := make(chan struct{})
	go func() { // ends with the process: main returns after the program's end
		_, _ = io.Copy(stdin, in)
		_ = stdin.Close()
		stop(cmd.Process.Pid, ended)
	}()
	err = cmd.Wait()
	close(ended)
	line := launch.Line{Exit: cmd.ProcessState.String(), Words: words.String()}
	if err != nil && line.Exit == "" {
		line.Exit = err.Error()
	}
	return line
}

// stop ends the program, whose input has ended. Nothing that it could still write is of use.
func stop(pid int, ended <-chan struct{}) {
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// serve carries the program's connections to the model.
func serve(mux *yamux.Session, listener net.Listener, work *sync.WaitGroup) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		stream, err := mux.Open()
		if err != nil {
			_ = c.Close()
			return
		}
		work.Go(func() { join(c, stream) })
	}
}

// join copies both ways until one of the two connections ends.
func join(a, b net.Conn) {
	var copying sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		copying.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = a.Close(), b.Close()
		})
	}
	copying.Wait()
}

// private makes the folder of this relay, and removes those of relays that were killed.
func private() (dir string, remove func(), err error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, old := range left {
		if f, err := lock(old); err == nil {
			_ = os.RemoveAll(old)
			_ = f.Close()
		}
	}
	dir, err = os.MkdirTemp("", prefix)
	if err != nil {
		return "", nil, err
	}
	f, err := lock(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() { _, _ = os.RemoveAll(dir), f.Close() }, nil
}

// lock locks a folder until the file is closed, or the process ends.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var notInSlugs = regexp.MustCompile(`[^A-Za-z0-9]`)

// furnish makes the folders that the program finds in its variables, and the conversation so far.
func furnish(dir string, start launch.Start) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	projects := filepath.Join(dir, "config", "projects", notInSlugs.ReplaceAllString(here, "-"))
	for _, d := range []string{"home", "tmp", "config", projects} {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if len(start.Transcript) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(projects, filepath.Base(start.Session)+".jsonl"), start.Transcript, 0o600)
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*lastWords {
		t.b = append(t.b[:0], t.b[len(t.b)-lastWords:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b[max(0, len(t.b)-lastWords):]), "\uFFFD"))
}
