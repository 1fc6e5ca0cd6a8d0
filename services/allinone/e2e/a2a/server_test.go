// Package a2a speaks A2A with a running server: by hand, and with the official clients.
package a2a

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

// server is all services.
type server struct{ *wiretest.Server }

func configuration() map[string]any {
	return map[string]any{"model": "scripted:a2a", "agents": map[string]any{
		"coder": map[string]any{"description": "writes programs", "prompt": "Code.", "profile": "full", "tools": []string{"Bash"}},
		"asker": map[string]any{"description": "asks before it writes", "prompt": "Ask.", "profile": "ask-writes", "tools": []string{"Read", "Write", "AskUserQuestion"}},
		"lead": map[string]any{
			"description": "gives work", "prompt": "Lead.", "profile": "ask-writes", "tools": []string{"Task", "Write"},
			"subagents": []any{map[string]any{"name": "leaf", "description": "writes", "prompt": "Write.", "tools": []string{"Write"}}},
		},
	}}
}

func serve(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), nil)}
}

// serveUsers runs a server with two users.
func serveUsers(t *testing.T) *server {
	t.Helper()
	return &server{wiretest.Serve(t, configuration(), map[string]commonv1.Role{"ann": commonv1.Role_ROLE_USER, "bob": commonv1.Role_ROLE_USER})}
}

// object is JSON.
type object = map[string]any

// at returns what is at a path of names and indexes in JSON; nil if nothing is.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(object)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p < 0 {
				p += len(l)
			}
			if p < 0 || p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func textAt(v any, path ...any) string {
	s, _ := at(v, path...).(string)
	return s
}

var versioned = []string{"A2A-Version", "1.0"}

// said returns the params of a message with a text, or with parts.
func said(id string, content any, more ...object) object {
	parts := content
	if text, ok := content.(string); ok {
		parts = []any{object{"text": text}}
	}
	m := object{"messageId": id, "role": "ROLE_USER", "parts": parts}
	for _, o := range more {
		for k, v := range o {
			m[k] = v
		}
	}
	return object{"message": m}
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// binding makes the same requests in one of the protocol's forms.
type binding struct {
	name string
	// call makes a request and returns its result, or the error's code and message.
	call func(t *testing.T, s *server, agent, method string, params object, header ...string) (result object, fault string)
	// open opens a stream.
	open func(ctx context.Context, t *testing.T, s *server, agent, method string, params object, header ...string) *http.Response
}

var rpc = binding{
	name: "JSON-RPC",
	call: func(t *testing.T, s *server, agent, method string, params object, header ...string) (object, string) {
		t.Helper()
		code, text := s.Call(t, "POST", "/a2a/"+agent, jsonOf(object{"jsonrpc": "2.0", "id": "call-1", "method": method, "params": params}), append(header, versioned...)...)
		var out object
		if err := json.Unmarshal([]byte(text), &out); err != nil || out["jsonrpc"] != "2.0" {
			t.Fatalf("%s: %d %s", method, code, text)
		}
		if e, ok := out["error"].(object); ok {
			return nil, fmt.Sprintf("%d %v %v %v", code, e["code"], e["message"], jsonOf(e["data"]))
		}
		if out["id"] != "call-1" || code != http.StatusOK {
			t.Errorf("%s: %d %s", method, code, text)
		}
		result, _ := out["result"].(object)
		return result, ""
	},
	open: func(ctx context.Context, t *testing.T, s *server, agent, method string, params object, header ...string) *http.Response {
		t.Helper()
		return s.Do(ctx, t, "POST", "/a2a/"+agent, jsonOf(object{"jsonrpc": "2.0", "id": "call-1", "method": method, "params": params}), append(header, versioned...)...)
	},
}

// restPath returns the method and path of a request over HTTP, and its body.
func restPath(agent, method string, params object) (verb, path, body string) {
	base, id := "/a2a/"+agent, textAt(params, "id")
	switch method {
	case "SendMessage":
		return "POST", base + "/message:send", jsonOf(params)
	case "SendStreamingMessage":
		return "POST", base + "/message:stream", jsonOf(params)
	case "GetTask":
		return "GET", base + "/tasks/" + id + query(params), ""
	case "ListTasks":
		return "GET", base + "/tasks" + query(params), ""
	case "CancelTask":
		return "POST", base + "/tasks/" + id + ":cancel", ""
	case "SubscribeToTask":
		return "POST", base + "/tasks/" + id + ":subscribe", ""
	case "CreateTaskPushNotificationConfig":
		return "POST", base + "/tasks/" + textAt(params, "taskId") + "/pushNotificationConfigs", jsonOf(params)
	case "ListTaskPushNotificationConfigs":
		return "GET", base + "/tasks/" + textAt(params, "taskId") + "/pushNotificationConfigs", ""
	case "GetTaskPushNotificationConfig":
		return "GET", base + "/tasks/" + textAt(params, "taskId") + "/pushNotificationConfigs/" + id, ""
	case "DeleteTaskPushNotificationConfig":
		return "DELETE", base + "/tasks/" + textAt(params, "taskId") + "/pushNotificationConfigs/" + id, ""
	default:
		return "GET", base + "/extendedAgentCard", ""
	}
}

func query(params object) string {
	var all []string
	for k, v := range params {
		if k != "id" {
			all = append(all, k+"="+url.QueryEscape(fmt.Sprint(v)))
		}
	}
	return "?" + strings.Join(all, "&")
}

var rest = binding{
	name: "HTTP+JSON",
	call: func(t *testing.T, s *server, agent, method string, params object, header ...string) (object, string) {
		t.Helper()
		verb, path, body := restPath(agent, method, params)
		code, text := s.Call(t, verb, path, body, append(header, versioned...)...)
		var out object
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatalf("%s: %d %s", method, code, text)
		}
		if e, ok := out["error"].(object); ok {
			return nil, fmt.Sprintf("%d %v %v %v", code, e["status"], e["message"], jsonOf(e["details"]))
		}
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", method, code, text)
		}
		return out, ""
	},
	open: func(ctx context.Context, t *testing.T, s *server, agent, method string, params object, header ...string) *http.Response {
		t.Helper()
		verb, path, body := restPath(agent, method, params)
		return s.Do(ctx, t, verb, path, body, append(header, versioned...)...)
	},
}

