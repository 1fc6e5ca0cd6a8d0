package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// dial opens a socket; a refused handshake is the answer.
func dial(t *testing.T, url, path string, o *websocket.DialOptions) (*websocket.Conn, *http.Response) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if o == nil {
		o = &websocket.DialOptions{}
	}
	o.HTTPClient = client
	socket, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(url, "http")+path, o)
	if err != nil && resp == nil {
		t.Fatal(err)
	}
	if socket != nil {
		t.Cleanup(func() { _ = socket.CloseNow() })
	}
	return socket, resp
}

// say sends a text, if there is one, and returns the next message.
func say(t *testing.T, socket *websocket.Conn, text string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if text != "" {
		if err := socket.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	_, data, err := socket.Read(ctx)
	return string(data), err
}

func TestASocketIsAConversation(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	socket, _ := dial(t, srv.URL, "/v1/sessions/s1/ws?afterSeq=7", &websocket.DialOptions{Subprotocols: []string{"fairlead.v1"}})
	if socket.Subprotocol() != "fairlead.v1" {
		t.Errorf("the subprotocol is %q", socket.Subprotocol())
	}
	for _, c := range []struct{ in, want string }{
		{"", `{"progress":{"seq":"1"}}`},
		{`{"createTurn":{"parent":"sessions/s1","text":"hi","requestId":"k1"}}`, `{"event":{"firstSeq":"2","seq":"2",`},
		{`{"interrupt":{"name":"sessions/s1"}}`, `{"event":{"firstSeq":"3","seq":"3",`},
	} {
		if got, err := say(t, socket, c.in); err != nil || !strings.HasPrefix(got, c.want) {
			t.Fatalf("after %q: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	if m, _ := f.last(); m.(*sessionv1.ConverseRequest).GetInterrupt() == nil {
		t.Errorf("the last input was %v", m)
	}
	if err := socket.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestASocketsFirstMessageNamesOrMakesTheSession(t *testing.T) {
	f := &fake{}
	srv := serve(t, f)
	socket, _ := dial(t, srv.URL, "/v1/ws", nil)
	if got, err := say(t, socket, `{"open":{"session":"sessions/s1","afterSeq":"3"}}`); err != nil || got != `{"progress":{"seq":"1"}}` {
		t.Errorf("got %q, %v", got, err)
	}
	if m, _ := f.last(); m.(*sessionv1.ConverseRequest).GetOpen().GetAfterSeq() != 3 {
		t.Errorf("asked %v", m)
	}
	socket, _ = dial(t, srv.URL, "/v1/ws", nil)
	if got, err := say(t, socket, `{"create":{"session":{"agent":"agents/coder"},"requestId":"once"}}`); err != nil || !strings.HasPrefix(got, `{"session":{"name":"sessions/`) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := say(t, socket, ""); err != nil || got != `{"progress":{"seq":"1"}}` {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestASocketSaysWhyItCloses(t *testing.T) {
	srv := serve(t, &fake{}, func(c *gateway.Config) { c.BodyTimeout, c.MaxBody = 100*time.Millisecond, 4<<10 })
	const joined = "/v1/sessions/s1/ws"
	for _, c := range []struct {
		name, path, in, reason string
		binary                 bool
		code                   websocket.StatusCode
	}{
		{name: "an unknown field", path: joined, in: `{"shout":{}}`, reason: "BODY_MALFORMED", code: 4400},
		{name: "half an object", path: joined, in: `{"interrupt"`, reason: "BODY_MALFORMED", code: 4400},
		{name: "an input that breaks a rule", path: joined, in: `{"createTurn":{"parent":"sessions/s1"}}`, reason: "INVALID_REQUEST", code: 4400},
		{name: "a binary message", path: joined, in: `{}`, reason: "BODY_MALFORMED", binary: true, code: websocket.StatusUnsupportedData},
		{name: "a message beyond the limit", path: joined, in: strings.Repeat("x", 5<<10), code: websocket.StatusMessageTooBig},
		{name: "neither open nor create", path: "/v1/ws", in: `{"interrupt":{}}`, reason: "BODY_MALFORMED", code: 4400},
		{name: "both", path: "/v1/ws", in: `{"open":{},"create":{}}`, reason: "BODY_MALFORMED", code: 4400},
		{name: "a bad name", path: "/v1/ws", in: `{"open":{"session":"s1"}}`, reason: "INVALID_REQUEST", code: 4400},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket, _ := dial(t, srv.URL, c.path, nil)
			if c.path == joined {
				if _, err := say(t, socket, ""); err != nil {
					t.Fatal(err)
				}
			}
			kind := websocket.MessageText
			if c.binary {
				kind = websocket.MessageBinary
			}
			if err := socket.Write(t.Context(), kind, []byte(c.in)); err != nil {
				t.Fatal(err)
			}
			if c.reason != "" {
				got, err := say(t, socket, "")
				if err != nil {
					t.Fatal(err)
				}
				if p := problemOf(t, strings.TrimSuffix(strings.TrimPrefix(got, `{"error":`), "}")); p.reason() != c.reason {
					t.Errorf("got %s", got)
				}
			}
			if got, err := say(t, socket, ""); websocket.CloseStatus(err) != c.code {
				t.Errorf("closed with %q, %v", got, err)
			}
		})
	}
}

func TestHandshakesThatGetNoSocket(t *testing.T) {
	f := &fake{}
	conf := gateway.DefaultConfig()
	conf.AllowedOrigins = []string{"https://app.example.com"}
	key := &oneKey{}
	srv := serveAs(t, f, conf, knowing(t, auth.Config{Mode: auth.Required}, key))
	plain := send(t, t.Context(), srv, request{"GET", "/v1/ws", "", http.Header{"Authorization": {"Bearer fl_ann"}}})
	if plain.StatusCode != http.StatusUpgradeRequired || plain.Header.Get("Upgrade") != "websocket" {
		t.Errorf("without an upgrade: %d", plain.StatusCode)
	}
	_ = plain.Body.Close()
	browser := []string{"fairlead.v1", "fairlead.bearer.fl_ann"}
	for _, c := range []struct {
		name, path, origin string
		protocols          []string
		code               int
	}{
		{"no credential", "/v1/ws", "", []string{"fairlead.v1"}, http.StatusUnauthorized},
		{"a wrong credential", "/v1/ws", "", []string{"fairlead.v1", "fairlead.bearer.fl_eve"}, http.StatusUnauthorized},
		{"a page of another site", "/v1/ws", "https://evil.example.com", browser, http.StatusForbidden},
		{"a page that is allowed", "/v1/ws", "https://app.example.com", browser, http.StatusSwitchingProtocols},
		{"a bad resume point", "/v1/sessions/s1/ws?afterSeq=x", "", browser, http.StatusBadRequest},
		{"a credential in the address", "/v1/ws?token=fl_ann", "", browser, http.StatusBadRequest},
	} {
		o := &websocket.DialOptions{Subprotocols: c.protocols, HTTPHeader: http.Header{}}
		if c.origin != "" {
			o.HTTPHeader.Set("Origin", c.origin)
		}
		socket, resp := dial(t, srv.URL, c.path, o)
		if resp.StatusCode != c.code {
			t.Errorf("%s: %d, want %d", c.name, resp.StatusCode, c.code)
		}
		if socket != nil && (socket.Subprotocol() != "fairlead.v1" || strings.Contains(resp.Header.Get("Sec-WebSocket-Protocol"), "bearer")) {
			t.Errorf("%s: the answer names %q", c.name, resp.Header.Get("Sec-WebSocket-Protocol"))
		}
	}
	if m, _ := f.last(); m != nil {
		t.Errorf("the service was asked %v", m)
	}
}

func TestASocketEndsWithItsCredential(t *testing.T) {
	prove.Only(t, "a key is remembered for seconds")
	key := &oneKey{}
	srv := serveAs(t, &fake{}, gateway.DefaultConfig(), knowing(t, auth.Config{Mode: auth.Required}, key))
	socket, _ := dial(t, srv.URL, "/v1/sessions/s1/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer fl_ann"}}})
	if _, err := say(t, socket, ""); err != nil {
		t.Fatal(err)
	}
	key.revoked.Store(true)
	got, err := say(t, socket, "")
	if err != nil || !strings.HasPrefix(got, `{"error":`) {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := say(t, socket, ""); websocket.CloseStatus(err) != 4401 {
		t.Errorf("closed with %v", err)
	}
}
