package wire

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/feed"
	"github.com/fairlead/fairlead/services/gateway/internal/idle"
	"github.com/fairlead/fairlead/services/gateway/internal/limit"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
)

// log is a session service that has one session, and breaks its streams off as told.
type log struct {
	sessionv1.UnimplementedSessionServiceServer
	mu      sync.Mutex
	streams []func(after int64, send func(*sessionv1.Event) error) error
	asked   []int64
}

func (l *log) StreamEvents(r *sessionv1.StreamEventsRequest, st grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]) error {
	l.mu.Lock()
	l.asked = append(l.asked, r.GetAfterSeq())
	next := l.streams[0]
	if len(l.streams) > 1 {
		l.streams = l.streams[1:]
	}
	l.mu.Unlock()
	return next(r.GetAfterSeq(), func(e *sessionv1.Event) error {
		return st.Send(&sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Event{Event: e}})
	})
}

func serve(t *testing.T, l sessionv1.SessionServiceServer, c Config) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	sessionv1.RegisterSessionServiceServer(g, l)
	go func() { _ = g.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); g.Stop() })
	if c.Heartbeat == 0 {
		c.Heartbeat = time.Minute
	}
	c.WriteTimeout, c.Timeout = time.Minute, time.Minute
	shared := stream.Shared{Feeds: feed.NewHub(sessionv1.NewSessionServiceClient(conn)), Keeper: idle.New(slog.New(slog.DiscardHandler))}
	t.Cleanup(func() { shared.Keeper.Close(); shared.Feeds.Wait() })
	s, err := New(c, conn, limit.NewStreams(limit.Bounds{}), shared, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(first, seq int64, s string) *sessionv1.Event {
	return &sessionv1.Event{FirstSeq: first, Seq: seq, Body: &sessionv1.Event_TextDelta{TextDelta: &sessionv1.TextDelta{Text: s}}}
}

func TestAMergedDeltaRepeatsNothing(t *testing.T) {
	l := &log{streams: []func(int64, func(*sessionv1.Event) error) error{
		func(_ int64, send func(*sessionv1.Event) error) error {
			_ = send(&sessionv1.Event{FirstSeq: 1, Seq: 1, Body: &sessionv1.Event_TextStarted{TextStarted: &sessionv1.TextStarted{}}})
			_ = send(text(2, 2, "über"))
			_ = send(text(3, 4, " den "))
			return status.Error(codes.Unavailable, "gone")
		},
		func(_ int64, send func(*sessionv1.Event) error) error {
			_ = send(text(2, 6, "über den Wolken"))
			_ = send(text(7, 7, "."))
			return status.Error(codes.NotFound, "deleted")
		},
	}}
	f := serve(t, l, Config{}).Follow(t.Context(), "sessions/s", 0)
	defer f.Close()
	var got []string
	last := int64(0)
	for e := range f.Events() {
		if e.GetFirstSeq() != last+1 {
			t.Errorf("event %d begins at %d", e.GetSeq(), e.GetFirstSeq())
		}
		last = e.GetSeq()
		got = append(got, e.GetTextDelta().GetText())
	}
	if s := strings.Join(got, "|"); s != "|über| den |Wolken|." {
		t.Errorf("got %q", s)
	}
	if status.Code(f.Err()) != codes.NotFound {
		t.Errorf("the end is %v", f.Err())
	}
	if len(l.asked) != 2 || l.asked[1] != 4 {
		t.Errorf("asked after %v", l.asked)
	}
}

// However a log of deltas is cut into streams and merged, a reader has every byte once.
func TestAnyCutsAndMergesReadTheSame(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		letters := "abcdefghijklmnopqrstuvwxyz"
		var want, got strings.Builder
		var all []*sessionv1.Event
		for i := range int64(20) {
			e := text(i+1, i+1, string(letters[i]))
			if random.IntN(6) == 0 {
				e = &sessionv1.Event{FirstSeq: i + 1, Seq: i + 1, Body: &sessionv1.Event_TextFinished{TextFinished: &sessionv1.TextFinished{}}}
			} else {
				want.WriteByte(letters[i])
			}
			all = append(all, e)
		}
		had := seen{}
		for had.last < 20 {
			// The store merges neighbors for good, and a stream breaks off anywhere.
			for i := 0; i+1 < len(all); i++ {
				if a, b := all[i], all[i+1]; a.GetTextDelta() != nil && b.GetTextDelta() != nil && random.IntN(5) == 0 {
					all[i] = text(a.GetFirstSeq(), b.GetSeq(), a.GetTextDelta().GetText()+b.GetTextDelta().GetText())
					all = slices.Delete(all, i+1, i+2)
				}
			}
			for i := 0; i < len(all) && random.IntN(12) > 0; i++ {
				got.WriteString(had.fresh(all[i]).GetTextDelta().GetText())
			}
		}
		if got.String() != want.String() {
			t.Fatalf("seed %d: got %q, want %q", seed, &got, &want)
		}
	}
}

