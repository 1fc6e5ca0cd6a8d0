package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// endless serves streams that end with their callers. Each says when it has begun.
func endless() (f *fake, began chan struct{}) {
	began = make(chan struct{}, 8)
	wait := func(ctx context.Context) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return &fake{
		events: func(_ *sessionv1.StreamEventsRequest, st eventStream) error { return wait(st.Context()) },
		export: func(_ *sessionv1.ExportSessionRequest, st grpc.ServerStreamingServer[sessionv1.ExportSessionResponse]) error {
			if err := st.Send(&sessionv1.ExportSessionResponse{Data: make([]byte, 64<<10)}); err != nil {
				return err
			}
			return wait(st.Context())
		},
	}, began
}

// opened begins a request of ann and returns its answer's body. The request ends with ctx.
func opened(t *testing.T, ctx context.Context, srv *httptest.Server, method, path, contentType string, body io.Reader) io.Reader { //nolint:revive // t comes first here
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, srv.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer fl_ann")
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %d", path, resp.StatusCode)
	}
	return resp.Body
}

func TestEachOpenHTTPStreamEndsWithItsKey(t *testing.T) {
	prove.Only(t, "a key is remembered for seconds")
	f, began := endless()
	key := &oneKey{}
	srv := serveAs(t, f, gateway.DefaultConfig(), knowing(t, auth.Config{Mode: auth.Required}, key))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	inputs, in := io.Pipe()
	defer func() { _ = in.Close() }()

	events := opened(t, ctx, srv, http.MethodGet, eventsPath+":stream", "", nil)
	conversation := opened(t, ctx, srv, http.MethodPost, "/v1/sessions:converse", "application/x-ndjson", io.MultiReader(strings.NewReader(open), inputs))
	file := opened(t, ctx, srv, http.MethodGet, "/v1/sessions/s1:export", "", nil)
	ask, err := proto.Marshal(&sessionv1.StreamEventsRequest{Parent: "sessions/s1"})
	if err != nil {
		t.Fatal(err)
	}
	web := make(chan string, 1)
	go func() {
		_, trailer, _ := webCall(t, srv, sessionv1.SessionService_StreamEvents_FullMethodName, "application/grpc-web+proto", webFrame(0, ask), "authorization", "Bearer fl_ann")
		web <- trailer
	}()
	for range 3 {
		<-began
	}
	key.revoked.Store(true)
	revoked := time.Now()

	if all, err := io.ReadAll(events); err != nil || !strings.Contains(string(all), "event: stream.error") || !strings.Contains(string(all), apierr.ReasonCredentialInvalid) {
		t.Errorf("server-sent events end with %v after %q", err, all)
	}
	if all, err := io.ReadAll(conversation); err != nil || !strings.Contains(string(all), `{"error":`) || !strings.Contains(string(all), apierr.ReasonCredentialInvalid) {
		t.Errorf("a conversation ends with %v after %q", err, all)
	}
	if _, err := io.ReadAll(file); err == nil {
		t.Error("a download that is cut off looks like a whole file")
	}
	if trailer := strings.ReplaceAll(<-web, " ", ""); !strings.Contains(trailer, "grpc-status:16") {
		t.Errorf("gRPC-Web ends with %q", trailer)
	}
	if took := time.Since(revoked); took > 10*time.Second {
		t.Errorf("the streams end after %s", took)
	}
}

func TestEachOpenStreamOverGRPCEndsWithItsKey(t *testing.T) {
	prove.Only(t, "a key is remembered for seconds")
	f, began := endless()
	key := &oneKey{}
	conn, _ := serveGRPCAs(t, f, knowing(t, auth.Config{Mode: auth.Required}, key))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer fl_ann")
	sessions := sessionv1.NewSessionServiceClient(conn)

	events, err := sessions.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: "sessions/s1"})
	if err != nil {
		t.Fatal(err)
	}
	conversation, err := sessions.Converse(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := conversation.Send(&sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_Open{Open: &sessionv1.ConverseOpen{Session: "sessions/s1"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := conversation.Recv(); err != nil {
		t.Fatal(err)
	}
	<-began
	key.revoked.Store(true)

	if _, err := events.Recv(); apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != apierr.ReasonCredentialInvalid {
		t.Errorf("a stream of events ends with %v", err)
	}
	for err == nil {
		_, err = conversation.Recv()
	}
	if apierr.Code(err) != codes.Unauthenticated || apierr.Reason(err) != apierr.ReasonCredentialInvalid {
		t.Errorf("a conversation ends with %v", err)
	}
	turn := &sessionv1.ConverseRequest{Kind: &sessionv1.ConverseRequest_CreateTurn{CreateTurn: &sessionv1.CreateTurnRequest{Parent: "sessions/s1"}}}
	if err := conversation.Send(turn); !errors.Is(err, io.EOF) {
		t.Errorf("an input after the end: %v", err)
	}
}
