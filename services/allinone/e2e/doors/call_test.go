package doors

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
)

// headers returns what goes along with a call.
func (c credential) headers() http.Header {
	h := http.Header{}
	if c.header != "" {
		h.Set("Authorization", c.header)
	}
	if c.token != "" {
		h.Set(internaltoken.MetadataKey, c.token)
		h.Set("Grpc-Metadata-"+internaltoken.MetadataKey, c.token) // what grpc-gateway would pass on
	}
	return h
}

// answer is what a caller sees of a call.
type answer struct {
	code      codes.Code
	status    int // of HTTP; 0 over gRPC
	reason    string
	text      string // all of it
	raw       string // over gRPC, with bytes as they are
	challenge string // the header WWW-Authenticate
}

func (a answer) String() string {
	text := a.text
	if len(text) > 400 {
		text = text[:400] + "…"
	}
	return fmt.Sprintf("%s %s (%d): %s", a.code, a.reason, a.status, text)
}

// patience is how long a call may take; a stream that goes on is read for as long.
const patience = 10 * time.Second

// overGRPC calls an RPC. A stream that follows is read up to its first message.
func (w *world) overGRPC(t *testing.T, d door, req proto.Message, c credential) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name, values := range c.headers() {
		ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(name), values[0])
	}
	var messages, raw strings.Builder
	err := func() error {
		stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, d.name)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(req); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		for {
			m := newMessage(t, d.rpc.Output())
			if err := stream.RecvMsg(m); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			b, err := protojson.Marshal(m)
			if err != nil {
				return err
			}
			messages.WriteString(compact(b))
			b, _ = proto.Marshal(m)
			raw.Write(b)
			if !d.reads() && d.rpc.IsStreamingServer() || d.follows() {
				return nil
			}
		}
	}()
	a := answer{code: status.Code(err), reason: apierr.Reason(err), text: messages.String(), raw: raw.String()}
	if err != nil {
		b, _ := protojson.Marshal(status.Convert(err).Proto())
		a.text += compact(b)
	}
	return a
}

// compact returns JSON without the white space that protojson adds at random.
func compact(b []byte) string {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return string(b)
	}
	b, _ = json.Marshal(v)
	return string(b)
}

// overREST makes an HTTP request.
func (w *world) overREST(t *testing.T, r request, c credential) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, w.url+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	for _, name := range r.headers {
		req.Header.Set(name, headers[name])
	}
	maps.Copy(req.Header, c.headers())
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var body []byte
	if r.follows && resp.StatusCode == http.StatusOK {
		body = make([]byte, 64<<10)
		n, _ := resp.Body.Read(body)
		body = body[:n]
	} else if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	a := answer{status: resp.StatusCode, text: string(body), challenge: resp.Header.Get("WWW-Authenticate")}
	if r.method == http.MethodHead && resp.StatusCode != http.StatusOK {
		a.code, a.reason = ofStatus[resp.StatusCode], "in the header alone"
		return a
	}
	a.code, a.reason = readError(resp.StatusCode, body)
	return a
}

// ofStatus are the codes of answers without a body.
var ofStatus = map[int]codes.Code{401: codes.Unauthenticated, 403: codes.PermissionDenied, 404: codes.NotFound}

// readError returns the code and the reason in the body of an error. An error can be in the first line of a
// stream, too.
func readError(httpStatus int, body []byte) (codes.Code, string) {
	var e struct {
		Code    codes.Code
		Details []struct{ Reason string }
		Error   *json.RawMessage
	}
	first, _, _ := strings.Cut(string(body), "\n")
	if httpStatus/100 == 2 && !strings.HasPrefix(first, `{"error":`) {
		return codes.OK, ""
	}
	err := json.Unmarshal(body, &e)
	if err != nil {
		err = json.Unmarshal([]byte(first), &e)
	}
	if err == nil && e.Error != nil {
		err = json.Unmarshal(*e.Error, &e)
	}
	if err != nil {
		return codes.Unknown, "no error in " + first
	}
	for _, d := range e.Details {
		if d.Reason != "" {
			return e.Code, d.Reason
		}
	}
	return e.Code, ""
}

// overWeb calls an RPC as a browser does, over gRPC-Web.
func (w *world) overWeb(t *testing.T, d door, m proto.Message, c credential) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+d.name, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc-web+proto")
	maps.Copy(req.Header, c.headers())
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatalf("gRPC-Web %s: %v", d.short(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{code: codes.Unknown, text: fmt.Sprint(resp.Status, resp.Header["Content-Type"])}
	for frame := make([]byte, 5); ; {
		if _, err := io.ReadFull(resp.Body, frame); err != nil {
			return a
		}
		data := make([]byte, binary.BigEndian.Uint32(frame[1:]))
		if _, err := io.ReadFull(resp.Body, data); err != nil {
			return a
		}
		switch {
		case frame[0] != 0:
			return trailer(t, string(data))
		case d.follows():
			a.code, a.text = codes.OK, string(data)
			return a
		}
	}
}

// trailer reads the last frame of an answer over gRPC-Web.
func trailer(t *testing.T, text string) (a answer) {
	t.Helper()
	st := &spb.Status{}
	for line := range strings.SplitSeq(text, "\r\n") {
		switch name, value, _ := strings.Cut(line, ": "); strings.ToLower(name) {
		case "grpc-status":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatalf("the trailer %q: %v", text, err)
			}
			a.code = codes.Code(n)
		case "grpc-status-details-bin":
			b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
			if err == nil {
				err = proto.Unmarshal(b, st)
			}
			if err != nil {
				t.Fatalf("the trailer %q: %v", text, err)
			}
		}
	}
	b, _ := protojson.Marshal(st)
	a.reason, a.text = apierr.Reason(status.FromProto(st).Err()), compact(b)
	return a
}
