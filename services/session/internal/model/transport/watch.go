// Package transport sends requests to the APIs of models and reads their streams: one POST with its credential, the
// watch over its answer, server-sent events and their variants, and what servers report as errors.
package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Limits of an answer, in bytes, so that a faulty server cannot use up our
// memory.
const (
	maxStream = 64 << 20
	maxError  = 1 << 20
)

// maxEnd is how long a server may take to end the stream of a complete answer.
const maxEnd = 2 * time.Second

var (
	errIdle   = errors.New("silent for too long")
	errTooBig = errors.New("too many bytes")
)

// client is shared by all requests, for its connections. It has no timeout: a
// Watch ends silent requests.
var client = &http.Client{
	Transport: http.DefaultTransport.(*http.Transport).Clone(),
	CheckRedirect: func(*http.Request, []*http.Request) error { // a redirect would send the key elsewhere
		return http.ErrUseLastResponse
	},
}

// CloseIdle closes connections that no request uses, for tests that count goroutines.
func CloseIdle() { client.CloseIdleConnections() }

// Watch is one request and its streamed answer. It ends both when no byte has
// come for a while.
type Watch struct {
	provider string
	key      string // never in an error
	idle     time.Duration
	cancel   context.CancelFunc
	timer    *time.Timer
	silent   atomic.Bool // the idle limit ended it
	began    atomic.Bool
	request  string // the provider's id of the request
	gathered gather
	ended    <-chan struct{} // of the request's context
}

// Begin starts to watch. The request must use the returned context, and the
// caller must call End. Errors do not contain the key. An idle of 0 means no
// limit.
func Begin(ctx context.Context, provider, key string, idle time.Duration) (context.Context, *Watch) {
	w := &Watch{provider: provider, key: key, idle: idle}
	ctx, w.cancel = context.WithCancel(ctx)
	w.ended = ctx.Done()
	reading.streams.Add(1)
	if idle > 0 {
		w.timer = time.AfterFunc(idle, w.expire)
	}
	return ctx, w
}

func (w *Watch) expire() {
	w.silent.Store(true)
	w.cancel()
}

// End stops watching and ends the request if it still runs. It emits the pieces that
// came before a failure. It is called once.
func (w *Watch) End() {
	_ = w.gathered.flush()
	reading.streams.Add(-1)
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel()
}

// Silent reports whether the idle limit ended the request.
func (w *Watch) Silent() bool { return w.silent.Load() }

// Began reports whether the server has begun to stream an answer.
func (w *Watch) Began() bool { return w.began.Load() }

// Complete notes that the answer is complete. The server gets maxEnd for the end
// of the stream and perhaps the usage.
func (w *Watch) Complete() {
	switch {
	case w.timer == nil:
		w.idle = maxEnd
		w.timer = time.AfterFunc(maxEnd, w.expire)
	case w.idle > maxEnd:
		w.idle = maxEnd
		w.touch()
	}
}

func (w *Watch) answered(resp *http.Response) (*http.Response, error) {
	w.touch()
	w.request = requestID(resp.Header)
	if t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode/100 == 2 && t != "text/html" {
		w.began.Store(true)
		resp.Body = &stream{body: body{ReadCloser: resp.Body, watch: w, left: maxStream}}
		if t == frameType {
			resp.Body = &frames{Closer: resp.Body, from: bufio.NewReader(resp.Body)}
		}
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 == 3 {
		return nil, &model.Error{Kind: model.Refused, Status: resp.StatusCode, RequestID: w.request, Message: fmt.Sprintf("the model provider %s answered with a redirection; check its base URL", w.provider)}
	}
	said, _ := io.ReadAll(io.LimitReader(&body{ReadCloser: resp.Body, watch: w, left: maxError}, maxError)) // a part of it is enough
	return nil, w.refused(resp.StatusCode, resp.Header, said)
}

var goodRequestID = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,100}$`)

// requestID returns the provider's id of a request; empty for one that should not be
// shown.
func requestID(h http.Header) string {
	for _, name := range []string{"x-request-id", "request-id"} {
		if id := h.Get(name); goodRequestID.MatchString(id) {
			return id
		}
	}
	return ""
}

func (w *Watch) touch() {
	if w.timer != nil {
		w.timer.Reset(w.idle)
	}
}

// body reports every byte to its watch, and ends after a number of them.
type body struct {
	io.ReadCloser
	watch *Watch
	left  int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooBig
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if n > 0 {
		b.watch.touch()
	}
	return n, err
}

// stream is the body of an answer. It is read at the pace of all streams.
type stream struct {
	body
	last  time.Time // when it was last read
	pause *time.Timer
}

// Read emits what the reads before it brought, and reads.
func (s *stream) Read(p []byte) (int, error) {
	if err := s.watch.gathered.flush(); err != nil {
		return 0, err
	}
	if wait := reading.pause(s.last); wait > 0 {
		s.wait(wait)
	}
	n, err := s.body.Read(p)
	s.last = time.Now()
	return n, err
}

func (s *stream) wait(d time.Duration) {
	if s.pause == nil {
		s.pause = time.NewTimer(d)
	} else {
		s.pause.Reset(d)
	}
	select {
	case <-s.pause.C:
	case <-s.watch.ended:
	}
}

// Fail converts an error of the connection, or the early end of a stream (a nil
// err), into the error of Model.Stream. ctx is the one that was passed to
// Begin.
func (w *Watch) Fail(ctx context.Context, err error) error {
	if w.gathered.err != nil {
		return w.gathered.err
	}
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	var ours *model.Error
	if errors.As(err, &ours) {
		return ours
	}
	e := &model.Error{Kind: model.Unavailable, Midway: w.Began(), RequestID: w.request, Err: err}
	var where *url.Error
	switch {
	case w.Silent():
		e.Message, e.Err = fmt.Sprintf("the model provider %s was silent for %s", w.provider, w.idle), errIdle
	case errors.Is(err, errTooBig):
		e.Kind, e.Message = model.Refused, fmt.Sprintf("the model provider %s sent more than %d bytes", w.provider, maxStream)
	case w.Began():
		e.Message = fmt.Sprintf("the stream of the model provider %s broke off before the answer was complete", w.provider)
	case errors.As(err, &where):
		e.Message = fmt.Sprintf("the model provider %s could not be reached: %v", w.provider, where.Err)
	default:
		e.Message = fmt.Sprintf("the model provider %s could not be reached", w.provider)
	}
	return e
}

// RetryAfter returns the wait that the server requests: retry-after-ms,
// otherwise retry-after in seconds or as an HTTP date; 0 without a request.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil {
		return span(ms / 1000)
	}
	v := h.Get("retry-after")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return span(s)
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// span converts seconds to a duration; nonsense and more than a day are
// bounded.
func span(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 24*3600) * float64(time.Second))
}
