package box

import (
	"context"
	"errors"
	"fmt"
)

// tasks are what the service itself does for a session: commands of its own, and copies of snapshots. A
// session's end stops them.
type tasks struct {
	beside chan struct{} // holds a token while there is a sandbox beside the session's own
	pushes mutex         // held while snapshots are copied elsewhere

	mu       mutex                             // guards what follows
	cancels  map[int64]context.CancelCauseFunc // of those that run
	last     int64
	commands int   // those that run
	barred   error // why no task may begin; nil: tasks may begin
	unseals  int64 // number of unseals
}

func newTasks() *tasks {
	return &tasks{beside: make(chan struct{}, 1), pushes: mutex{rank: rankPushes}, mu: mutex{rank: rankInner}, cancels: map[int64]context.CancelCauseFunc{}}
}

// add registers a task that is about to run, so that the session's end can stop it.
func (t *tasks) add(cancel context.CancelCauseFunc) (forget func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.barred != nil {
		return nil, t.barred
	}
	t.last++
	number := t.last
	t.cancels[number] = cancel
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.cancels, number)
	}, nil
}

// end cancels the running tasks; their callers see why.
func (t *tasks) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel(why)
}

// cancel is end, with mu held.
func (t *tasks) cancel(why error) {
	for _, cancel := range t.cancels {
		cancel(why)
	}
}

// always is the count of unseals for a clear that no unseal lifts.
const always = -1

// unsealed returns the number of unseals.
func (t *tasks) unsealed() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unseals
}

// lifted reports whether there was an unseal since a count of them.
func (t *tasks) lifted(since int64) bool { return since != always && since != t.unsealed() }

// unseal counts an unseal, and lets tasks begin that a seal keeps from it.
func (t *tasks) unseal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unseals++
	if errors.Is(t.barred, ErrSealed) {
		t.barred = nil
	}
}

// clear cancels the tasks and waits for those that reach beyond the node. It keeps new ones from beginning
// until allow is called. All of them see why. It leaves tasks alone once there was an unseal since a count
// of them.
func (t *tasks) clear(why error, since int64) (allow func()) {
	end := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if since != always && since != t.unseals {
			return
		}
		t.barred = why
		t.cancel(why)
	}
	end()
	t.beside <- struct{}{}
	t.pushes.Lock()
	end() // another call may have allowed them meanwhile
	return func() {
		t.mu.Lock()
		t.barred = nil
		t.mu.Unlock()
		t.pushes.Unlock()
		<-t.beside
	}
}

// begin limits the commands of tasks to the number of commands that a session may have. It counts them
// separately, so that tasks do not displace commands.
func (t *tasks) begin(most int) (done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.commands >= most {
		return nil, fmt.Errorf("%w of the service itself for this session: %d of %d", ErrTooManyExecs, t.commands, most)
	}
	t.commands++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.commands--
	}, nil
}
