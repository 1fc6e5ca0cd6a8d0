package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func limited(l Limits) func(*world, *Options) {
	return func(_ *world, o *Options) {
		if l.Connections > 0 {
			o.Limits.Connections = l.Connections
		}
		if l.Idle > 0 {
			o.Limits.Idle = l.Idle
		}
		if l.Total > 0 {
			o.Limits.Total = l.Total
		}
		if l.Bytes > 0 {
			o.Limits.Bytes = l.Bytes
		}
	}
}

func rawRule(a, b int) []Rule {
	return []Rule{opened(a, b), {Name: "raw", Host: "raw.example.com", Ports: []int{a}, TLS: Raw}, {Name: "web", Host: "web.example.com", Ports: []int{a}}}
}

func TestConnectionsEnd(t *testing.T) {
	for _, x := range []struct {
		name   string
		limits Limits
		want   string
	}{
		{"when nothing moves", Limits{Idle: 50 * time.Millisecond}, "idle"},
		{"when they are old", Limits{Total: 50 * time.Millisecond}, "older"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t, rawRule, limited(x.limits))
			resp, _, b := w.raw(fmt.Sprintf("CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web)))
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("CONNECT: %d", resp.StatusCode)
			}
			_, _ = io.Copy(io.Discard, b) // until the proxy ends it
			if e := w.event(); e.Outcome != Limited || !strings.Contains(e.Message, x.want) {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// A server that reads nothing holds up what is sent to it. That ends with the connection
// all the same, and makes room outside as well as inside.
func TestConnectionsEndWithAllThatIsDoneForThem(t *testing.T) {
	const upload = "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 99999999999\r\n\r\n"
	for _, l := range []struct {
		name   string
		limits Limits
		want   string
	}{
		{"idle", Limits{Idle: 2 * time.Second}, "idle"},
		{"old", Limits{Total: 5 * time.Second}, "older"},
	} {
		for _, x := range []struct {
			name string
			dial func(*world) net.Conn
		}{
			{"a tunnel", func(w *world) net.Conn {
				_, c, _ := w.raw(fmt.Sprintf("CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web)))
				fmt.Fprintf(c, upload, "/deaf", "x")
				return c
			}},
			{"a request", func(w *world) net.Conn {
				c, err := net.Dial("tcp", w.addr)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(c, upload, fmt.Sprintf("http://web.example.com:%d/deaf", port(w.web)), "x")
				return c
			}},
			{"a request inside TLS", func(w *world) net.Conn {
				c := w.tls("cut.example.com", port(w.secure))
				fmt.Fprintf(c, upload, "/deaf", fmt.Sprintf("cut.example.com:%d", port(w.secure)))
				return c
			}},
		} {
			t.Run(x.name+" that is "+l.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(a, b int) []Rule {
					return append(rawRule(a, b), Rule{Host: "cut.example.com", Ports: []int{b}, TLS: Intercept})
				}, limited(l.limits))
				c := x.dial(w)
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, endless{}) // until the proxy ends it
				if e := w.event(); e.Outcome != Limited || !strings.Contains(e.Message, l.want) {
					t.Errorf("event %+v", e)
				}
				w.until("no connection is left outside", func() bool { return len(w.server.places) == 0 })
			})
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestBytesAreBounded(t *testing.T) {
	w := newWorld(t, rawRule, limited(Limits{Bytes: 100 << 10}))
	w.other = func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 1<<20)) }
	resp, _, b := w.raw(fmt.Sprintf("CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web)))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %d", resp.StatusCode)
	}
	if n, _ := io.Copy(io.Discard, b); n > 200<<10 {
		t.Errorf("%d bytes came through a tunnel of %d", n, 100<<10)
	}
	if e := w.event(); e.Outcome != Limited {
		t.Errorf("the tunnel's event %+v", e)
	}
	_, body := w.ask(w.client(nil), http.MethodGet, fmt.Sprintf("http://web.example.com:%d/", port(w.web)))
	if len(body) > 200<<10 {
		t.Errorf("%d bytes came in an answer", len(body))
	}
	if e := w.event(); e.Outcome != Limited {
		t.Errorf("the request's event %+v", e)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t, rawRule, limited(Limits{Connections: 2}))
	connect := fmt.Sprintf("CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web))
	_, first, _ := w.raw(connect)
	w.raw(connect)
	if resp, _, _ := w.raw(""); resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("the third connection: %d", resp.StatusCode)
	}
	if e := w.event(); e.Outcome != Limited {
		t.Errorf("event %+v", e)
	}
	_ = first.Close()
	w.event() // of the first: its place is free
	if resp, _, _ := w.raw(connect); resp.StatusCode != http.StatusOK {
		t.Errorf("after one has ended: %d", resp.StatusCode)
	}
}

func TestClosingEndsEverything(t *testing.T) {
	w := newWorld(t, rawRule)
	started := make(chan struct{})
	w.other = func(rw http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(rw).Flush()
		close(started)
		<-r.Context().Done()
	}
	_, _, tunnel := w.raw(fmt.Sprintf("CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web)))
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		w.ask(w.client(nil), http.MethodGet, fmt.Sprintf("http://web.example.com:%d/", port(w.web)))
	}()
	<-started
	if err := w.server.Close(); err != nil {
		t.Error(err)
	}
	<-answered
	if _, err := io.Copy(io.Discard, tunnel); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the tunnel: %v", err)
	}
	for range 2 {
		if e := w.event(); e.Outcome != Aborted {
			t.Errorf("event %+v", e)
		}
	}
	if c, err := net.Dial("tcp", w.addr); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
}

func TestBytesArriveAsTheyCome(t *testing.T) {
	w := newWorld(t, rawRule)
	next := make(chan struct{})
	w.other = func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, "one")
		_ = http.NewResponseController(rw).Flush()
		<-next
		_, _ = io.WriteString(rw, "two")
	}
	resp, _, _ := w.raw(fmt.Sprintf("GET http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web)))
	b := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != "one" {
		t.Fatalf("%q, %v", b, err)
	}
	close(next)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two" {
		t.Errorf("%q, %v", rest, err)
	}
}

// A connection to the outside waits a while for the next request. So many hosts are no way
// to have more of them than the sandbox may have itself.
func TestConnectionsThatWaitAreBounded(t *testing.T) {
	const most = 8
	var open atomic.Int64
	changed := make(chan struct{}, 1000)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
		changed <- struct{}{}
	}
	s.Start()
	defer s.Close()
	rules := []Rule{{Host: "*", Ports: []int{port(s)}}, opened(port(s))}
	w := newWorld(t, func(int, int) []Rule { return rules }, func(_ *world, o *Options) { o.Ceiling, o.Limits.Connections = rules, most })
	c := w.client(nil)
	for i := range 100 {
		if status, body := w.ask(c, "GET", fmt.Sprintf("http://h%d.org:%d/", i, port(s))); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	late := time.After(10 * time.Second)
	for open.Load() > most {
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%d connections are open", open.Load())
		}
	}
}

// A client that goes away leaves no lookup and no dial behind.
func TestDialsEndWithTheirRequests(t *testing.T) {
	var now, most atomic.Int64
	began := make(chan struct{}, 1000)
	w := newWorld(t, rawRule, limited(Limits{Connections: 2}), func(_ *world, o *Options) {
		o.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			defer now.Add(-1)
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	for i := range 40 {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			fmt.Fprintf(c, "GET http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web))
		} else {
			fmt.Fprintf(c, "CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\n\r\n", port(w.web))
		}
		<-began
		_ = c.Close()
		if e := w.event(); e.Outcome == Done {
			t.Errorf("event %+v", e)
		}
		w.until("the connection is gone", func() bool {
			w.server.mu.Lock()
			defer w.server.mu.Unlock()
			return len(w.server.conns) == 0
		})
	}
	if n := most.Load(); n > 2 {
		t.Errorf("%d dials at once, of a sandbox with 2 connections", n)
	}
	w.until("all places outside are free", func() bool { return len(w.server.places) == 0 && now.Load() == 0 })
}

func TestDialsThatFailLeaveTheirPlaces(t *testing.T) {
	w := newWorld(t, rawRule, limited(Limits{Connections: 2}))
	w.mu.Lock()
	w.names["raw.example.com"] = []netip.Addr{}
	w.mu.Unlock()
	for range 5 {
		resp, c, _ := w.raw(fmt.Sprintf("CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port(w.web)))
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = c.Close()
		w.until("the connection is gone", func() bool {
			w.server.mu.Lock()
			defer w.server.mu.Unlock()
			return len(w.server.conns) == 0
		})
	}
	if status, body := w.ask(w.client(nil), http.MethodGet, fmt.Sprintf("http://web.example.com:%d/", port(w.web))); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func TestPlacesOutsideAreWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{places: make(chan struct{}, 1), transport: &http.Transport{}}
		if err := s.takePlace(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(placeTimeout/2, func() { <-s.places })
		if err := s.takePlace(t.Context()); err != nil {
			t.Errorf("a place that gets free is not taken: %v", err)
		}
		var no *RefusalError
		if err := s.takePlace(t.Context()); !errors.As(err, &no) || no.Outcome != Limited {
			t.Errorf("without a place: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), placeTimeout/2)
		defer cancel()
		if err := s.takePlace(ctx); !errors.As(err, &no) || no.Outcome != Aborted {
			t.Errorf("who goes away before: %v", err)
		}
	})
}

// A header of very many short fields takes up many times its length, for as long as the
// request lasts.
func TestHeaderFieldsAreBounded(t *testing.T) {
	w := newWorld(t, func(a, b int) []Rule {
		return append(rawRule(a, b), Rule{Host: "cut.example.com", Ports: []int{b}, TLS: Intercept})
	})
	w.other = func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/many" {
			return
		}
		for i := range 300 {
			rw.Header().Add("A", strconv.Itoa(i))
		}
	}
	var distinct strings.Builder
	for i := range 300 {
		fmt.Fprintf(&distinct, "a%d:\r\n", i)
	}
	same, big := strings.Repeat("a:\r\n", 300), "a: "+strings.Repeat("x", 100<<10)+"\r\n"
	web, secure := port(w.web), port(w.secure)
	for _, x := range []struct {
		name, head, header string
		tls                bool
		status             int
		want               string
	}{
		{"distinct ones", fmt.Sprintf("POST http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n", web), distinct.String(), false, 431, "header fields, more than 256"},
		{"the same one", fmt.Sprintf("GET http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\n", web), same, false, 431, "header fields, more than 256"},
		{"a tunnel's", fmt.Sprintf("CONNECT raw.example.com:%d HTTP/1.1\r\nHost: x\r\n", web), same, false, 431, "header fields, more than 256"},
		{"inside TLS", fmt.Sprintf("GET / HTTP/1.1\r\nHost: cut.example.com:%d\r\n", secure), same, true, 431, "header fields, more than 256"},
		{"an answer's", fmt.Sprintf("GET http://web.example.com:%d/many HTTP/1.1\r\nHost: x\r\n", web), "", false, 502, "header fields, more than 256"},
		{"a few", fmt.Sprintf("GET http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\n", web), strings.Repeat("a:\r\n", 200), false, 200, ""},
		{"a long one", fmt.Sprintf("GET http://web.example.com:%d/ HTTP/1.1\r\nHost: x\r\n", web), big, false, 431, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			var c net.Conn
			if x.tls {
				c = w.tls("cut.example.com", secure)
			} else {
				var err error
				if c, err = net.Dial("tcp", w.addr); err != nil {
					t.Fatal(err)
				}
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = io.WriteString(c, x.head+x.header+"\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != x.status || !strings.Contains(string(body), x.want) {
				t.Errorf("%d %q", resp.StatusCode, body)
			}
			if x.want == "" {
				return
			}
			if e := w.event(); e.Outcome == Done || !strings.Contains(e.Message, x.want) {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// What was under way when a connection was closed does not keep it.
func TestAClosedConnectionWaitsForNothing(t *testing.T) {
	w := newWorld(t, rawRule)
	m := newMeter(nil, w.server)
	m.stop()
	m.count(1)
	if m.idle.Stop() {
		t.Error("it is kept until it would have been idle")
	}
}
