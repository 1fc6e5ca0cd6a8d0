package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// The methods that the tests call.
const (
	createPath = sessionv1.SessionService_CreateSession_FullMethodName
	followPath = sessionv1.SessionService_StreamEvents_FullMethodName
)

func webFrame(flag byte, data []byte) []byte {
	b := append([]byte{flag}, binary.BigEndian.AppendUint32(nil, uint32(len(data)))...)
	return append(b, data...)
}

// webCall makes a call and returns the messages and the trailer of its answer.
func webCall(t *testing.T, srv *httptest.Server, path, contentType string, body []byte, header ...string) (messages [][]byte, trailer string, resp *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err = client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc-web") {
		return nil, string(data), resp
	}
	if strings.Contains(contentType, "text") {
		data = decodeWebText(t, string(data))
	}
	for len(data) > 0 {
		flag, size := data[0], binary.BigEndian.Uint32(data[1:])
		part := data[5 : 5+size]
		if data = data[5+size:]; flag == 0x80 {
			trailer = string(part)
		} else {
			messages = append(messages, part)
		}
	}
	return messages, trailer, resp
}

// decodeWebText decodes base64 of which each frame has its own end.
func decodeWebText(t *testing.T, text string) (all []byte) {
	t.Helper()
	for ; len(text) > 0; text = text[4:] {
		part, err := base64.StdEncoding.DecodeString(text[:4])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, part...)
	}
	return all
}

func wire(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return webFrame(0, b)
}

func TestGRPCWebInBothForms(t *testing.T) {
	f := &fake{events: replay(3)}
	srv := serve(t, f)
	create := wire(t, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "coder"}, RequestId: "k1"})
	follow := wire(t, &sessionv1.StreamEventsRequest{Parent: "sessions/s1", AfterSeq: 1})
	text := func(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }
	// A client may send the frame's parts as texts of their own.
	parts := append(text(create[:7]), text(create[7:])...)
	for _, c := range []struct {
		contentType string
		create      []byte
		follow      []byte
	}{
		{"application/grpc-web+proto", create, follow}, {"application/grpc-web", create, follow},
		{"application/grpc-web-text", text(create), text(follow)}, {"application/grpc-web-text+proto", parts, text(follow)},
	} {
		messages, trailer, resp := webCall(t, srv, createPath, c.contentType, c.create)
		got := &sessionv1.CreateSessionResponse{}
		if len(messages) != 1 || proto.Unmarshal(messages[0], got) != nil || got.GetSession().GetName() != "sessions/s1" || trailer != "grpc-status: 0\r\n" {
			t.Errorf("%s: messages %q, trailer %q", c.contentType, messages, trailer)
		}
		want := strings.TrimSuffix(c.contentType, "+proto") + "+proto"
		if resp.Header.Get("Content-Type") != want || resp.Header.Get("Idempotency-Key") != "k1" || resp.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: headers %v", c.contentType, resp.Header)
		}
		messages, trailer, _ = webCall(t, srv, followPath, c.contentType, c.follow)
		if len(messages) != 2 || trailer != "grpc-status: 0\r\n" {
			t.Errorf("%s: %d events, trailer %q", c.contentType, len(messages), trailer)
		}
	}
}

