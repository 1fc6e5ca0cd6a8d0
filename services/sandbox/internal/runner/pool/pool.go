package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Start implements box.Runner.
func (r *Runner) Start(ctx context.Context, c box.Command) (box.Process, error) {
	for {
		s, err := r.enter(ctx, c.Sandbox, true)
		if err != nil {
			return nil, err
		}
		p, err := s.start(c)
		if err == nil && c.Patient && p.lacksTerminal() && s.openTerminals() {
			p.Wait() //nolint:contextcheck // nothing of it runs
			p.closeOurs()
			return nil, box.ErrTerminalsTaken
		}
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errGone) {
			return nil, err
		}
		// It ended meanwhile, and nothing was started: make another one.
		select {
		case <-s.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("start the command: %w", ctx.Err())
		}
	}
}

// Warm implements box.Runner.
func (r *Runner) Warm(ctx context.Context, spec box.Sandbox) error {
	s, err := r.enter(ctx, spec, false)
	if err != nil {
		return err
	}
	r.leave(s, false)
	return nil
}

// enter returns a ready sandbox, for one more command or only to keep it. The caller must call leave.
func (r *Runner) enter(ctx context.Context, spec box.Sandbox, command bool) (*sandbox, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, box.ErrClosed
	}
	for _, s := range slices.Clone(r.sandboxes[spec.Workspace]) {
		if s.spec != spec && s.stay.users == 0 { // it was made for an earlier configuration of the workspace
			r.evict(s)
			continue
		}
		// Without control groups, only one command at a time can be told apart.
		if s.spec == spec && (r.groups != nil || s.stay.commands == 0 || !command) {
			s.stay.enter(command)
			r.mu.Unlock()
			return s, r.await(ctx, s, command)
		}
	}
	before, err := r.acquireSlot(spec.Spare)
	if err != nil {
		r.mu.Unlock()
		return nil, err
	}
	s := newSandbox(r, spec)
	s.stay.enter(command)
	r.next++
	group := spec.ID + "." + strconv.FormatInt(r.next, 10)
	r.sandboxes[spec.Workspace] = append(r.sandboxes[spec.Workspace], s)
	r.work.Add(1)
	r.mu.Unlock()
	go func() {
		defer r.work.Done()
		if before != nil {
			<-before.done
		}
		r.build(context.WithoutCancel(ctx), s, group)
	}()
	return s, r.await(ctx, s, command)
}

// build makes a sandbox and follows it to its end.
func (r *Runner) build(ctx context.Context, s *sandbox, group string) {
	if err := s.make(ctx, group); err != nil {
		s.fault = err
		r.drop(s)
		r.ended(s)
		close(s.ready)
		close(s.done)
		return
	}
	close(s.ready)
	s.follow()
}

// await waits until a sandbox is ready. On an error it releases the place in it.
func (r *Runner) await(ctx context.Context, s *sandbox, command bool) error {
	var err error
	select {
	case <-s.ready:
		err = s.fault
	case <-ctx.Done():
		err = fmt.Errorf("make a sandbox: %w", ctx.Err())
	}
	if err != nil {
		r.leave(s, command)
	}
	return err
}

// acquireSlot takes a place for a sandbox. If all are taken, another sandbox must end first: one that is
// ending anyway, or the one that has been idle for longest. The caller waits for before. A spare sandbox
// displaces none. mu is held.
func (r *Runner) acquireSlot(spare bool) (before *sandbox, err error) {
	if r.max == 0 || r.count < r.max {
		r.count++
		return nil, nil //nolint:nilnil // no sandbox need be ended
	}
	if idle := r.longestIdle(); len(r.ending) == 0 && !spare && idle != nil {
		r.evict(idle)
	}
	if len(r.ending) == 0 || spare {
		return nil, fmt.Errorf("%w on this node: %d of %d, and commands run in all of them: try again later, or raise `max-sandboxes`",
			box.ErrTooManySandboxes, r.count, r.max)
	}
	before, r.ending = r.ending[0], r.ending[1:]
	return before, nil
}