// plain writes the text of deltas, and ends with the text "end".
type plain struct{}

func (plain) Event(dst []byte, e *sessionv1.Event) ([]byte, bool, error) {
	s := e.GetTextDelta().GetText()
	return append(dst, "data: "+s+"\n\n"...), s == "end", nil
}

func (plain) Ended(dst []byte, why error) []byte { return append(dst, why.Error()...) }

func get(t *testing.T, s *Server) (code int, body string, err error) {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := s.Follow(r.Context(), "sessions/s", 0)
		defer f.Close()
		if err := s.Send(w, r, "test", f, plain{}); err != nil {
			w.WriteHeader(FaultOf(err).Status)
		}
	}))
	defer h.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestAnAnswerThatCannotBeCompletedIsCutOff(t *testing.T) {
	gone := func(int64, func(*sessionv1.Event) error) error { return status.Error(codes.Unavailable, "gone") }
	begins := func(_ int64, send func(*sessionv1.Event) error) error {
		_ = send(text(1, 1, "a"))
		return status.Error(codes.Unavailable, "gone")
	}
	ends := func(_ int64, send func(*sessionv1.Event) error) error { return send(text(2, 2, "end")) }
	type streams = []func(int64, func(*sessionv1.Event) error) error
	code, body, err := get(t, serve(t, &log{streams: streams{begins, gone, ends}}, Config{}))
	if code != http.StatusOK || body != "data: a\n\ndata: end\n\n" || err != nil {
		t.Errorf("a service that comes back: %d %q %v", code, body, err)
	}
	code, body, err = get(t, serve(t, &log{streams: streams{begins, gone}}, Config{Patience: time.Millisecond}))
	if code != http.StatusOK || body != "data: a\n\n" || err == nil {
		t.Errorf("a service that stays away: %d %q %v; the connection should break", code, body, err)
	}
	code, _, err = get(t, serve(t, &log{streams: streams{gone}}, Config{Patience: time.Millisecond}))
	if code != http.StatusServiceUnavailable || err != nil {
		t.Errorf("a service that was never there: %d %v", code, err)
	}
}

func TestAQuietAnswerIsKeptAlive(t *testing.T) {
	beat := make(chan struct{})
	l := &log{streams: []func(int64, func(*sessionv1.Event) error) error{func(_ int64, send func(*sessionv1.Event) error) error {
		<-beat
		return send(text(1, 1, "end"))
	}}}
	s := serve(t, l, Config{Heartbeat: time.Millisecond})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := s.Follow(context.WithoutCancel(r.Context()), "sessions/s", 0)
		defer f.Close()
		_ = s.Send(w, r, "test", f, plain{})
	}))
	defer h.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	first := make([]byte, len(heartbeat))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != heartbeat {
		t.Fatalf("%q %v", first, err)
	}
	close(beat)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(rest), "data: end\n\n") {
		t.Errorf("%q %v", rest, err)
	}
}
