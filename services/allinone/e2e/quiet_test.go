package e2e

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

const (
	// quietInterval is the interval of heartbeats and progress. The proxy cuts after silence; its ratio to the interval
	// is that of a usual proxy (15 s) to the default (5 s).
	quietInterval = 500 * time.Millisecond
	silence       = 3 * quietInterval
	// heartbeats of a stream that a test waits for: more than twice the silence.
	heartbeats = 8
)

// A turn that waits for a person is quiet for as long as the person likes.
func TestQuietStreamsOutliveAProxyThatCutsSilentOnes(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{
		"FAIRLEAD_SESSION_STREAM_PROGRESS_INTERVAL=" + quietInterval.String(), "FAIRLEAD_GATEWAY_HEARTBEAT=" + quietInterval.String(),
	}})
	web, rpcs := cuttingProxy(t, s.http), cuttingProxy(t, s.grpc)
	conn, err := grpc.NewClient(rpcs, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	sessions := sessionv1.NewSessionServiceClient(conn)
	quiet, asksSSE, asksLines, asksRPC := s.session(t, "coder"), s.session(t, "asker"), s.session(t, "asker"), s.session(t, "asker")
	for name, stream := range map[string]func(ctx context.Context, t *testing.T) int{
		"StreamEvents as server-sent events": func(ctx context.Context, t *testing.T) int {
			return s.heartbeats(ctx, t, web, "GET", "/v1/"+quiet+"/events:stream", "", "text/event-stream")
		},
		"StreamEvents as lines": func(ctx context.Context, t *testing.T) int {
			return s.heartbeats(ctx, t, web, "GET", "/v1/"+quiet+"/events:stream", "", "application/x-ndjson")
		},
		"RunTurn as server-sent events": func(ctx context.Context, t *testing.T) int {
			return s.heartbeats(ctx, t, web, "POST", "/v1/"+asksSSE+"/turns:stream", `{"text":"ask"}`, "text/event-stream")
		},
		"RunTurn as lines": func(ctx context.Context, t *testing.T) int {
			return s.heartbeats(ctx, t, web, "POST", "/v1/"+asksLines+"/turns:stream", `{"text":"ask"}`, "application/x-ndjson")
		},
		"Converse as lines": func(ctx context.Context, t *testing.T) int {
			return s.heartbeats(ctx, t, web, "POST", "/v1/sessions:converse", `{"open":{"session":"`+quiet+`"}}`, "application/x-ndjson")
		},
		"StreamEvents over gRPC": func(ctx context.Context, t *testing.T) int {
			st, err := sessions.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: quiet})
			return progress(t, err, func() (*sessionv1.Progress, error) { r, err := st.Recv(); return r.GetProgress(), err })
		},
		"RunTurn over gRPC": func(ctx context.Context, t *testing.T) int {
			st, err := sessions.RunTurn(ctx, &sessionv1.RunTurnRequest{Parent: asksRPC, Text: "ask"})
			return progress(t, err, func() (*sessionv1.Progress, error) { r, err := st.Recv(); return r.GetProgress(), err })
		},
		"Converse over gRPC": func(ctx context.Context, t *testing.T) int {
			st, err := sessions.Converse(ctx)
			if err == nil {
				err = st.Send(&sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Open{Open: &sessionv1.ConverseOpen{Session: quiet}}})
			}
			return progress(t, err, func() (*sessionv1.Progress, error) { r, err := st.Recv(); return r.GetProgress(), err })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if n := stream(ctx, t); n < heartbeats {
				t.Errorf("the stream was cut after %d heartbeats", n)
			}
		})
	}
}

// heartbeats reads a stream over HTTP until it has had enough heartbeats, or is cut, and returns their number.
func (s *system) heartbeats(ctx context.Context, t *testing.T, address, method, path, body, accept string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if cache := resp.Header.Get("Cache-Control"); resp.StatusCode != http.StatusOK || !strings.Contains(cache, "no-transform") || resp.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%s with the headers %v", resp.Status, resp.Header)
	}
	n := 0
	for lines := bufio.NewScanner(resp.Body); n < heartbeats && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ":") || strings.HasPrefix(lines.Text(), `{"result":{"progress":`) {
			n++
		}
	}
	return n
}

// progress is heartbeats for a stream over gRPC.
func progress(t *testing.T, err error, receive func() (*sessionv1.Progress, error)) (n int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for n < heartbeats {
		p, err := receive()
		if err != nil {
			t.Log(err)
			return n
		}
		if p != nil {
			n++
		}
	}
	return n
}

// cuttingProxy forwards connections to an address, and cuts one when the server has been silent on it.
func cuttingProxy(t *testing.T, to string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { forward(client, to) })
		}
	})
	return l.Addr().String()
}

func forward(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buf := make([]byte, 32<<10)
	for {
		_ = server.SetReadDeadline(time.Now().Add(silence))
		n, err := server.Read(buf)
		if err == nil {
			_, err = client.Write(buf[:n])
		}
		if err != nil {
			break
		}
	}
	_ = client.Close()
	up.Wait()
}
