package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/gateway/internal/stream/streamtest"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/rpc/rpctest"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// sessionLog is a log that grows, as StreamEvents shows it.
type sessionLog struct {
	mu     sync.Mutex
	grown  chan struct{} // closed when something changes
	events []*sessionv1.Event
	end    error
	open   int // streams
	sent   int // events, on all streams
	ended  chan struct{}
}

func newLog() *sessionLog {
	return &sessionLog{grown: make(chan struct{}), ended: make(chan struct{}, 1000)}
}

// add appends events, and ends the log with end unless it is nil.
func (l *sessionLog) add(end error, texts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range texts {
		l.events = append(l.events, textEvent(int64(len(l.events)+1), text))
	}
	l.end = end
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *sessionLog) count() (open, sent int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.sent
}

func (l *sessionLog) stream(r *sessionv1.StreamEventsRequest, st eventStream) error {
	l.mu.Lock()
	l.open++
	defer func() { l.open--; l.mu.Unlock(); l.ended <- struct{}{} }()
	at := r.GetAfterSeq()
	for first := true; ; first = false {
		for ; at < int64(len(l.events)); at++ {
			if err := st.Send(eventResponse(l.events[at])); err != nil {
				return err
			}
			l.sent++
		}
		if l.end != nil {
			return l.end
		}
		if first {
			if err := st.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{Progress: &sessionv1.Progress{Seq: at}}}); err != nil {
				return err
			}
		}
		grown := l.grown
		l.mu.Unlock()
		select {
		case <-grown:
		case <-st.Context().Done():
		}
		l.mu.Lock()
		if st.Context().Err() != nil {
			return st.Context().Err()
		}
	}
}

// leaving counts the connections that the HTTP server gives away.
func leaving(srv *http.Server) <-chan struct{} {
	gone := make(chan struct{}, 1000)
	srv.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateHijacked {
			gone <- struct{}{}
		}
	}
	return gone
}

