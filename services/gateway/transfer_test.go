package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/gen/openapi"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func (f *fake) ExportSession(r *sessionv1.ExportSessionRequest, st grpc.ServerStreamingServer[sessionv1.ExportSessionResponse]) error {
	if err := f.note(st.Context(), r); err != nil {
		return err
	}
	return f.export(r, st)
}

func (f *fake) ImportSession(st grpc.ClientStreamingServer[sessionv1.ImportSessionRequest, sessionv1.ImportSessionResponse]) error {
	first, err := st.Recv()
	if err != nil {
		return err
	}
	if err := f.note(st.Context(), first.GetOpen()); err != nil {
		return err
	}
	if err := st.SetHeader(metadata.Pairs("idempotency-key", first.GetOpen().GetRequestId())); err != nil {
		return err
	}
	var file bytes.Buffer
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		file.Write(m.GetData())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uploads = append(f.uploads, file.String())
	if strings.HasPrefix(file.String(), "bad") {
		return apierr.Of(codes.InvalidArgument, sessionv1.ErrorReason_ERROR_REASON_BAD_IMPORT, "line 1: it is bad")
	}
	return st.SendAndClose(&sessionv1.ImportSessionResponse{Session: &sessionv1.Session{Name: "sessions/made"}})
}

// exported sends pieces, and then ends with an error or none.
func exported(end error, pieces ...string) func(*sessionv1.ExportSessionRequest, grpc.ServerStreamingServer[sessionv1.ExportSessionResponse]) error {
	return func(_ *sessionv1.ExportSessionRequest, st grpc.ServerStreamingServer[sessionv1.ExportSessionResponse]) error {
		for _, p := range pieces {
			if err := st.Send(&sessionv1.ExportSessionResponse{Data: []byte(p)}); err != nil {
				return err
			}
		}
		return end
	}
}

