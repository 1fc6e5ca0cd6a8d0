package server

import (
	"context"
	"sync"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// mostInput is how much input of one stream may wait for the command: two of the largest messages. Further
// messages wait in the stream, including signals.
const mostInput = 2 << 20

// inputCost is the cost of a message besides its bytes, which may be zero.
const inputCost = 64

// input buffers received input of one stream that is not written yet. So a signal behind unread input still
// arrives. It has one reader and one writer.
type input struct {
	mu      sync.Mutex // guards what follows
	waiting []*sandboxv1.ExecStdin
	bytes   int           // size of waiting
	over    bool          // no more input comes
	changed chan struct{} // closed and recreated with each change
}

func newInput() *input { return &input{changed: make(chan struct{})} }

// put adds a message once there is room for it, unless the context ends first.
func (in *input) put(ctx context.Context, m *sandboxv1.ExecStdin) error {
	cost := len(m.GetData()) + inputCost
	return in.await(ctx, func() bool {
		if len(in.waiting) > 0 && in.bytes+cost > mostInput {
			return false
		}
		in.waiting, in.bytes = append(in.waiting, m), in.bytes+cost
		return true
	})
}

// end records that no more input comes.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.over = true
	in.wake()
}

// take removes and returns the first message once there is one; nil after the last one.
func (in *input) take(ctx context.Context) (m *sandboxv1.ExecStdin, err error) {
	err = in.await(ctx, func() bool {
		if len(in.waiting) == 0 {
			return in.over
		}
		m, in.waiting = in.waiting[0], in.waiting[1:]
		in.bytes -= len(m.GetData()) + inputCost
		return true
	})
	return m, err
}

// await retries a change until it succeeds or the context ends.
func (in *input) await(ctx context.Context, change func() bool) error {
	for ctx.Err() == nil {
		in.mu.Lock()
		if change() {
			in.wake()
			in.mu.Unlock()
			return nil
		}
		changed := in.changed
		in.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// wake wakes the waiters. mu is held.
func (in *input) wake() {
	close(in.changed)
	in.changed = make(chan struct{})
}
