package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/gateway/internal/stream/streamtest"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

type (
	eventStream = grpc.ServerStreamingServer[sessionv1.StreamEventsResponse]
	turnStream  = grpc.ServerStreamingServer[sessionv1.RunTurnResponse]
)

var wantSSE = http.Header{"Accept": {"text/event-stream"}}

const eventsPath = "/v1/sessions/s1/events"

// replay sends the events after the asked one, up to last, and ends.
func replay(last int64) func(*sessionv1.StreamEventsRequest, eventStream) error {
	return func(r *sessionv1.StreamEventsRequest, st eventStream) error {
		for seq := r.GetAfterSeq() + 1; seq <= last; seq++ {
			if err := st.Send(eventResponse(textEvent(seq, "é\n"+strconv.FormatInt(seq, 10)))); err != nil {
				return err
			}
		}
		return nil
	}
}

func frames(t *testing.T, resp *http.Response) []streamtest.Frame {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	all, err := streamtest.NewReader(resp.Body).All()
	if err != nil {
		t.Fatalf("read the stream: %v", err)
	}
	return all
}

func ids(all []streamtest.Frame) string {
	var b strings.Builder
	for _, f := range all {
		if f.Comment == "" {
			fmt.Fprintf(&b, "%s ", f.ID)
		}
	}
	return b.String()
}

func TestEventsAreSentAsFrames(t *testing.T) {
	f := &fake{events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		started := &sessionv1.Event{FirstSeq: 1, Seq: 1, Body: &sessionv1.Event_TurnStarted{TurnStarted: &sessionv1.TurnStarted{Model: "m"}}}
		progress := &sessionv1.StreamEventsResponse{Kind: &sessionv1.StreamEventsResponse_Progress{Progress: &sessionv1.Progress{Seq: 9}}}
		return errors.Join(st.Send(eventResponse(started)), st.Send(eventResponse(textEvent(7, "a\r\nb\u2028c\u2029d\u0085e"))),
			st.Send(progress), st.Send(eventResponse(&sessionv1.Event{FirstSeq: 10, Seq: 10})))
	}}
	srv := serve(t, f)
	resp := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
	for k, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-store, no-transform", "X-Accel-Buffering": "no"} {
		if got := resp.Header.Get(k); got != want {
			t.Errorf("%s: %q, want %q", k, got, want)
		}
	}
	want := []streamtest.Frame{
		{ID: "1", Event: "turn.started", Data: `{"firstSeq":"1","seq":"1","turnStarted":{"model":"m"}}`},
		{ID: "7", Event: "text.delta", Data: `{"firstSeq":"7","seq":"7","turn":"sessions/s1/turns/t1","step":1,"textDelta":{"text":"a\r\nb\u2028c\u2029d\u0085e"}}`},
		{ID: "7", Comment: "progress 9"},
		{ID: "10", Event: "message", Data: `{"firstSeq":"10","seq":"10"}`},
	}
	if diff := cmp.Diff(want, frames(t, resp)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

func TestStreamsResumeWhereTheyAreAsked(t *testing.T) {
	f := &fake{events: replay(4)}
	srv := serve(t, f)
	for _, c := range []struct {
		name, query string
		header      []string
		want        string
	}{
		{"from the beginning", "", nil, "1 2 3 4 "},
		{"after the query's number", "?after_seq=2", nil, "3 4 "},
		{"after the query's number in lowerCamelCase", "?afterSeq=2", nil, "3 4 "},
		{"after the last id", "", []string{"3"}, "4 "},
		{"after the last id, which beats the query", "?after_seq=1", []string{"3"}, "4 "},
		{"an empty last id is none", "?after_seq=1", []string{""}, "2 3 4 "},
		{"after everything", "", []string{"4"}, ""},
	} {
		for _, path := range []string{eventsPath, eventsPath + ":stream"} {
			t.Run(c.name+" at "+path, func(t *testing.T) {
				header := wantSSE.Clone()
				if c.header != nil {
					header["Last-Event-Id"] = c.header
				}
				resp := send(t, t.Context(), srv, request{"GET", path + c.query, "", header})
				if got := ids(frames(t, resp)); resp.StatusCode != http.StatusOK || got != c.want {
					t.Errorf("status %d, ids %q, want %q", resp.StatusCode, got, c.want)
				}
			})
		}
	}
}

// Deltas may have been folded since a client was cut off in their middle: it gets the event that covers its place whole.
func TestAStreamResumesInsideARangeThatWasFolded(t *testing.T) {
	folded := textEvent(6, "all of it")
	folded.FirstSeq = 2
	f := &fake{events: func(r *sessionv1.StreamEventsRequest, st eventStream) error {
		if r.GetAfterSeq() != 4 {
			return errors.New("the place to resume from did not arrive")
		}
		return errors.Join(st.Send(eventResponse(folded)), st.Send(eventResponse(textEvent(7, "next"))))
	}}
	srv := serve(t, f)
	header := wantSSE.Clone()
	header["Last-Event-Id"] = []string{"4"}
	want := []streamtest.Frame{
		{ID: "6", Event: "text.delta", Data: `{"firstSeq":"2","seq":"6","turn":"sessions/s1/turns/t1","step":1,"textDelta":{"text":"all of it"}}`},
		{ID: "7", Event: "text.delta", Data: `{"firstSeq":"7","seq":"7","turn":"sessions/s1/turns/t1","step":1,"textDelta":{"text":"next"}}`},
	}
	if diff := cmp.Diff(want, frames(t, send(t, t.Context(), srv, request{"GET", eventsPath, "", header}))); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

func TestMalformedResumePointsAreRefused(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	for _, c := range []struct {
		name, path string
		header     []string
		reason     string
	}{
		{"a last id in words", eventsPath, []string{"last"}, "BAD_LAST_EVENT_ID"},
		{"a negative last id", eventsPath, []string{"-1"}, "BAD_LAST_EVENT_ID"},
		{"a last id with a sign", eventsPath, []string{"+1"}, "BAD_LAST_EVENT_ID"},
		{"a last id that is too large", eventsPath, []string{"9223372036854775808"}, "BAD_LAST_EVENT_ID"},
		{"two last ids", eventsPath, []string{"1", "2"}, "BAD_LAST_EVENT_ID"},
		{"a query in words", eventsPath + "?after_seq=last", nil, "BAD_PARAMETER"},
		{"a negative query", eventsPath + "?after_seq=-1", nil, "BAD_PARAMETER"},
		{"an empty query", eventsPath + "?after_seq=", nil, "BAD_PARAMETER"},
		{"a page's parameter", eventsPath + "?page_size=2", nil, "BAD_PARAMETER"},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := wantSSE.Clone()
			if c.header != nil {
				header["Last-Event-Id"] = c.header
			}
			got := do(t, srv, request{"GET", c.path, "", header})
			if p := problemOf(t, got.body); got.code != http.StatusBadRequest || p.reason() != c.reason || p.field() == "" {
				t.Errorf("status %d: %s", got.code, got.body)
			}
			if m, _ := f.last(); m != nil {
				t.Errorf("the service was asked: %v", m)
			}
		})
	}
}