func TestASessionIsDownloadedAsAFile(t *testing.T) {
	f := &fake{export: exported(nil, "one\n", "two\n")}
	srv := serve(t, f)
	for _, c := range []struct {
		path, mediaType, name string
		format                sessionv1.ExportFormat
	}{
		{"/v1/sessions/s1:export", "application/jsonl", "sessions-s1.jsonl", sessionv1.ExportFormat_EXPORT_FORMAT_JSONL},
		{"/v1/sessions/s1:export?format=jsonl", "application/jsonl", "sessions-s1.jsonl", sessionv1.ExportFormat_EXPORT_FORMAT_JSONL},
		{"/v1/sessions/s1:export?format=archive", "application/gzip", "sessions-s1.tar.gz", sessionv1.ExportFormat_EXPORT_FORMAT_ARCHIVE},
	} {
		t.Run(c.path, func(t *testing.T) {
			got := do(t, srv, request{"GET", c.path, "", nil})
			if got.code != 200 || got.body != "one\ntwo\n" || got.header.Get("Content-Type") != c.mediaType ||
				got.header.Get("Content-Disposition") != `attachment; filename="`+c.name+`"` {
				t.Errorf("got %+v", got)
			}
			asked, _ := f.last()
			if d := cmp.Diff(&sessionv1.ExportSessionRequest{Name: "sessions/s1", Format: c.format}, asked, cmp.Comparer(proto.Equal)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestADownloadThatBreaksOffDoesNotLookWhole(t *testing.T) {
	f := &fake{export: exported(apierr.New(codes.Unavailable, "sandbox.fairlead.dev", "AWAY", "away"), strings.Repeat("one\n", 20_000))}
	srv := serve(t, f)
	resp := send(t, t.Context(), srv, request{"GET", "/v1/sessions/s1:export?format=archive", "", nil})
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || err == nil {
		t.Errorf("status %d, and %d bytes were read to an end", resp.StatusCode, len(body))
	}
}

func TestASessionIsUploadedAsAFile(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	file := strings.Repeat("0123456789", 100_000)
	got := do(t, srv, request{"POST", "/v1/sessions:import?session_id=mine&agent=coder", file, http.Header{
		"Content-Type": {"application/gzip"}, "Idempotency-Key": {"k1"},
	}})
	if got.code != 200 || got.header.Get("Idempotency-Key") != "k1" || strings.TrimSpace(got.body) != `{"name":"sessions/made"}` {
		t.Errorf("got %+v", got)
	}
	asked, _ := f.last()
	if d := cmp.Diff(&sessionv1.ImportOpen{SessionId: "mine", Agent: "coder", RequestId: "k1"}, asked, cmp.Comparer(proto.Equal)); d != "" {
		t.Error(d)
	}
	if len(f.uploads) != 1 || f.uploads[0] != file {
		t.Errorf("%d files were uploaded", len(f.uploads))
	}
}

func TestTransfersAreRefusedAsOtherRequestsAre(t *testing.T) {
	srv := serve(t, &fake{export: func(*sessionv1.ExportSessionRequest, grpc.ServerStreamingServer[sessionv1.ExportSessionResponse]) error {
		return noSuchSession()
	}})
	for _, c := range []struct {
		name   string
		in     request
		code   int
		reason string
	}{
		{"a session that is not there", request{"GET", "/v1/sessions/s9:export", "", nil}, 404, "SESSION_NOT_FOUND"},
		{"a name that is none", request{"GET", "/v1/sessions/S%209:export", "", nil}, 404, "PATH_NOT_FOUND"},
		{"another format", request{"GET", "/v1/sessions/s1:export?format=zip", "", nil}, 400, "BAD_PARAMETER"},
		{"another parameter", request{"GET", "/v1/sessions/s1:export?x=1", "", nil}, 400, "BAD_PARAMETER"},
		{"a parameter in both forms", request{"POST", "/v1/sessions:import?sessionId=a&session_id=a", "x", http.Header{"Content-Type": {"application/jsonl"}}}, 400, "BAD_PARAMETER"},
		{"another method", request{"POST", "/v1/sessions/s1:export", "", nil}, 405, "METHOD_NOT_ALLOWED"},
		{"an upload of another type", request{"POST", "/v1/sessions:import", "x", http.Header{"Content-Type": {"text/html"}}}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"a file that is bad", request{"POST", "/v1/sessions:import", "bad", http.Header{"Content-Type": {"application/jsonl"}}}, 400, "BAD_IMPORT"},
		{"two keys", request{"POST", "/v1/sessions:import", "x", http.Header{"Content-Type": {"application/jsonl"}, "Idempotency-Key": {"a", "b"}}}, 400, "BAD_IDEMPOTENCY_KEY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := do(t, srv, c.in)
			if p := problemOf(t, got.body); got.code != c.code || p.reason() != c.reason {
				t.Errorf("got %d %s", got.code, got.body)
			}
		})
	}
	if got := do(t, srv, request{"OPTIONS", "/v1/sessions:import", "", nil}); got.code != 204 || got.header.Get("Allow") != "OPTIONS, POST" {
		t.Errorf("OPTIONS: %+v", got)
	}
}

// TestTransfersAreWhatTheSpecificationSays asks for and sends each media type that the document names.
func TestTransfersAreWhatTheSpecificationSays(t *testing.T) {
	f := &fake{export: exported(nil, "file")}
	srv := serve(t, f)
	type content = map[string]struct{ Schema map[string]any }
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Schema   struct {
					Enum    []string
					Pattern string
				}
			}
			RequestBody struct{ Content content }
			Responses   map[string]struct{ Content content }
		}
	}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	get := doc.Paths["/v1/sessions/{session}:export"]["get"]
	answered := map[string]bool{}
	for _, p := range get.Parameters {
		for _, format := range p.Schema.Enum {
			got := do(t, srv, request{"GET", "/v1/sessions/s1:export?" + p.Name + "=" + format, "", nil})
			mediaType := got.header.Get("Content-Type")
			if _, ok := get.Responses["200"].Content[mediaType]; got.code != http.StatusOK || !ok {
				t.Errorf("%s: %d, of a type that is not documented: %s", format, got.code, mediaType)
			}
			answered[mediaType] = true
		}
	}
	if len(answered) == 0 || len(answered) != len(get.Responses["200"].Content) {
		t.Errorf("answered with %v, and documented are %v", answered, get.Responses["200"].Content)
	}
	post := doc.Paths["/v1/sessions:import"]["post"]
	if len(post.RequestBody.Content) == 0 {
		t.Error("no upload is documented")
	}
	var query []string
	for _, p := range post.Parameters {
		if p.In == "query" {
			query = append(query, p.Name+"=a")
		}
	}
	for mediaType := range post.RequestBody.Content {
		got := do(t, srv, request{"POST", "/v1/sessions:import?" + strings.Join(query, "&"), "x", http.Header{"Content-Type": {mediaType}}})
		if got.code != http.StatusOK {
			t.Errorf("%s: %d %s", mediaType, got.code, got.body)
		}
	}
	if asked, _ := f.last(); !proto.Equal(asked, &sessionv1.ImportOpen{SessionId: "a", Agent: "a"}) {
		t.Errorf("the documented parameters %v asked for %v", query, asked)
	}
}

// stalled is a body that stops in the middle until it is closed.
type stalled struct {
	begun  bool
	closed chan struct{}
	once   sync.Once
}

func (s *stalled) Read(b []byte) (int, error) {
	if !s.begun {
		s.begun = true
		return copy(b, "half"), nil
	}
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *stalled) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func TestAnUploadThatStopsIsNotTakenForWhole(t *testing.T) {
	f := &fake{}
	srv := serve(t, f, func(c *gateway.Config) { c.BodyTimeout = 50 * time.Millisecond })
	upload := &stalled{closed: make(chan struct{})}
	defer upload.Close() //nolint:errcheck // it has none; the client reads on until then, also after an early answer
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/sessions:import", upload)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/jsonl")
	resp, err := client.Do(req)
	if err == nil {
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if p := problemOf(t, string(body)); p.reason() != "BODY_TIMEOUT" {
			t.Errorf("got %s", body)
		}
	}
	srv.Close() // the service's handler has ended when its connection has
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.uploads) > 0 {
		t.Errorf("the service took %q for whole", f.uploads)
	}
}
