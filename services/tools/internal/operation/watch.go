package operation

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

const (
	// notePause is the longest time between two writes of the output.
	notePause = 500 * time.Millisecond
	// retryWait is the first wait before the sandbox or the store is retried; it
	// doubles each time, up to retryMaxWait.
	retryWait    = 50 * time.Millisecond
	retryMaxWait = 5 * time.Second
)

// key identifies a watch: a new claim is a new watch.
type key struct {
	store.OperationKey
	claim int64
}

// watchers has the operations that a replica watches. Run's goroutine owns them.
type watchers struct {
	m       *Manager
	running map[key]*watcher
}

// look renews the watched operations, takes free ones, and releases those that
// were lost or have ended.
func (ws *watchers) look(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, ws.m.Lease)
	found, err := ws.m.Store.WatchOperations(reading, ws.m.Owner, ws.m.Lease, batch)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			ws.m.Log.WarnContext(ctx, "operations not looked for", "error", err.Error())
		}
		return
	}
	held := make(map[key]bool, len(found))
	for _, o := range found {
		k := key{o.OperationKey, o.Claim}
		held[k] = true
		w := ws.running[k]
		if w == nil {
			w = ws.m.watch(ctx, o)
			ws.running[k] = w
		}
		if o.Moved {
			w.leave()
			continue
		}
		if o.Stopping || o.Overdue {
			w.end(o.Overdue && !o.Stopping)
		}
	}
	for k, w := range ws.running {
		if !held[k] {
			w.cancel()
			<-w.done
			delete(ws.running, k)
		}
	}
}

func (ws *watchers) close() {
	for _, w := range ws.running {
		w.cancel()
	}
	for _, w := range ws.running {
		<-w.done
	}
}

// watcher watches one operation.
type watcher struct {
	m      *Manager
	op     store.Operation
	cancel context.CancelFunc
	done   chan struct{}
	stop   chan struct{} // closed when the operation is to end
	once   sync.Once
	left   chan struct{} // closed when its place is lost
	gone   sync.Once

	mu     sync.Mutex // guards what follows
	out    output
	offset [2]int64 // of stdout and stderr, read so far
	late   bool     // it is ended because its time is up
}

func (m *Manager) watch(ctx context.Context, o store.Operation) *watcher {
	ctx, cancel := context.WithCancel(as(ctx, o))
	w := &watcher{m: m, op: o, cancel: cancel, done: make(chan struct{}), stop: make(chan struct{}), left: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer cancel()
		w.run(ctx)
	}()
	return w
}

// end makes the operation end, because its time is up or a request asks for it.
func (w *watcher) end(late bool) {
	w.mu.Lock()
	w.late = w.late || late
	w.mu.Unlock()
	w.once.Do(func() { close(w.stop) })
}

// leave says that the operation ended with its place.
func (w *watcher) leave() { w.gone.Do(func() { close(w.left) }) }

// run reads the exec to its end and stores what it sees. When ctx ends, another
// watcher goes on.
func (w *watcher) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	helpers.Go(func() { w.kill(ctx) })
	noting, noted := context.WithCancel(ctx)
	defer noted()
	var notes sync.WaitGroup
	notes.Go(func() { w.note(noting) })
	following, drop := context.WithCancel(ctx)
	defer drop()
	helpers.Go(func() {
		select {
		case <-w.left:
			drop()
		case <-following.Done():
		}
	})
	exited, err := w.follow(following)
	noted()
	notes.Wait()
	if ctx.Err() != nil {
		return
	}
	n := w.snapshot()
	w.judge(&n, exited, err)
	n.Keep = w.m.Keep
	_ = try(ctx, func() error { return w.m.Store.NoteOperation(ctx, n) }, store.ErrUnavailable)
}

// kill stops the exec when the operation is to end.
func (w *watcher) kill(ctx context.Context) {
	select {
	case <-w.stop:
	case <-ctx.Done():
		return
	}
	_ = try(ctx, func() error { return w.m.stop(ctx, w.op) }, nil)
}

// note stores the output as it grows.
func (w *watcher) note(ctx context.Context) {
	tick := time.NewTicker(notePause)
	defer tick.Stop()
	last := w.op.Bytes
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n := w.snapshot()
		if n.Bytes <= last { // nothing new, or less than an earlier watcher has stored
			continue
		}
		if err := w.m.Store.NoteOperation(ctx, n); err == nil {
			last = n.Bytes
		}
	}
}

func (w *watcher) snapshot() store.OperationNote {
	w.mu.Lock()
	defer w.mu.Unlock()
	return store.OperationNote{
		OperationKey: w.op.OperationKey, Claim: w.op.Claim, State: store.Running,
		Head: append([]byte(nil), w.out.head...), Tail: w.out.end(), Bytes: w.out.total,
	}
}

// follow reads the exec's output to its end, over broken streams.
func (w *watcher) follow(ctx context.Context) (exited *sandboxv1.ExecExited, err error) {
	err = try(ctx, func() error {
		exited, err = w.read(ctx)
		if err == nil || gone(err) || apierr.Is(err, sandboxv1.ErrorReason_ERROR_REASON_CALL_CANCELLED) || ctx.Err() != nil {
			return err
		}
		return errAgain // there is no other sign that the operation has ended
	}, errAgain)
	return exited, err
}

var errAgain = errors.New("try again")

// try repeats do while it fails with the error while; nil stands for any error.
func try(ctx context.Context, do func() error, while error) error {
	for wait := retryWait; ; wait = min(2*wait, retryMaxWait) {
		err := do()
		if err == nil || while != nil && !errors.Is(err, while) {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// read opens one stream and reads it to its end.
func (w *watcher) read(ctx context.Context) (*sandboxv1.ExecExited, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.m.execs.Exec(ctx)
	if err != nil {
		return nil, err
	}
	attach := &sandboxv1.ExecAttach{Call: ref(w.op), StdoutOffset: w.offset[0], StderrOffset: w.offset[1], Operation: true}
	// Recv returns the error of Send.
	if err := stream.Send(&sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Attach{Attach: attach}}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	_ = stream.CloseSend()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, remote.Cut("the sandbox ended the stream before the command's end")
		}
		if err != nil {
			return nil, err
		}
		switch k := m.GetKind().(type) {
		case *sandboxv1.ExecResponse_Stdout:
			w.keep(0, k.Stdout)
		case *sandboxv1.ExecResponse_Stderr:
			w.keep(1, k.Stderr)
		case *sandboxv1.ExecResponse_Exited:
			return k.Exited, nil
		}
	}
}

// keep stores the new part of a piece.
func (w *watcher) keep(stream int, o *sandboxv1.ExecOutput) {
	data, end := o.GetData(), o.GetOffset()+int64(len(o.GetData()))
	if end <= w.offset[stream] {
		return
	}
	if o.GetOffset() < w.offset[stream] {
		data = data[w.offset[stream]-o.GetOffset():]
	}
	w.offset[stream] = end
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.add(data)
}
