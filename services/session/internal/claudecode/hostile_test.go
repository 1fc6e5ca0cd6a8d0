package claudecode

import (
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/claudecode/launch"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// beside is a process whose relay is the test.
func beside(t *testing.T) (*process, *yamux.Session) {
	t.Helper()
	here, there := net.Pipe()
	mux, err := yamux.Server(there, launch.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mux.Close() })
	p, err := startProcess(here, launch.Start{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, mux
}

func TestATurnGetsThePlaceOfACLIThatBecomesIdle(t *testing.T) {
	for _, keep := range []time.Duration{0, 5 * time.Minute} {
		pool := newPool(1, keep)
		if err := pool.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		p, _ := beside(t)
		c := &conversation{p: p, pending: &ask{}}
		pool.put(store.Key{Session: "a"}, c)
		got := make(chan error, 1)
		go func() { got <- pool.acquire(t.Context()) }()
		for waits := false; !waits; runtime.Gosched() { // the model works for the one, and the other waits
			pool.mu.Lock()
			waits = pool.wanting == 1
			pool.mu.Unlock()
		}
		c = pool.take(store.Key{Session: "a"})
		c.pending = nil
		pool.put(store.Key{Session: "a"}, c)
		select {
		case err := <-got:
			if err != nil {
				t.Errorf("keep %v: %v", keep, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("keep %v: the other turn waits on", keep)
		}
		pool.close()
	}
}

func said(words string) []*sessionv1.Message {
	return []*sessionv1.Message{{Name: "sessions/s/messages/m1", Role: sessionv1.Role_ROLE_USER, Blocks: []*sessionv1.Block{state.TextBlock(words)}}}
}

// asks returns a request as the CLI makes it for what it got of a message.
func asks(t *testing.T, system string, words ...string) []byte {
	t.Helper()
	var content []block
	for _, w := range words {
		content = append(content, text(w))
	}
	raw, err := json.Marshal(map[string]any{"stream": true, "system": system, "messages": []any{map[string]any{"role": "user", "content": content}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAPersonMaySayWhatTheCLISays(t *testing.T) {
	for _, words := range []string{continued, continued + "\n", silent, reminder + "Hi.</system-reminder>", "[[fairlead m1 0]]", "Continue."} {
		v := newView(model.Request{System: "s", Messages: said(words)})
		given, _ := person(v.request.Messages[0], 0)
		r, _, err := v.compose(asks(t, promptSign, given.Text))
		if err != nil || len(r.Messages) != 1 || r.Messages[0].GetBlocks()[0].GetContent().GetText().GetText() != words {
			t.Errorf("%q: %v %v", words, err, r.Messages)
		}
	}
}

// A command in the sandbox may ask in the CLI's name. What its few bytes stand for is bounded.
func TestSignsDoNotMultiplyTheConversation(t *testing.T) {
	v := newView(model.Request{System: strings.Repeat("s", 1<<20), Messages: said(strings.Repeat("x", 1<<20))})
	at := sign(v.request.Messages[0], 0)
	many := make([]string, 1<<10)
	for i := range many {
		many[i] = at
	}
	if _, _, err := v.compose(asks(t, promptSign, many...)); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a block that is named often: %v", err)
	}
	if _, _, err := v.compose(asks(t, strings.Repeat(promptSign, 1<<10), at)); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a prompt that is named often: %v", err)
	}
	if _, _, err := v.compose(asks(t, promptSign, at)); err != nil {
		t.Error(err)
	}
}

// A command in the sandbox may write calls in the CLI's name. As many as the CLI itself makes are waited for.
func TestCallsThatWaitAreBounded(t *testing.T) {
	p, mux := beside(t)
	defer p.stop()
	control, err := mux.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for i := range maxCalls + 1 {
			_, _ = fmt.Fprintf(control, `{"type":"control_request","request_id":"r%d","request":{"subtype":"mcp_message","message":{"id":%d,"method":"tools/call","params":{"_meta":{"claudecode/toolUseId":"one"}}}}}`+"\n", i, i)
		}
	}()
	lines := json.NewDecoder(control)
	_ = control.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		var m struct {
			Type     string
			Response struct{ Error string }
		}
		if err := lines.Decode(&m); err != nil {
			t.Fatalf("no call is refused: %v", err)
		}
		if m.Type == "control_response" {
			if m.Response.Error != "too many calls" {
				t.Errorf("got %+v", m)
			}
			return
		}
	}
}
