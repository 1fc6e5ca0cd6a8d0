package call

import (
	"context"
	"sync"
	"sync/atomic"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// maxPieces bounds how many pieces of a running call are kept, however small.
const maxPieces = 10_000

// run is a call that runs in this process. It keeps the call's pieces, up to a
// limit, so that every follower gets them from the first on.
type run struct {
	ref     store.Ref
	digest  string
	tool    *tool.Tool
	call    tool.Call
	release func()
	epoch   atomic.Int64    // the highest epoch of the requests for the call
	claim   atomic.Int64    // the claim of the run in the journal; 0 before it is journaled
	begun   atomic.Bool     // the sandbox has the call's command
	ctx     context.Context //nolint:containedctx // made with the run, which can be cancelled before its goroutine begins
	cancel  context.CancelCauseFunc

	mu     sync.Mutex
	pieces []*toolsv1.CallToolResponse
	room   int  // remaining space for output, in bytes
	full   bool // something was left out
	// progress is the tool's last message.
	progress string
	changed  chan struct{} // closed at the next change
	done     bool
	result   *tool.Result
	err      error
	asks     asks
}

// asks is what a run asks a person.
type asks struct {
	question *commonv1.Question              // the open one
	answer   chan<- *commonv1.QuestionAnswer // takes its answer if the run waits for it
	taken    string                          // the id of the question that was answered last
}

// newRun returns a run whose context has the values of ctx and outlives it.
func newRun(ctx context.Context, ref store.Ref, digest string, t *tool.Tool, room int, release func()) *run {
	r := &run{ref: ref, digest: digest, tool: t, room: room, release: release, changed: make(chan struct{})}
	r.epoch.Store(ref.Epoch)
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return r
}

// own sets the claim under which this run owns the call.
func (r *run) own(claim int64) { r.claim.Store(claim) }

// raise sets a higher epoch of the requests for the call.
func (r *run) raise(epoch int64) {
	for {
		old := r.epoch.Load()
		if epoch <= old || r.epoch.CompareAndSwap(old, epoch) {
			return
		}
	}
}

// Progress implements tool.Sink.
func (r *run) Progress(message string) {
	r.mu.Lock()
	r.progress = message
	r.mu.Unlock()
	r.add(progressPiece(message), len(message))
}

// lastProgress returns the tool's last message.
func (r *run) lastProgress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// Output implements tool.Sink.
func (r *run) Output(stream string, data []byte) {
	r.add(outputPiece(stream, append([]byte(nil), data...)), len(data))
}

func (r *run) add(p *toolsv1.CallToolResponse, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full || r.done {
		return
	}
	if size > r.room || len(r.pieces) >= maxPieces {
		r.full = true
		p = progressPiece("more output follows, which is not shown while the call runs")
	} else {
		r.room -= size
	}
	r.pieces = append(r.pieces, p)
	r.wake()
}

// end tells all followers how the run ended.
func (r *run) end(result *tool.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done, r.result, r.err = true, result, err
	r.wake()
}

func (r *run) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// after returns the pieces from the i-th on, and how the run ended if it has.
func (r *run) after(i int) (pieces []*toolsv1.CallToolResponse, changed <-chan struct{}, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pieces[i:], r.changed, r.done
}

// open returns the question that waits for an answer.
func (r *run) open() *commonv1.Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asks.question
}

// follow sends the run's pieces from the first on, and its result. A slow
// follower does not slow the others. It returns the error of the run unchanged.
func (r *run) follow(ctx context.Context, send Send) error {
	for sent := 0; ; {
		question := r.open() // before the pieces: they came first
		pieces, changed, done := r.after(sent)
		for _, p := range pieces {
			if err := send(p); err != nil {
				return err
			}
		}
		sent += len(pieces)
		switch {
		case len(pieces) > 0:
		case question != nil && (!done || r.err == nil):
			return send(questionPiece(question))
		case done && r.err != nil:
			return r.err
		case done:
			return send(resultPiece(r.result))
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// wait waits for the end of the run, whatever its result.
func (r *run) wait(ctx context.Context) error {
	for {
		_, changed, done := r.after(0)
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
