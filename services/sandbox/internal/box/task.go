package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/disk"
)

// Task is a command that is not remembered: no later call asks for it, and it ends with its caller.
type Task struct {
	Argv    []string
	Env     []string      // KEY=value
	Dir     string        // absolute, inside the sandbox
	Timeout time.Duration // at most the operator's; zero: the operator's default
	// Stdout and Stderr receive its output, each from one goroutine. If nil, the output is discarded.
	Stdout, Stderr io.Writer
}

// RunInside runs a command of the service in the session's own sandbox, to its end. The command is no exec
// and has no network of its own. The workspace's files can influence it. The end of ctx ends it.
func (n *Node) RunInside(ctx context.Context, c Call, t Task) (Outcome, error) {
	s, leave, err := n.sessions.enter(c.Key)
	if err != nil {
		return Outcome{}, err
	}
	defer leave()
	spec, room, w, err := s.inside(c)
	if err != nil {
		return Outcome{}, err
	}
	begin := time.Now()
	return s.task(ctx, c, t, spec, func() (limit, why string) { return w(room, time.Since(begin) < disk.LookPause) })
}

// inside returns the sandbox of a task in the session's own, what the workspace may hold meanwhile, and a
// watch for that.
func (s *session) inside(c Call) (spec Sandbox, room Limits, w watch, err error) {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if err = errors.Join(s.workspace.admitCall(c), s.workspace.meta.unsealed()); err != nil {
		return spec, room, nil, err
	}
	mounts, _, w, err := s.workspace.surroundings(c)
	if err != nil {
		return spec, room, nil, err
	}
	spec = s.workspace.sandbox(mounts, c.User)
	room, err = s.workspace.allowance(spec.Limits)
	return spec, room, w, err
}

// task starts a command and follows it to its end. over returns which limit of the disk is exceeded, and
// how; empty strings mean none.
func (s *session) task(ctx context.Context, c Call, t Task, spec Sandbox, over func() (limit, why string)) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	forget, err := s.addTask(cancel)
	if err != nil {
		return Outcome{}, err
	}
	defer forget()
	done, err := s.tasks.begin(s.node.o.MaxSessionExecs)
	if err != nil {
		return Outcome{}, err
	}
	defer done()
	if err := s.node.capacity.reserve(s.key); err != nil {
		return Outcome{}, err
	}
	defer s.node.capacity.release(s.key)
	limits := spec.Limits
	if t.Timeout > 0 {
		limits.Timeout = min(t.Timeout, limits.MaxTimeout)
	}
	begin := time.Now()
	command := Command{Sandbox: spec, Argv: t.Argv, Env: t.Env, Dir: t.Dir, Limits: limits}
	if spec.Operator { // in a session's own sandbox it has no network of its own
		followed := s.node.follow(ctx, spec, c.ID)
		defer followed.Forget()
		command.Enter = followed.Enter
	}
	ended := s.node.o.Observer.Started(ctx, c, t.Argv)
	running := s.starts()
	defer running.ended()
	p, err := s.startTask(ctx, command)
	if err != nil {
		ended(Outcome{Reason: NotStarted, Message: err.Error()})
		switch {
		case ctx.Err() != nil:
			return Outcome{}, context.Cause(ctx)
		case errors.Is(err, ErrTooManySandboxes), errors.Is(err, ErrSealed):
			return Outcome{}, err
		}
		return Outcome{}, fmt.Errorf("%w: %w", ErrIsolation, err)
	}
	out := s.await(ctx, running, p, t, limits, over)
	out.Wall = time.Since(begin)
	ended(out)
	if err := context.Cause(ctx); err != nil {
		return Outcome{}, err
	}
	return out, nil
}

// startTask starts a task's command unless the workspace is sealed.
func (s *session) startTask(ctx context.Context, c Command) (Process, error) {
	s.workspace.starts.RLock()
	defer s.workspace.starts.RUnlock()
	if err := s.workspace.unsealed(); err != nil {
		return nil, err
	}
	return s.node.o.Runner.Start(ctx, c)
}

// await follows a started process to its end, and ends it at its limits or with the context.
func (s *session) await(ctx context.Context, r *running, p Process, t Task, l Limits, over func() (limit, why string)) Outcome {
	var mu sync.Mutex // guards why
	var why Outcome
	stop := func(o Outcome) {
		mu.Lock()
		defer mu.Unlock()
		if why.Reason == "" {
			why = o
			p.Kill()
		}
	}
	r.runs(p, stop)
	flood := make(chan struct{}, 2)
	var copies sync.WaitGroup
	copies.Go(func() { drain(p.Stdout(), t.Stdout, l.FloodBytes, flood) })
	if p.Stderr() != nil {
		copies.Go(func() { drain(p.Stderr(), t.Stderr, l.FloodBytes, flood) })
	}
	inTime := limitTime(p, l.Timeout, func() {
		stop(Outcome{Reason: TimedOut, Message: "it was ended after " + l.Timeout.String() + ", its time limit"})
	})
	look := time.NewTimer(disk.LookPause)
	defer look.Stop()
	gone := ctx.Done()
	for {
		select {
		case <-p.Ended():
			inTime()
			exit := p.Wait()
			awaitCopies(p, &copies)
			_, full := over()
			mu.Lock() // the node may still end it for room
			defer mu.Unlock()
			if full != "" && why.Reason == "" {
				why = Outcome{Reason: WorkspaceLimit, Message: full}
			}
			return taskOutcome(exit, why)
		case <-gone:
			gone = nil
			stop(Outcome{Reason: Cancelled, Message: "its caller is gone"})
		case <-flood:
			stop(Outcome{Reason: OutputLimit, Message: "it wrote more than " + strconv.FormatInt(l.FloodBytes, 10) + " bytes of output"})
		case <-look.C:
			before := time.Now()
			if many := tooManyTerminals(p.Terminals()); many != "" {
				stop(Outcome{Reason: TerminalLimit, Message: "it was ended because " + many})
			}
			if _, full := over(); full != "" {
				stop(Outcome{Reason: WorkspaceLimit, Message: full})
			}
			look.Reset(max(disk.LookPause, 4*time.Since(before)))
		}
	}
}

// awaitCopies waits until all output is read. Nothing of the command runs any more, so this is short. The
// limit guards against a kernel that does not report the end.
func awaitCopies(p Process, copies *sync.WaitGroup) {
	late := time.AfterFunc(outputTimeout, func() { closeOutputs(p) })
	copies.Wait()
	late.Stop()
	closeOutputs(p)
}

// taskOutcome returns the outcome of a task; why is the reason if it was ended.
func taskOutcome(exit Exit, why Outcome) Outcome {
	e := Exec{}
	if why.Reason != "" {
		e.stopped = &why
	}
	o := e.judge(exit)
	o.CPU, o.MaxMemory = exit.CPU, exit.MaxMemory
	return o
}

// drain reads to the end, even if writing fails.
func drain(from io.Reader, to io.Writer, most int64, flood chan<- struct{}) {
	if to == nil {
		to = io.Discard
	}
	buffer := make([]byte, 32<<10)
	for left := most; ; {
		n, err := from.Read(buffer)
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if left -= int64(n); left < 0 && left+int64(n) >= 0 {
			flood <- struct{}{}
		}
		if err != nil {
			return
		}
	}
}

// addTask registers a task of a workspace that exists.
func (s *session) addTask(cancel context.CancelCauseFunc) (forget func(), err error) {
	s.workspace.mu.Lock()
	defer s.workspace.mu.Unlock()
	if s.workspace.meta == nil {
		return nil, ErrNoWorkspace
	}
	return s.tasks.add(cancel)
}