// serveIdle is serve with the connections that the HTTP server gives away.
func serveIdle(t *testing.T, l *sessionLog, c gateway.Config, callers *auth.Authenticator) (*httptest.Server, <-chan struct{}) {
	t.Helper()
	f := &fake{events: l.stream}
	conn := rpctest.Dial(t, f.register)
	s, err := gateway.New(t.Context(), c, gateway.Deps{Session: conn, Tools: conn, Auth: callers, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(s.Handler())
	gone := leaving(srv.Config)
	srv.Start()
	t.Cleanup(func() { srv.Close(); _ = s.Close(); client.CloseIdleConnections() })
	return srv, gone
}

func TestIdleStreamsShareOneOfTheService(t *testing.T) {
	l := newLog()
	l.add(nil, "one", "two")
	c := gateway.DefaultConfig()
	c.MaxStreamsPerClient = 4
	srv, gone := serveIdle(t, l, c, openToAll(t))
	ctx, leave := context.WithCancel(t.Context())
	late := wantSSE.Clone()
	late["Last-Event-Id"] = []string{"1"}
	left := send(t, ctx, srv, request{"GET", eventsPath, "", wantSSE})
	events := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
	resumed := send(t, t.Context(), srv, request{"GET", eventsPath, "", late})
	lines := send(t, t.Context(), srv, request{"GET", eventsPath + ":stream", "", http.Header{"Accept": {"application/x-ndjson"}}})
	for range 4 {
		<-gone
	}
	open, sent := l.count()
	if open != 1 {
		t.Errorf("%d streams of the service are open", open)
	}
	if resp := do(t, srv, request{"GET", eventsPath, "", wantSSE}); resp.code != http.StatusTooManyRequests {
		t.Errorf("one stream more than allowed: %d", resp.code)
	}
	leave()
	_, _ = io.ReadAll(left.Body)
	_ = left.Body.Close()
	l.add(nil, "three\n", strings.Repeat("x", 3<<20), "five") // the fourth one is larger than what a feed keeps
	l.add(status.Error(codes.NotFound, "deleted"), "six")
	for _, stream := range []struct {
		resp *http.Response
		want string
	}{{events, "1 2 3 4 5 6 6 "}, {resumed, "2 3 4 5 6 6 "}} { // the error has the last id
		all := frames(t, stream.resp)
		if got := ids(all); got != stream.want || all[len(all)-1].Event != "stream.error" {
			t.Errorf("got %q, want %q, then %q", got, stream.want, all[len(all)-1].Event)
		}
	}
	text, err := io.ReadAll(lines.Body)
	_ = lines.Body.Close()
	if n := strings.Count(string(text), `{"result":{"event":{"firstSeq":"`); err != nil || n != 6 || !strings.HasPrefix(string(text[strings.LastIndex(string(text[:len(text)-1]), "\n")+1:]), `{"error":`) {
		t.Errorf("%d lines of events, %v", n, err)
	}
	if open, now := l.count(); open != 0 || now-sent < 4 {
		t.Errorf("%d streams of the service are open, %d events were sent", open, now-sent)
	}
	// The streams that have ended count no more.
	if resp := do(t, srv, request{"GET", eventsPath, "", wantSSE}); resp.code != http.StatusOK {
		t.Errorf("a further stream: %d", resp.code)
	}
}

func TestAnEventIsSentAndEncodedOnceForAllFollowers(t *testing.T) {
	l := newLog()
	srv, gone := serveIdle(t, l, gateway.DefaultConfig(), openToAll(t))
	const followers, events = 100, 20
	var all []*streamtest.Reader
	for range followers {
		resp := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
		defer func() { _ = resp.Body.Close() }()
		all = append(all, streamtest.NewReader(resp.Body))
	}
	for range followers {
		<-gone
	}
	for range events {
		l.add(nil, "text")
	}
	for _, r := range all {
		for n := 0; n < events; {
			f, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if f.Comment == "" {
				n++
			}
		}
	}
	if open, sent := l.count(); open != 1 || sent != events {
		t.Errorf("the service sent %d events on %d streams", sent, open)
	}
}

// A client that reuses a connection as it is being closed cannot know whether its request was taken.
func TestAnAnswerThatMayOutliveItsHandlerIsTheLastOfItsConnection(t *testing.T) {
	srv, _ := serveIdle(t, newLog(), gateway.DefaultConfig(), openToAll(t))
	resp := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
	defer func() { _ = resp.Body.Close() }()
	if !resp.Close {
		t.Errorf("the headers are %v, which promise a connection for further requests", resp.Header)
	}
}

func TestAClientThatLeavesFreesItsPlace(t *testing.T) {
	l := newLog()
	srv, gone := serveIdle(t, l, gateway.DefaultConfig(), openToAll(t))
	ctx, leave := context.WithCancel(t.Context())
	resp := send(t, ctx, srv, request{"GET", eventsPath, "", wantSSE})
	<-gone
	leave()
	_ = resp.Body.Close()
	for range 2 { // its own stream and its feed's
		<-l.ended
	}
}

func TestIdleStreamsEndWhenTheServerStops(t *testing.T) {
	l := newLog()
	f := &fake{events: l.stream}
	conn := rpctest.Dial(t, f.register)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := gateway.New(t.Context(), gateway.DefaultConfig(), gateway.Deps{Session: conn, Tools: conn, Auth: openToAll(t), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	c := rpc.DefaultConfig()
	c.HTTP, c.Grace = "127.0.0.1:0", 30*time.Second
	at := make(chan string, 1)
	c.OnListen = func(_, address string) { at <- address }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- rpc.Serve(ctx, c, telemetry.Discard(log), nil, s) }()
	srv := &httptest.Server{URL: "http://" + <-at}
	events := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
	defer func() { _ = events.Body.Close() }()
	first := streamtest.NewReader(events.Body)
	for range 2 {
		if f, err := first.Next(); err != nil || !strings.HasPrefix(f.Comment, "p") && f.Comment != "" {
			t.Fatal(f, err)
		}
	}
	stop()
	all, err := first.All()
	if err != nil || len(all) == 0 || all[len(all)-1].Event != "stream.error" {
		t.Errorf("the stream ends with %v, %v", all, err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestAnIdleStreamEndsWithItsKey(t *testing.T) {
	prove.Only(t, "a key is remembered for seconds")
	l, key := newLog(), &oneKey{}
	srv, gone := serveIdle(t, l, gateway.DefaultConfig(), knowing(t, auth.Config{Mode: auth.Required}, key))
	body := opened(t, t.Context(), srv, http.MethodGet, eventsPath+":stream", "", nil)
	<-gone
	key.revoked.Store(true)
	if all, err := io.ReadAll(body); err != nil || !strings.Contains(string(all), "event: stream.error") || !strings.Contains(string(all), apierr.ReasonCredentialInvalid) {
		t.Errorf("it ends with %v after %q", err, all)
	}
}
