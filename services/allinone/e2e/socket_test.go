package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// socket is a WebSocket to a server.
type socket struct {
	*testing.T
	conn *websocket.Conn
	ctx  context.Context // bounds the whole test
}

// said is a message of the server.
type said struct {
	Session *struct{ Name string }
	Event   *struct {
		FirstSeq, Seq     string
		ApprovalRequested *struct{ CallID, Digest string }
		TurnFinished      *struct{ State, FinalText string }
		ToolCallStarted   any
	}
	Accepted, Rejected, Error any
}

func (s *system) socket(t *testing.T, path string) *socket {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, "ws://"+s.http+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{t, conn, ctx}
}

func (s *socket) say(text string) {
	s.Helper()
	if err := s.conn.Write(s.ctx, websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

// hear reads until a message satisfies until, and returns the last one. It checks that events follow each other.
func (s *socket) hear(after *int64, until func(said) bool) said {
	s.Helper()
	for {
		_, data, err := s.conn.Read(s.ctx)
		if err != nil {
			s.Fatal(err)
		}
		var m said
		if err := json.Unmarshal(data, &m); err != nil {
			s.Fatalf("%s: %v", data, err)
		}
		if m.Error != nil {
			s.Fatalf("the socket says %s", data)
		}
		if m.Event != nil {
			if m.Event.FirstSeq != strconv.FormatInt(*after+1, 10) {
				s.Fatalf("after %d comes %s", *after, data)
			}
			*after, _ = strconv.ParseInt(m.Event.Seq, 10, 64)
		}
		if until(m) {
			return m
		}
	}
}

func TestASocketHoldsAConversation(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		s := start(t, o)
		c := s.socket(t, "/v1/ws")
		c.say(`{"create":{"session":{"agent":"agents/asker"}}}`)
		var after int64
		session := c.hear(&after, func(m said) bool { return m.Session != nil }).Session.Name
		c.say(`{"createTurn":{"parent":"` + session + `","text":"ask"}}`)
		c.say(`{"resolveApproval":{"parent":"` + session + `","callId":"none","digest":"none"}}`)
		rejected := false
		asked := c.hear(&after, func(m said) bool {
			rejected = rejected || m.Rejected != nil
			return m.Event != nil && m.Event.ApprovalRequested != nil
		}).Event.ApprovalRequested
		answer := `{"resolveApproval":{"parent":"` + session + `","callId":"` + asked.CallID + `","digest":"` + asked.Digest + `","approved":true}}`
		_ = c.conn.CloseNow() // the client loses its connection, and comes back
		c = s.socket(t, "/v1/"+session+"/ws?afterSeq="+strconv.FormatInt(after, 10))
		c.say(answer)
		finished := func(m said) bool { return m.Event != nil && m.Event.TurnFinished != nil }
		if got := c.hear(&after, finished).Event.TurnFinished; got.State != "TURN_STATE_COMPLETE" || !rejected {
			t.Errorf("the turn ended %+v; the wrong answer was rejected: %v", got, rejected)
		}
		if err := c.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
	})
}

func TestASocketResumesAfterAKill(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, o options) {
		o.env = []string{"FAIRLEAD_SESSION_LEASE_TTL=2s"}
		s := start(t, o)
		session := s.session(t, "coder")
		c := s.socket(t, "/v1/"+session+"/ws")
		c.say(`{"createTurn":{"parent":"` + session + `","text":"work"}}`)
		var after int64
		c.hear(&after, func(m said) bool { return m.Event != nil && m.Event.ToolCallStarted != nil })
		s.kill()
		if _, _, err := c.conn.Read(c.ctx); websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			t.Errorf("a killed server closed the socket well: %v", err)
		}
		s = s.restart(t)
		c = s.socket(t, "/v1/"+session+"/ws?afterSeq="+strconv.FormatInt(after, 10))
		end := c.hear(&after, func(m said) bool { return m.Event != nil && m.Event.TurnFinished != nil })
		if got := end.Event.TurnFinished; got.FinalText != "It adds. Done." {
			t.Errorf("the turn ended %+v", got)
		}
	})
}

// TestThePageOnWiresOpensASocket runs the page's example in Node.js, whose WebSocket is that of browsers.
func TestThePageOnWiresOpensASocket(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it needs Node.js 20 or newer")
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("Node.js is not installed")
	}
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, options{})
	example := readPage(t, "wires.md").block(t, "js", "new WebSocket")
	file := filepath.Join(t.TempDir(), "example.mjs")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(example, "127.0.0.1:8080", s.http)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "--experimental-websocket", "--no-warnings", file)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "TURN_STATE_COMPLETE") {
		t.Errorf("the example says %q, %v", out, err)
	}
}
