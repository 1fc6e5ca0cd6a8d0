package idle

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

// Reason is why a stream takes a step. Several may come together.
type Reason uint8

// Reasons.
const (
	News     Reason = 1 << iota // there is something to send
	Beat                        // nothing was sent for the interval of heartbeats
	Ended                       // the stream's context has ended
	Stopping                    // the server stops
)

const (
	// quiet is how long a stream sends nothing before its handler returns.
	quiet = 2 * time.Second
	// maxInput is how many bytes a client may send before its answer is complete.
	maxInput = 64 << 10
)

// Keeper has the streams of a server. It is safe for concurrent use.
type Keeper struct {
	log *slog.Logger

	mu       sync.Mutex
	streams  map[*Stream]struct{}
	stopping bool
}

// New returns a Keeper.
func New(log *slog.Logger) *Keeper { return &Keeper{log: log, streams: map[*Stream]struct{}{}} }

// Drain makes all streams end, and waits for them until ctx ends.
func (k *Keeper) Drain(ctx context.Context) {
	k.mu.Lock()
	k.stopping = true
	var all []*Stream
	for s := range k.streams {
		all = append(all, s)
	}
	k.mu.Unlock()
	for _, s := range all {
		s.Wake(Stopping)
	}
	for _, s := range all {
		select {
		case <-s.done:
		case <-ctx.Done():
			return
		}
	}
}

// Close cuts off the streams that are left, and waits for them.
func (k *Keeper) Close() {
	k.mu.Lock()
	var all []*Stream
	for s := range k.streams {
		all = append(all, s)
	}
	k.mu.Unlock()
	for _, s := range all {
		s.cut()
	}
	for _, s := range all {
		<-s.done
	}
}

// Stream is the open answer of a client that waits.
type Stream struct {
	keeper  *Keeper
	request *Request
	ctx     context.Context //nolint:containedctx // it lives as long as the stream
	every   time.Duration
	unwatch func() bool
	step    func(Reason) (over bool)
	done    chan struct{}

	mu      sync.Mutex
	pending Reason
	running bool // a step runs, or may not begin
	over    bool
	failed  bool // by a panic
	news    time.Time
	beat    *time.Timer
	conn    net.Conn      // after the handler has returned
	reader  chan struct{} // closed when nothing reads conn any more
}

// Open returns a Stream that takes no step before Hold. ctx is the one of Begin, or made of it.
func (k *Keeper) Open(ctx context.Context, heartbeat time.Duration) *Stream {
	s := &Stream{keeper: k, request: requestOf(ctx), ctx: ctx, every: heartbeat, done: make(chan struct{}), running: true, news: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat = time.AfterFunc(heartbeat, func() { s.Wake(Beat) })
	s.unwatch = context.AfterFunc(ctx, func() { s.Wake(Ended) })
	k.mu.Lock()
	defer k.mu.Unlock()
	k.streams[s] = struct{}{}
	if k.stopping {
		s.pending |= Stopping
	}
	return s
}

// Wake has the stream take a step. It never blocks.
func (s *Stream) Wake(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending |= why
	s.start()
}

// start starts the steps that are due. The caller holds s.mu.
func (s *Stream) start() {
	if s.running || s.over || s.pending == 0 {
		return
	}
	s.running = true
	go s.run()
}

// Hold has a stream take its steps until one reports that the stream is over, or the handler may return: then it is
// detached, and its steps go on. detach takes the connection from the server. After a panic of a step, Hold aborts the
// handler.
func (s *Stream) Hold(step func(Reason) (over bool), detach func() (net.Conn, error)) (detached bool) {
	s.mu.Lock()
	s.step, s.running = step, false
	s.start()
	s.mu.Unlock()
	stopping := rpc.Draining(s.ctx)
	look := time.NewTicker(quiet)
	defer look.Stop()
	for {
		select {
		case <-s.done:
			if s.failed {
				panic(http.ErrAbortHandler) // an answer that ends well would look complete
			}
			return false
		case <-stopping:
			stopping = nil
			s.Wake(Stopping)
		case <-look.C:
			if s.detach(detach) {
				return true
			}
		}
	}
}

// detach reports whether the stream goes on without its handler.
func (s *Stream) detach(take func() (net.Conn, error)) bool {
	s.mu.Lock()
	if s.request == nil || !s.request.able || s.running || s.over || time.Since(s.news) < quiet {
		s.mu.Unlock()
		return false
	}
	s.running = true // until the connection has changed hands
	s.mu.Unlock()
	conn, err := take()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	defer s.start()
	if err != nil {
		s.request.able = false
		return false
	}
	s.request.detach()
	s.conn, s.reader = conn, make(chan struct{})
	go s.read(conn)
	return true
}

// read sees the client leave. What it sends before its answer is complete would be a further request; a client repeats
// that on another connection, because this one ends with the answer.
func (s *Stream) read(conn net.Conn) {
	defer close(s.reader)
	buf := make([]byte, 64)
	for left := maxInput; left > 0; {
		n, err := conn.Read(buf)
		if left -= n; err != nil {
			break
		}
	}
	s.request.cancel(context.Canceled)
}

// run takes the steps that are due.
func (s *Stream) run() {
	for {
		s.mu.Lock()
		why := s.pending
		s.pending = 0
		if why == 0 {
			s.running = false
			s.mu.Unlock()
			return
		}
		if why&News != 0 {
			s.news = time.Now()
		}
		s.mu.Unlock()
		if s.take(why) {
			s.finish()
			return
		}
		s.beat.Reset(s.every)
	}
}

// take takes a step. A panic ends the stream as it would end a handler.
func (s *Stream) take(why Reason) (over bool) {
	defer func() {
		if p := recover(); p != nil {
			s.keeper.log.ErrorContext(s.ctx, "panic in a stream", "panic", p, "stack", string(debug.Stack()))
			over, s.failed = true, true
		}
	}()
	return s.step(why)
}

// finish ends the stream. The handler, if it waits, ends the rest.
func (s *Stream) finish() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.beat.Stop()
	s.unwatch()
	if s.conn != nil {
		_ = s.conn.Close()
		<-s.reader
		s.request.end()
	}
	s.keeper.mu.Lock()
	delete(s.keeper.streams, s)
	s.keeper.mu.Unlock()
	close(s.done)
}

// cut ends a stream whose reader may not take its end.
func (s *Stream) cut() {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
		s.request.cancel(context.Canceled)
	}
	s.Wake(Stopping)
}