func TestAcceptDecidesOnTheForm(t *testing.T) {
	srv := serve(t, &fake{
		events: replay(1),
		turn: func(_ *sessionv1.RunTurnRequest, st turnStream) error {
			return st.Send(turnResponse(textEvent(1, "x")))
		},
	})
	const sse, lines, page = "text/event-stream", "application/x-ndjson", "application/json"
	run := "/v1/sessions/s1/turns:stream"
	for _, c := range []struct{ method, path, accept, want string }{
		{"GET", eventsPath, "", page},
		{"GET", eventsPath, "*/*", page},
		{"GET", eventsPath, "text/*", page},
		{"GET", eventsPath, "application/json", page},
		{"GET", eventsPath, "text/html, text/event-stream;q=0.9", sse},
		{"GET", eventsPath, "text/event-stream, application/json", sse},
		{"GET", eventsPath, "text/event-stream;q=0.1, application/json", page},
		{"GET", eventsPath, "text/event-stream;q=0", page},
		{"GET", eventsPath, ";;;,=", page},
		{"GET", eventsPath + ":stream", "", sse},
		{"GET", eventsPath + ":stream", "application/json", sse},
		{"GET", eventsPath + ":stream", "application/x-ndjson", lines},
		{"POST", run, "", sse},
		{"POST", run, "*/*", sse},
		{"POST", run, "text/event-stream", sse},
		{"POST", run, "application/json", sse},
		{"POST", run, "application/json;q=0.5, text/event-stream", sse},
	} {
		t.Run(c.method+" "+c.path+" accept "+c.accept, func(t *testing.T) {
			body := ""
			if c.method == "POST" {
				body = `{"text":"hi"}`
			}
			got := do(t, srv, request{c.method, c.path, body, http.Header{"Accept": {c.accept}}})
			if ct := got.header.Get("Content-Type"); got.code != http.StatusOK || ct != c.want {
				t.Errorf("status %d, Content-Type %q, want %q", got.code, ct, c.want)
			}
			if c.want == lines && !strings.HasPrefix(got.body, `{"result":{"event":{"firstSeq":"1",`) {
				t.Errorf("body %q", got.body)
			}
		})
	}
}