func TestErrorsOfGRPCWebAreInItsTrailer(t *testing.T) {
	f := &fake{fail: apierr.New(codes.ResourceExhausted, "d", "QUEUE_FULL", "100 % é", apierr.RetryAfter(1500_000_000))}
	srv := serve(t, f)
	const binaryForm = "application/grpc-web+proto"
	get := wire(t, &sessionv1.GetSessionRequest{Name: "sessions/s9"})
	messages, trailer, resp := webCall(t, srv, sessionv1.SessionService_GetSession_FullMethodName, binaryForm, get)
	if len(messages) != 0 || !strings.HasPrefix(trailer, "grpc-status: 8\r\ngrpc-message: 100 %25 %C3%A9\r\ngrpc-status-details-bin: ") ||
		resp.StatusCode != http.StatusOK || resp.Header.Get("Retry-After") != "2" {
		t.Errorf("%d messages, trailer %q, headers %v", len(messages), trailer, resp.Header)
	}
	f.fail = nil
	asked := len(f.requests)
	for name, c := range map[string]struct {
		path, contentType string
		body              []byte
		header            []string
		want              string
	}{
		"an unknown method":       {"/fairlead.session.v1.SessionService/Nothing", binaryForm, get, nil, "grpc-status: 5"},
		"an internal service":     {"/fairlead.session.v1.NodeService/ListNodes", binaryForm, get, nil, "grpc-status: 5"},
		"a stream of a client":    {sessionv1.SessionService_Converse_FullMethodName, binaryForm, get, nil, "grpc-status: 12"},
		"no message":              {createPath, binaryForm, nil, nil, "grpc-status: 3"},
		"two messages":            {createPath, binaryForm, append(get, get...), nil, "grpc-status: 3"},
		"half a frame":            {createPath, binaryForm, get[:8], nil, "grpc-status: 3"},
		"a frame of 4 GiB":        {createPath, binaryForm, []byte{0, 0xff, 0xff, 0xff, 0xff, 1}, nil, "grpc-status: 3"},
		"a compressed frame":      {createPath, binaryForm, webFrame(1, []byte("x")), nil, "grpc-status: 3"},
		"a frame of a new kind":   {createPath, binaryForm, webFrame(2, []byte("x")), nil, "grpc-status: 3"},
		"text that is not base64": {createPath, "application/grpc-web-text", []byte("!!"), nil, "grpc-status: 3"},
		"a body that is too long": {createPath, binaryForm, webFrame(0, make([]byte, 9<<10)), nil, "grpc-status: 3"},
		"a malformed timeout":     {createPath, binaryForm, get, []string{"Grpc-Timeout", "soon"}, "grpc-status: 3"},
		"a timeout that is over":  {createPath, binaryForm, get, []string{"Grpc-Timeout", "0n"}, "grpc-status: 4"},
	} {
		limited := serve(t, f, func(c *gateway.Config) { c.MaxBody = 8 << 10 })
		messages, trailer, _ := webCall(t, limited, c.path, c.contentType, c.body, c.header...)
		if len(messages) != 0 || !strings.HasPrefix(trailer, c.want+"\r\n") {
			t.Errorf("%s: %d messages, trailer %q", name, len(messages), trailer)
		}
	}
	if len(f.requests) != asked {
		t.Errorf("the service was asked: %v", f.requests[asked:])
	}
}

func TestAPageMayCallOverGRPCWeb(t *testing.T) {
	srv := serve(t, &fake{}, allowApp)
	got := do(t, srv, request{"OPTIONS", createPath, "", http.Header{"Origin": {app}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"content-type,x-grpc-web,grpc-timeout"}}})
	if got.code != http.StatusNoContent || got.header.Get("Access-Control-Allow-Methods") != "POST" || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "x-grpc-web") {
		t.Errorf("preflight: %+v", got)
	}
	create := wire(t, &sessionv1.CreateSessionRequest{RequestId: "k1"})
	if _, trailer, resp := webCall(t, srv, createPath, "application/grpc-web", create, "Origin", app); trailer != "grpc-status: 0\r\n" || resp.Header.Get("Access-Control-Allow-Origin") != app {
		t.Errorf("trailer %q, headers %v", trailer, resp.Header)
	}
	if _, _, resp := webCall(t, srv, createPath, "application/json", create, "Origin", "https://evil.example"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another origin: %d", resp.StatusCode)
	}
}

// The official JavaScript client calls the gateway.
func TestConnectsClientCallsOverGRPCWeb(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node.js (the Debian package nodejs)")
	}
	modules, err := filepath.Abs("../../deploy/tools/es")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "node_modules", "@connectrpc", "connect-web")); err != nil {
		t.Skip("needs Connect's client for JavaScript: npm ci --prefix deploy/tools/es")
	}
	descriptors := filepath.Join(t.TempDir(), "descriptors")
	if err := os.WriteFile(descriptors, descriptorSet(t), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake{events: replay(3)}
	srv := serve(t, f)
	cmd := exec.CommandContext(t.Context(), node, "testdata/web.mjs", srv.URL, descriptors)
	cmd.Env = append(os.Environ(), "MODULES="+modules)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var got any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]any{
		"created": "sessions/s1 1152921504606846976 k1", "events": []any{2.0, 3.0},
		"error": "NotFound: there is no session s9 (google.rpc.ErrorInfo, google.rpc.ResourceInfo)",
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("the client sees (-want +got):\n%s", diff)
	}
}

// descriptorSet returns the descriptors of the session service, in the order in which they are imported.
func descriptorSet(t *testing.T) []byte {
	t.Helper()
	set, seen := &descriptorpb.FileDescriptorSet{}, map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	add(sessionv1.File_fairlead_session_v1_session_service_proto)
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
