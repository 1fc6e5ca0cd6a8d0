// Package limits sends requests at and beyond their limits to every public RPC and path of a running server: lists with
// too many items, deep nesting, large bodies and odd encodings. The lists come from the descriptors, so a new RPC, path or
// list is tried, too.
//
// The tests count and take no times. The bytes that the process allocates for twice the input are at most about twice as
// many, an answer to a refused request has at most 64 KiB, and no goroutine of a request outlives its client.
package limits

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

// maxAnswer is the size of the largest answer to a refused request.
const maxAnswer = 64 << 10

// server is a running server without users.
type server struct {
	*wiretest.Server
	conn *grpc.ClientConn
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{Server: wiretest.Serve(t, map[string]any{
		"agents": map[string]any{"coder": map[string]any{"description": "talks", "prompt": "Talk.", "profile": "full"}},
	}, nil)}
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn = conn
	return s
}

// request is what a door takes, as bytes.
type request struct {
	door, name string // REST, gRPC or gRPC-Web; a path or an RPC
	method     string // of HTTP
	body       []byte
}

// answer is what came back. Its text is what the client can read of it.
type answer struct {
	status int // of HTTP, or the code of gRPC
	text   string
}

// ask sends a request.
func (s *server) ask(t *testing.T, r request) answer {
	t.Helper()
	if r.door == "gRPC" {
		return s.overGRPC(t, r)
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, s.URL+r.name, bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range mcpHeaders(r.name) {
		req.Header.Set(name, value)
	}
	if r.door == "gRPC-Web" {
		req.Header.Set("Content-Type", "application/grpc-web+proto")
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", r.door, r.name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v after %.200s", r.door, r.name, err, b)
	}
	return answer{resp.StatusCode, string(b)}
}

// mcpHeaders returns what a request to the MCP server needs.
func mcpHeaders(path string) map[string]string {
	if !strings.HasPrefix(path, "/mcp") {
		return nil
	}
	return map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "Write"}
}

func (s *server) overGRPC(t *testing.T, r request) answer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, r.name, grpc.ForceCodecV2(rpc.FrameCodec{}))
	if err == nil {
		err = st.SendMsg(rpc.NewFrame(r.body))
	}
	if err == nil {
		err = st.CloseSend()
	}
	for err == nil || errors.Is(err, io.EOF) {
		var f rpc.Frame
		if err = st.RecvMsg(&f); errors.Is(err, io.EOF) {
			return answer{0, ""}
		}
	}
	text, failed := protojson.Marshal(status.Convert(err).Proto())
	if failed != nil {
		t.Fatal(failed)
	}
	return answer{int(status.Code(err)), string(text)}
}

// webFrame returns a message as gRPC-Web sends it.
func webFrame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// allocated returns how many bytes the process allocates for a request, the client's part included, and the answer.
func (s *server) allocated(t *testing.T, r request) (uint64, answer) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := s.ask(t, r)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, a
}

const (
	// slack is what the process may allocate beside a request, in bytes: for its background work, and the request itself.
	slack = 6 << 20
	// perByte is what it may allocate for each byte of a refused request. The body is copied some times between its reader
	// and its judge.
	perByte = 12
)

// refuse sends a request, and the same one with twice the items. Both must be refused by a small answer, and cost no
// more than their size.
func (s *server) refuse(t *testing.T, once, twice request) (last answer) {
	t.Helper()
	var costs []uint64
	for _, r := range []request{once, twice} {
		cost, a := s.allocated(t, r)
		for range 2 { // something else may have been at work, or made for the first time
			if cost > slack+perByte*uint64(len(r.body)) {
				cost, a = s.allocated(t, r)
			}
		}
		if ok := a.status == 0 || a.status/100 == 2; ok && r.door != "gRPC-Web" {
			t.Errorf("%s %s is not refused: %.300s", r.door, r.name, a.text)
		}
		if len(a.text) > maxAnswer {
			t.Errorf("%s %s: the answer to %d bytes has %d: %.300s", r.door, r.name, len(r.body), len(a.text), a.text)
		}
		if cost > slack+perByte*uint64(len(r.body)) {
			t.Errorf("%s %s: %d bytes make the process allocate %d", r.door, r.name, len(r.body), cost)
		}
		costs, last = append(costs, cost), a
	}
	if costs[1] > 5*costs[0]/2+slack {
		t.Errorf("%s: twice the items make the process allocate %d bytes after %d", once.name, costs[1], costs[0])
	}
	return last
}

// encoded returns a message in the form of each door.
func encoded(t *testing.T, m proto.Message) (wire, json []byte) {
	t.Helper()
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	json, err = protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return wire, json
}

var invalid = int(codes.InvalidArgument)