func TestATurnRunsAndReattaches(t *testing.T) {
	f := &fake{turn: func(r *sessionv1.RunTurnRequest, st turnStream) error {
		for _, seq := range []int64{2, 5, 9} {
			if seq > r.GetAfterSeq() {
				if err := st.Send(turnResponse(textEvent(seq, "x"))); err != nil {
					return err
				}
			}
		}
		return nil
	}}
	srv := serve(t, f)
	for _, c := range []struct {
		name, query, body, last string
		after                   int64
		want                    string
	}{
		{"at first", "", `{"text":"hi"}`, "", 0, "2 5 9 "},
		{"with the last id", "", `{"text":"hi"}`, "5", 5, "9 "},
		{"with the body's number", "", `{"text":"hi","afterSeq":"2"}`, "", 2, "5 9 "},
		{"with the query's number, which beats the body", "?after_seq=5", `{"text":"hi","afterSeq":"2"}`, "", 5, "9 "},
		{"with the last id, which beats the body", "", `{"text":"hi","afterSeq":"2"}`, "9", 9, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{"Idempotency-Key": {"k1"}}
			if c.last != "" {
				header.Set("Last-Event-ID", c.last)
			}
			resp := send(t, t.Context(), srv, request{"POST", "/v1/sessions/s1/turns:stream" + c.query, c.body, header})
			if got := ids(frames(t, resp)); resp.StatusCode != http.StatusOK || got != c.want {
				t.Errorf("status %d, ids %q, want %q", resp.StatusCode, got, c.want)
			}
			if key := resp.Header.Get("Idempotency-Key"); key != "k1" {
				t.Errorf("Idempotency-Key %q", key)
			}
			m, _ := f.last()
			if r := m.(*sessionv1.RunTurnRequest); r.GetRequestId() != "k1" || r.GetAfterSeq() != c.after || r.GetParent() != "sessions/s1" {
				t.Errorf("request %v", r)
			}
		})
	}
}

func TestErrorsBeforeAStreamKeepTheirStatus(t *testing.T) {
	f := &fake{fail: noSuchSession()}
	srv := serve(t, f)
	for _, r := range []request{
		{"GET", eventsPath, "", wantSSE},
		{"GET", eventsPath + ":stream", "", nil},
		{"POST", "/v1/sessions/s1/turns:stream", `{"text":"hi"}`, http.Header{"Idempotency-Key": {"k1"}}},
		{"POST", "/v1/sessions:converse", `{"open":{"session":"sessions/s9"}}`, nil},
	} {
		got := do(t, srv, r)
		if p := problemOf(t, got.body); got.code != http.StatusNotFound || p.reason() != "SESSION_NOT_FOUND" || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d: %s", r.path, got.code, got.body)
		}
		if key := got.header.Get("Idempotency-Key"); key != r.header.Get("Idempotency-Key") {
			t.Errorf("%s: Idempotency-Key %q", r.path, key)
		}
	}
	for name, body := range map[string]string{"no text": `{}`, "no body": ``, "an unknown field": `{"text":"x","shape":1}`, "half a body": `{"text"`} {
		got := do(t, srv, request{"POST", "/v1/sessions/s1/turns:stream", body, wantSSE})
		if got.code != http.StatusBadRequest {
			t.Errorf("%s: status %d: %s", name, got.code, got.body)
		}
	}
}

