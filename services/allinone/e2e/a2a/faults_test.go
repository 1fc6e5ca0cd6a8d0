package a2a

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
)

func TestATaskSurvivesTheServersDeath(t *testing.T) {
	t.Parallel()
	s := &server{wiretest.Spawn(t, configuration())}
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			part := b.follow(t, s, "coder", "SendStreamingMessage", said("count-"+b.name, "count"), func(v *view) bool { return len(v.text()) < 80 })
			s.Kill()
			s.Start(t)
			rest := b.resume(t, s, "coder", part.id)
			if rest.state != completed || rest.text() != strings.Repeat("tick", 150) {
				t.Errorf("the rest is %+v", rest)
			}
			if again := b.task(t, s, "coder", said("count-"+b.name, "count")); again["id"] != part.id || textAt(again, "artifacts", 0, "parts", 0, "text") != rest.text() {
				t.Errorf("the message again has the task %s", jsonOf(again))
			}
		})
	}
}

func TestATaskIsItsUsersOwn(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	ann, bob := []string{"Authorization", "Bearer " + s.Keys["ann"]}, []string{"Authorization", "Bearer " + s.Keys["bob"]}
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			task := b.task(t, s, "coder", said("own-"+b.name, "hello", object{"contextId": "c"}), ann...)
			for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
				if _, fault := b.call(t, s, "coder", method, object{"id": task["id"]}, bob...); !strings.Contains(fault, "TASK_NOT_FOUND") {
					t.Errorf("%s of another's task: %s", method, fault)
				}
			}
			other := b.task(t, s, "coder", said("own-"+b.name, "hello", object{"contextId": "c"}), bob...)
			if other["id"] == task["id"] {
				t.Error("two users have one task")
			}
			mine, his := b.task(t, s, "coder", said("same-"+b.name, "hello"), ann...), b.task(t, s, "coder", said("same-"+b.name, "hello"), bob...)
			if mine["contextId"] == his["contextId"] {
				t.Error("two users have one context")
			}
			if _, fault := b.call(t, s, "coder", "SendMessage", said("same-"+b.name, "again"), ann...); !strings.Contains(fault, "REQUEST_ID_REUSED") {
				t.Errorf("another message under the same id: %s", fault)
			}
			if list := b.must(t, s, "coder", "ListTasks", object{}, bob...); strings.Contains(jsonOf(list), textAt(task, "id")) {
				t.Errorf("another's list is %s", jsonOf(list))
			}
			if _, fault := b.call(t, s, "coder", "GetTask", object{"id": task["id"]}); !strings.HasPrefix(fault, "401 ") {
				t.Errorf("without a credential: %s", fault)
			}
		})
	}
	if code, _ := s.Call(t, "GET", "/a2a/coder/.well-known/agent-card.json", ""); code != http.StatusUnauthorized {
		t.Errorf("the card without a credential: %d", code)
	}
	if code, _ := s.Call(t, "GET", "/a2a/coder/.well-known/agent-card.json", "", bob...); code != http.StatusOK {
		t.Errorf("the card: %d", code)
	}
}

func TestAnAnswerThatComesAgainAnswersNothingElse(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			first := b.task(t, s, "asker", said("twice-"+b.name, "write twice"))
			call := textAt(first, "status", "message", "parts", 1, "data", "approval", "call")
			answer := said("twice-ok-"+b.name, []any{object{"data": object{"decision": "approve"}}}, object{"taskId": first["id"]})
			named := said("twice-ok-"+b.name, []any{object{"data": object{"decision": "approve", "call": call}}}, object{"taskId": first["id"]})
			second := b.task(t, s, "asker", answer)
			if textAt(second, "status", "state") != waits || textAt(second, "status", "message", "parts", 1, "data", "approval", "call") == call {
				t.Fatalf("after the first answer the task is %s", jsonOf(second))
			}
			if again := b.task(t, s, "asker", answer); jsonOf(again) != jsonOf(second) {
				t.Errorf("the answer again: %s", jsonOf(again))
			}
			if again := b.task(t, s, "asker", named); jsonOf(again) != jsonOf(second) {
				t.Errorf("an answer to the first call again: %s", jsonOf(again))
			}
			if got := b.follow(t, s, "asker", "SendStreamingMessage", answer, nil); got.state != waits {
				t.Errorf("the answer again, as a stream: %+v", got)
			}
			done := b.task(t, s, "asker", said("twice-no-"+b.name, []any{object{"data": object{"decision": "deny"}}}, object{"taskId": first["id"]}))
			if textAt(done, "status", "state") != completed {
				t.Errorf("after the second answer the task is %s", jsonOf(done))
			}
		})
	}
}

func TestMessagesOfAgentsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			near := said("near-"+b.name, "hello", object{"metadata": object{"https://fairlead.dev/a2a/depth": json.RawMessage("4.0")}})
			if task := b.task(t, s, "coder", near); textAt(task, "status", "state") != completed {
				t.Errorf("the task is %s", jsonOf(task))
			}
			far := said("far-"+b.name, "hello", object{"metadata": object{"https://fairlead.dev/a2a/depth": 5}})
			if _, fault := b.call(t, s, "coder", "SendMessage", far); !strings.Contains(fault, "UNSUPPORTED_OPERATION") || !strings.Contains(fault, "through 5 agents") {
				t.Errorf("beyond the bound: %s", fault)
			}
			if _, fault := b.call(t, s, "coder", "SendMessage", said("head-"+b.name, "hello"), "Fairlead-A2A-Depth", "5"); !strings.Contains(fault, "UNSUPPORTED_OPERATION") {
				t.Errorf("beyond the bound, by the header: %s", fault)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	s := serve(t)
	type fault struct {
		name, method string
		params       object
		rpc, rest    string // how the error begins
		has          string
	}
	invalid, badRequest := "200 -32602 ", "400 INVALID_ARGUMENT "
	own := func(code string) (rpc, rest string) { return "200 " + code + " ", "400 FAILED_PRECONDITION " }
	faults := []fault{
		{"no message", "SendMessage", object{}, invalid, badRequest, `"field":"message"`},
		{"no id of the message", "SendMessage", said("", "hello"), invalid, badRequest, `"field":"message.messageId"`},
		{"no parts", "SendMessage", said("m", []any{}), invalid, badRequest, `"field":"message.parts"`},
		{"an empty part", "SendMessage", said("m", []any{object{}}), invalid, badRequest, `"field":"message.parts[0]"`},
		{"two contents of a part", "SendMessage", said("m", []any{object{"text": "a", "url": "http://b"}}), invalid, badRequest, `"field":"message.parts[0]"`},
		{"a part of another kind", "SendMessage", said("m", []any{object{"text": 5}}), invalid, badRequest, "number"},
		{"no base64", "SendMessage", said("m", []any{object{"raw": "?", "mediaType": "image/png"}}), invalid, badRequest, `"field":"message.parts[0].raw"`},
		{"sound", "SendMessage", said("m", []any{object{"raw": "AAAA", "mediaType": "audio/wav"}}), "200 -32005 ", badRequest, "CONTENT_TYPE_NOT_SUPPORTED"},
		{"the agent's role", "SendMessage", said("m", "hello", object{"role": "ROLE_AGENT"}), invalid, badRequest, `"field":"message.role"`},
		{"a context with a space", "SendMessage", said("m", "hello", object{"contextId": "a b"}), invalid, badRequest, `"field":"message.contextId"`},
		{"a depth that is a word", "SendMessage", said("m", "hello", object{"metadata": object{"https://fairlead.dev/a2a/depth": "deep"}}), invalid, badRequest, `"field":"message.metadata"`},
		{"a task that is not there", "GetTask", object{"id": "none"}, "200 -32001 ", "404 NOT_FOUND ", "TASK_NOT_FOUND"},
		{"a task of no session", "GetTask", object{"id": "a.b"}, "200 -32001 ", "404 NOT_FOUND ", "TASK_NOT_FOUND"},
		{"a message to no task", "SendMessage", said("m", "hello", object{"taskId": "a.b"}), "200 -32001 ", "404 NOT_FOUND ", "TASK_NOT_FOUND"},
		{"a page too long", "ListTasks", object{"pageSize": 101}, invalid, badRequest, `"field":"pageSize"`},
		{"no state", "ListTasks", object{"status": "TASK_STATE_RUNNING"}, invalid, badRequest, `"field":"status"`},
		{"no token", "ListTasks", object{"pageToken": "x"}, invalid, badRequest, `"field":"pageToken"`},
	}
	for _, method := range []string{"CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"} {
		f := fault{name: method, method: method, params: object{"taskId": "a.b", "id": "c", "url": "https://example.com"}, has: "PUSH_NOTIFICATION_NOT_SUPPORTED"}
		f.rpc, f.rest = own("-32003")
		faults = append(faults, f)
	}
	extended := fault{name: "the extended card", method: "GetExtendedAgentCard", has: "UNSUPPORTED_OPERATION"}
	extended.rpc, extended.rest = own("-32004")
	for _, f := range append(faults, extended) {
		for _, b := range bindings {
			want := f.rpc
			if b.name == rest.name {
				want = f.rest
			}
			if _, got := b.call(t, s, "coder", f.method, f.params); !strings.HasPrefix(got, want) || !strings.Contains(got, f.has) {
				t.Errorf("%s over %s: %s, want %s and %s", f.name, b.name, got, want, f.has)
			}
		}
	}
	if _, list := s.Call(t, "GET", "/v1/sessions", ""); strings.Contains(list, `"name"`) {
		t.Errorf("bad input has made sessions: %s", list)
	}
}

