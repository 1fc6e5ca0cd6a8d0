package attached

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
)

const (
	// queued is how many messages wait for a process that reads slowly.
	queued = 16
	// said is how many pieces of a step wait until the session takes them.
	said = 256
	// maxDelta bounds a piece of a message, in bytes.
	maxDelta = 64 << 10
	// maxStray is how many messages in a row may be about no step that the process has. A few cross the end
	// of a turn.
	maxStray = 10_000
)

// errGone is why a step ends whose process is not attached any more.
var errGone = errors.New("the process has left")

// process is an attached process.
type process struct {
	name     name
	label    string
	places   int
	turns    int  // guarded by the hub's mu
	draining bool // guarded by the hub's mu
	out      chan *sessionv1.AttachResponse
	over     chan struct{} // closed when the process counts as lost

	mu    sync.Mutex
	why   error            // of over
	steps map[int64]*asked // the steps that the process has, by id
	stray int
}

// asked is a step that a process has.
type asked struct {
	in   chan *sessionv1.AttachRequest
	gone chan struct{} // closed when the session takes no more of it
}

// lose makes the process count as lost. The first reason stays.
func (p *process) lose(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		p.why = why
		close(p.over)
	}
}

// reason returns why the process is lost.
func (p *process) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// offer sends what may be left out when the process reads slowly.
func (p *process) offer(r *sessionv1.AttachResponse) bool {
	select {
	case p.out <- r:
		return true
	default:
		return false
	}
}

// send sends what the process must get. A process that does not read it is lost.
func (p *process) send(ctx context.Context, patience time.Duration, r *sessionv1.AttachResponse) error {
	if p.offer(r) {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case p.out <- r:
		return nil
	case <-p.over:
		return errGone
	case <-timer.C:
		p.lose(refusal.RuntimeSilent(fmt.Sprintf("The process has read nothing for %v. Attach again, and read the stream all the time.", patience)))
		return errGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// expect registers a step, whose messages come on its channel.
func (p *process) expect(id int64) *asked {
	a := &asked{in: make(chan *sessionv1.AttachRequest, said), gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps[id] = a
	return a
}

// forget takes no more messages of a step.
func (p *process) forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.steps[id]; a != nil {
		close(a.gone)
		delete(p.steps, id)
	}
}

// take passes on a message about a step.
func (p *process) take(id int64, last bool, r *sessionv1.AttachRequest) error {
	p.mu.Lock()
	a := p.steps[id]
	if a == nil {
		p.stray++
		flood := p.stray > maxStray
		p.mu.Unlock()
		if flood {
			return refusal.RuntimeStrays(maxStray, id)
		}
		return nil
	}
	p.stray = 0
	p.mu.Unlock()
	select {
	case a.in <- r:
	case <-a.gone:
	case <-p.over:
	}
	if last { // not before: a turn that leaves now has to end the wait
		p.forget(id)
	}
	return nil
}

// join adds a process.
func (h *Hub) join(p *process) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return refusal.RuntimeDraining()
	}
	h.processes[p.name] = append(h.processes[p.name], p)
	h.change()
	return nil
}

// part removes a process.
func (h *Hub) part(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := slices.DeleteFunc(h.processes[p.name], func(q *process) bool { return q == p })
	if h.processes[p.name] = rest; len(rest) == 0 {
		delete(h.processes, p.name)
	}
	h.change()
}

// pick gives a turn to the process of a runtime with the most free places, if one has any. It returns also how many
// processes take turns, and what is closed when that changes.
func (h *Hub) pick(n name) (_ *process, processes int, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var best *process
	for _, p := range h.processes[n] {
		if p.draining || h.draining || p.reason() != nil {
			continue
		}
		processes++
		if p.turns < p.places && (best == nil || p.places-p.turns > best.places-best.turns) {
			best = p
		}
	}
	if best != nil {
		best.turns++
	}
	return best, processes, h.changed
}

// free gives a turn's place back.
func (h *Hub) free(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.turns--
	h.change()
}