var bindings = []binding{rpc, rest}

// must makes a request that succeeds.
func (b binding) must(t *testing.T, s *server, agent, method string, params object, header ...string) object {
	t.Helper()
	result, fault := b.call(t, s, agent, method, params, header...)
	if fault != "" {
		t.Fatalf("%s %s: %s", b.name, method, fault)
	}
	return result
}

// task sends a message and returns its task.
func (b binding) task(t *testing.T, s *server, agent string, params object, header ...string) object {
	t.Helper()
	task, _ := b.must(t, s, agent, "SendMessage", params, header...)["task"].(object)
	return task
}

// view is what a client makes of a stream, as the protocol says.
type view struct {
	id, context, state string
	ask                object            // the message of the status
	artifacts          map[string]string // the texts, by name of the artifact
	order              []string
	frames             int
	broken             error
}

// follow reads a stream until its end, or until see returns false.
func (b binding) follow(t *testing.T, s *server, agent, method string, params object, see func(*view) bool, header ...string) *view {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := b.open(ctx, t, s, agent, method, params, header...)
	defer func() { _ = resp.Body.Close() }()
	if !streams(resp) {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: %d %s", b.name, method, resp.StatusCode, text)
	}
	return b.read(t, resp, see)
}

func streams(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// resume follows the rest of a task, as clients do: one that has ended meanwhile is read, and a server that is not
// ready yet is asked again.
func (b binding) resume(t *testing.T, s *server, agent, id string) *view {
	t.Helper()
	for {
		resp := b.open(t.Context(), t, s, agent, "SubscribeToTask", object{"id": id})
		if streams(resp) {
			defer func() { _ = resp.Body.Close() }()
			return b.read(t, resp, nil)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case strings.Contains(string(text), "UNSUPPORTED_OPERATION"):
			v := &view{artifacts: map[string]string{}}
			v.take(t, object{"task": b.must(t, s, agent, "GetTask", object{"id": id})})
			return v
		case resp.StatusCode != http.StatusServiceUnavailable:
			t.Fatalf("%s: %d %s", b.name, resp.StatusCode, text)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// read makes a view of a stream.
func (b binding) read(t *testing.T, resp *http.Response, see func(*view) bool) *view {
	t.Helper()
	v := &view{artifacts: map[string]string{}}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var frame object
		if err := json.Unmarshal([]byte(data), &frame); err != nil {
			t.Fatal(err)
		}
		if b.name == rpc.name {
			frame, _ = frame["result"].(object)
		}
		v.take(t, frame)
		if see != nil && !see(v) {
			return v
		}
	}
	v.broken = lines.Err()
	return v
}

func (v *view) take(t *testing.T, frame object) {
	t.Helper()
	v.frames++
	if len(frame) != 1 || v.frames == 1 && frame["task"] == nil {
		t.Fatalf("frame %d is %v", v.frames, frame)
	}
	if task := at(frame, "task"); task != nil {
		v.id, v.context = textAt(task, "id"), textAt(task, "contextId")
		v.status(at(task, "status"))
		list, _ := at(task, "artifacts").([]any)
		for _, a := range list {
			v.artifact(t, a, false)
		}
	}
	if s := at(frame, "statusUpdate"); s != nil {
		v.status(at(s, "status"))
	}
	if a := at(frame, "artifactUpdate"); a != nil {
		v.artifact(t, at(a, "artifact"), at(a, "append") == true)
	}
}

func (v *view) status(s any) {
	v.state = textAt(s, "state")
	v.ask, _ = at(s, "message").(object)
}

func (v *view) artifact(t *testing.T, a any, appended bool) {
	t.Helper()
	id, text := textAt(a, "artifactId"), textAt(a, "parts", 0, "text")
	if _, ok := v.artifacts[id]; !ok {
		if appended {
			t.Errorf("%s is appended to, and was not there", id)
		}
		v.order = append(v.order, id)
	}
	if appended {
		text = v.artifacts[id] + text
	}
	v.artifacts[id] = text
}

// text returns the text of the last artifact that has any.
func (v *view) text() string {
	for i := len(v.order) - 1; i >= 0; i-- {
		if s := v.artifacts[v.order[i]]; s != "" {
			return s
		}
	}
	return ""
}