func TestBadForms(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, c := range []struct {
		path, body, version string
		code                int
		want                string
	}{
		{"/a2a/coder", `{`, "1.0", 200, `"code":-32700`},
		{"/a2a/coder", `[]`, "1.0", 200, `"code":-32700`},
		{"/a2a/coder", `{"jsonrpc":"1.0","id":1,"method":"GetTask"}`, "1.0", 200, `"code":-32600`},
		{"/a2a/coder", `{"jsonrpc":"2.0","method":"GetTask"}`, "1.0", 200, `"code":-32600`},
		{"/a2a/coder", `{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`, "1.0", 200, `"code":-32601`},
		{"/a2a/coder", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}`, "1.0", 200, `"code":-32602`},
		{"/a2a/coder", `{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "0.3", 200, `"code":-32009`},
		{"/a2a/coder", `{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "", 200, `"id":7`},
		{"/a2a/coder/message:send", `{`, "1.0", 400, `"status":"INVALID_ARGUMENT"`},
		{"/a2a/coder/message:send", `{"message":{}}`, "", 400, `VERSION_NOT_SUPPORTED`},
		{"/a2a/coder/tasks", `{}`, "1.0", 405, `"code":405`},
		{"/a2a/coder/nothing", `{}`, "1.0", 404, `PATH_NOT_FOUND`},
	} {
		if code, text := s.Call(t, "POST", c.path, c.body, "A2A-Version", c.version); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", c.path, c.body, code, text, c.code, c.want)
		}
	}
	for _, query := range []string{"pageSize=%2B5", "pageSize=05", "historyLength=%2B0"} { // numbers, and no JSON
		if code, text := s.Call(t, "GET", "/a2a/coder/tasks?"+query, "", "A2A-Version", "1.0"); code != http.StatusOK {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	if code, text := s.Call(t, "GET", "/a2a/coder", ""); code != http.StatusMethodNotAllowed || !strings.Contains(text, `"jsonrpc":"2.0"`) {
		t.Errorf("GET: %d %s", code, text)
	}
}
