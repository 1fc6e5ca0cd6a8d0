// Package fleet runs the measured programs like their users do, and measures
// their resources.
package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running program.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error // how it ended; read it after done
}

// stopTimeout is how long a program may take to end after its signal.
const stopTimeout = 15 * time.Second

// Start runs a program with a log file in dir. It dies with this process.
func Start(dir, name, path string, env []string, args ...string) (*Process, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // the programs are ours, and Stop ends them
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p := &Process{Name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID returns the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the program as an operator would.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	_ = p.log.Close()
}

// failed says why the program has ended, if it has.
func (p *Process) failed() error {
	select {
	case <-p.done:
		text, _ := os.ReadFile(p.log.Name())
		return fmt.Errorf("%s ended: %w: %s", p.Name, p.err, text[max(0, len(text)-1500):])
	default:
		return nil
	}
}

// CPU returns the processor time of a process and its children. The children of
// Postgres are its connections, including those that have ended.
func CPU(pid int) time.Duration {
	total := time.Duration(0)
	for _, s := range family(pid) {
		total += s.cpu
	}
	return total
}

// RSS returns the resident memory of a process and its children, in bytes. Shared
// memory counts for each.
func RSS(pid int) int64 {
	total := int64(0)
	for _, s := range family(pid) {
		total += s.rss
	}
	return total
}

// stat has the values of a process in /proc.
type stat struct {
	pid, parent int
	cpu         time.Duration
	rss         int64
}

// tick is the unit of processor times in /proc.
const tick = 10 * time.Millisecond

func readStat(pid string) (stat, bool) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, false
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold anything
	f := strings.Fields(rest)
	if len(f) < 22 {
		return stat{}, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
	id, _ := strconv.Atoi(pid)
	// utime and stime, and those of the children that have ended.
	return stat{id, int(number(1)), time.Duration(number(11)+number(12)+number(13)+number(14)) * tick, number(21) * int64(os.Getpagesize())}, true
}

// family returns a process and its children.
func family(pid int) []stat {
	var all []stat
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, e := range entries {
		if s, ok := readStat(filepath.Base(e)); ok && (s.pid == pid || s.parent == pid) {
			all = append(all, s)
		}
	}
	return all
}