// longestIdle returns nil if no sandbox is idle. mu is held.
func (r *Runner) longestIdle() (idle *sandbox) {
	for _, all := range r.sandboxes {
		for _, s := range all {
			if s.stay.users == 0 && (idle == nil || s.stay.since.Before(idle.stay.since)) {
				idle = s
			}
		}
	}
	return idle
}

// leave releases a place in a sandbox. The last one starts the idle timer.
func (r *Runner) leave(s *sandbox, command bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.stay.leave(command)
	at := slices.Index(r.sandboxes[s.spec.Workspace], s)
	if s.stay.users > 0 || at < 0 || s.spec.Spare {
		return
	}
	s.stay.since = time.Now()
	same := func(other *sandbox) bool { return other.spec == s.spec }
	if slices.ContainsFunc(r.sandboxes[s.spec.Workspace][:at], same) { // one is enough for an idle workspace
		r.evict(s)
		return
	}
	r.startIdleTimer(s)
}

// startIdleTimer starts a sandbox's idle timer. mu is held.
func (r *Runner) startIdleTimer(s *sandbox) {
	if r.idle > 0 {
		s.stay.startTimer(r.idle, func() { r.retire(s) })
	}
}

// retire ends a sandbox that has been idle for a while.
func (r *Runner) retire(s *sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.stay.users > 0 || time.Since(s.stay.since) < r.idle || !slices.Contains(r.sandboxes[s.spec.Workspace], s) {
		return
	}
	r.evict(s)
}

// evict ends a sandbox that is still registered. mu is held.
func (r *Runner) evict(s *sandbox) {
	r.remove(s)
	r.markEnding(s)
	s.kill()
}

// markEnding records that an unregistered sandbox is ending: another one may take its place then. mu is held.
func (r *Runner) markEnding(s *sandbox) { r.ending = append(r.ending, s) }

// remove unregisters a sandbox, so that no command finds it. mu is held.
func (r *Runner) remove(s *sandbox) {
	s.stay.stopTimer()
	w := s.spec.Workspace
	r.sandboxes[w] = slices.DeleteFunc(r.sandboxes[w], func(x *sandbox) bool { return x == s })
	if len(r.sandboxes[w]) == 0 {
		delete(r.sandboxes, w)
	}
}

// drop unregisters a sandbox that has ended.
func (r *Runner) drop(s *sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.sandboxes[s.spec.Workspace], s) {
		r.remove(s)
		r.markEnding(s)
	}
}

// ended releases the place of a sandbox of which nothing is left, unless another one has taken it already.
func (r *Runner) ended(s *sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.Index(r.ending, s); at >= 0 {
		r.ending = slices.Delete(r.ending, at, at+1)
		r.count--
	}
}

// Move implements box.Runner.
func (r *Runner) Move(from string, to box.Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slices.Clone(r.sandboxes[from]) {
		if len(r.sandboxes[to.Workspace]) > 0 {
			r.evict(s)
			continue
		}
		r.remove(s)
		if err := s.become(to); err != nil {
			r.log.Debug("a sandbox cannot be adapted to another session: ending it", "error", err)
			r.markEnding(s)
			s.kill()
			continue
		}
		s.stay.since = time.Now()
		r.sandboxes[to.Workspace] = []*sandbox{s}
		r.startIdleTimer(s)
	}
}

// Stop implements box.Runner.
func (r *Runner) Stop(workspace string) {
	r.mu.Lock()
	all := slices.Clone(r.sandboxes[workspace])
	for _, s := range all {
		r.remove(s)
		r.markEnding(s)
	}
	r.mu.Unlock()
	end(all)
}

func end(all []*sandbox) {
	for _, s := range all {
		<-s.ready
		s.kill()
	}
	for _, s := range all {
		<-s.done
	}
}

// Close ends all sandboxes. Another call does nothing.
func (r *Runner) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	var all []*sandbox
	for _, of := range r.sandboxes {
		all = append(all, of...)
	}
	for _, s := range all {
		r.remove(s)
		r.markEnding(s)
	}
	r.mu.Unlock()
	end(all)
	r.work.Wait()
	return errors.Join(r.maker.Close(), r.null.Close())
}
