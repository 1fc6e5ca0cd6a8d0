package claudecode

import (
	"context"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// pool keeps the CLIs that wait for their session. It bounds how many there are, and for how long one waits.
type pool struct {
	keep   time.Duration
	places chan struct{} // has an element for each CLI that runs
	work   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	wanting  int // turns that wait for a place
	ending   int // CLIs that are about to leave one
	waiting  map[store.Key]*waiting
	order    []*waiting // the one that has waited for longest is the first
	version  string     // of the program that started last
	unusable string     // why the program cannot be used
}

// waiting is a CLI in the pool.
type waiting struct {
	key   store.Key
	c     *conversation
	timer *time.Timer
}

func newPool(processes int, keep time.Duration) *pool {
	return &pool{keep: keep, places: make(chan struct{}, max(processes, 1)), waiting: map[store.Key]*waiting{}}
}

// take returns the CLI of a session, which is not in the pool any more; nil: it has none.
func (p *pool) take(key store.Key) *conversation {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[key]
	if w == nil {
		return nil
	}
	p.remove(w)
	return w.c
}

// remove takes a CLI out of the pool; p.mu is held.
func (p *pool) remove(w *waiting) {
	if w.timer != nil {
		w.timer.Stop()
	}
	delete(p.waiting, w.key)
	for i, o := range p.order {
		if o == w {
			p.order = append(p.order[:i], p.order[i+1:]...)
			break
		}
	}
}

// put lets a CLI wait.
func (p *pool) put(key store.Key, c *conversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.waiting[key]; old != nil {
		p.remove(old)
		p.stop(old.c)
	}
	if p.closed {
		p.stop(c)
		return
	}
	if p.wanting > p.ending && c.pending == nil { // it would keep the place that a turn waits for
		p.stop(c)
		return
	}
	w := &waiting{key: key, c: c}
	p.waiting[key] = w
	p.order = append(p.order, w)
	keep := p.keep
	if keep == 0 && c.pending != nil { // it makes no room while the model works, or the turn waits for a budget
		keep = pendingKeep
	}
	if keep > 0 {
		w.timer = time.AfterFunc(keep, func() { p.expire(w) })
	}
}

// pendingKeep bounds how long a CLI waits for the model's answer if nothing else does.
const pendingKeep = 10 * time.Minute

func (p *pool) expire(w *waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[w.key] == w {
		p.remove(w)
		p.stop(w.c)
	}
}

// drop ends a CLI that is not in the pool.
func (p *pool) drop(c *conversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop(c)
}

// stop ends a CLI in the background; p.mu is held.
func (p *pool) stop(c *conversation) {
	p.ending++
	p.work.Go(func() {
		c.p.stop()
		p.mu.Lock()
		p.ending--
		p.mu.Unlock()
		p.release()
	})
}

// acquire waits until one more CLI may run. One that waits makes room, unless the model works for it.
func (p *pool) acquire(ctx context.Context) error {
	select {
	case p.places <- struct{}{}:
		return nil
	default:
	}
	p.want()
	defer p.wanted()
	select {
	case p.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// want ends the CLI that has waited for longest. If there is none, the next one to wait ends instead; see put.
func (p *pool) want() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanting++
	for _, w := range p.order {
		if w.c.pending == nil {
			p.remove(w)
			p.stop(w.c)
			return
		}
	}
}

func (p *pool) wanted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanting--
}

func (p *pool) release() { <-p.places }

// close ends all CLIs that wait, and waits for them and for those that end already.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for len(p.order) > 0 {
		w := p.order[0]
		p.remove(w)
		p.stop(w.c)
	}
	p.mu.Unlock()
	p.work.Wait()
}

func (p *pool) setVersion(v string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version, p.unusable = v, ""
}

// known reports whether the program's version is known, and can be used.
func (p *pool) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version != "" && p.unusable == ""
}

func (p *pool) setUnusable(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unusable = why
}

// Status returns the version of the program, once one has started, and why it cannot be used, if so.
func (r *Runtime) Status() (version, unusable string) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	return r.pool.version, r.pool.unusable
}