func TestErrorsWithinAStreamAreItsLastFrame(t *testing.T) {
	f := &fake{events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		return errors.Join(st.Send(eventResponse(textEvent(1, "x"))), apierr.Of(codes.Unavailable, sessionv1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE, "the store is away"))
	}}
	srv := serve(t, f)
	all := frames(t, send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE}))
	if len(all) != 2 || all[1].Event != "stream.error" || all[1].ID != "1" {
		t.Fatalf("frames %+v", all)
	}
	if p := problemOf(t, all[1].Data); p.Code != int(codes.Unavailable) || p.reason() != "STORE_UNAVAILABLE" {
		t.Errorf("error %+v", p)
	}
	got := do(t, srv, request{"GET", eventsPath + ":stream", "", http.Header{"Accept": {"application/x-ndjson"}}})
	lines := strings.Split(strings.TrimSpace(got.body), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], `{"error":{"code":14,"message":"the store is away"`) {
		t.Errorf("lines %q", lines)
	}
}

func TestAQuietStreamHasItsHeadersAtOnceAndHeartbeats(t *testing.T) {
	left := make(chan struct{})
	f := &fake{events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		<-st.Context().Done()
		close(left)
		return st.Context().Err()
	}}
	srv := serve(t, f, func(c *gateway.Config) { c.Heartbeat, c.Reconnect = 5*time.Millisecond, 1500*time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := send(t, ctx, srv, request{"GET", eventsPath, "", wantSSE})
	defer func() { _ = resp.Body.Close() }()
	r := streamtest.NewReader(resp.Body)
	for range 3 {
		if f, err := r.Next(); err != nil || f.Comment != "ping" {
			t.Fatalf("frame %+v, %v", f, err)
		}
	}
	if r.Retry != "1500" {
		t.Errorf("retry %q", r.Retry)
	}
	cancel() // the client goes
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("the service's stream goes on without its client")
	}
}

func TestASlowReaderIsCutOffAndSlowsNobody(t *testing.T) {
	big := strings.Repeat("x", 64<<10)
	sent, left := make(chan struct{}, 1<<20), make(chan struct{})
	f := &fake{events: func(r *sessionv1.StreamEventsRequest, st eventStream) error {
		if r.GetAfterSeq() == 0 { // the slow one
			defer close(left)
			for seq := int64(1); ; seq++ {
				if err := st.Send(eventResponse(textEvent(seq, big))); err != nil {
					return err
				}
				sent <- struct{}{}
			}
		}
		return replay(r.GetAfterSeq()+3)(r, st)
	}}
	srv := serve(t, f, func(c *gateway.Config) { c.WriteTimeout = 300 * time.Millisecond })
	slow := send(t, t.Context(), srv, request{"GET", eventsPath, "", wantSSE})
	defer func() { _ = slow.Body.Close() }()
	quick := send(t, t.Context(), srv, request{"GET", eventsPath + "?after_seq=1", "", wantSSE})
	if got := ids(frames(t, quick)); got != "2 3 4 " {
		t.Errorf("the quick reader got %q", got)
	}
	select {
	case <-left:
	case <-time.After(20 * time.Second):
		t.Fatal("the slow reader is still there")
	}
	// What the service could send before it was stopped: buffers of the kernel and of flow control, and no more.
	if n := len(sent); n > 512 {
		t.Errorf("%d MiB were taken from the service for a reader that takes nothing", n/16)
	}
	if _, err := io.Copy(io.Discard, slow.Body); err == nil {
		t.Error("the slow reader's stream looks complete")
	}
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	hold := func(_ *sessionv1.StreamEventsRequest, st eventStream) error {
		<-st.Context().Done()
		return st.Context().Err()
	}
	for _, c := range []struct {
		name      string
		limit     func(*gateway.Config)
		code      int
		retryable bool
	}{
		{"of one client", func(c *gateway.Config) { c.MaxStreamsPerClient = 2 }, http.StatusTooManyRequests, true},
		{"of all", func(c *gateway.Config) { c.MaxStreams = 2 }, http.StatusServiceUnavailable, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := serve(t, &fake{events: hold}, c.limit)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 2 {
				resp := send(t, ctx, srv, request{"GET", eventsPath, "", wantSSE})
				defer func() { _ = resp.Body.Close() }()
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("status %d", resp.StatusCode)
				}
			}
			got := do(t, srv, request{"GET", eventsPath, "", wantSSE})
			if p := problemOf(t, got.body); got.code != c.code || p.reason() != "TOO_MANY_STREAMS" || got.header.Get("Retry-After") == "" {
				t.Errorf("status %d: %s", got.code, got.body)
			}
			if got := do(t, srv, request{"GET", "/v1/tools", "", nil}); got.code != http.StatusOK {
				t.Errorf("a request that is no stream: status %d", got.code)
			}
		})
	}
}
