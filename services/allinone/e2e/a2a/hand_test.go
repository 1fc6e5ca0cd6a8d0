package a2a

import (
	"strings"
	"testing"
)

const (
	completed = "TASK_STATE_COMPLETED"
	working   = "TASK_STATE_WORKING"
	waits     = "TASK_STATE_INPUT_REQUIRED"
	failed    = "TASK_STATE_FAILED"
	canceled  = "TASK_STATE_CANCELED"
)

func TestTheCard(t *testing.T) {
	t.Parallel()
	s := serve(t)
	code, text := s.Call(t, "GET", "/a2a/coder/.well-known/agent-card.json", "")
	for _, want := range []string{`"name":"coder"`, `"description":"writes programs"`, `"url":"` + s.URL + `/a2a/coder"`, `"protocolBinding":"JSONRPC"`, `"protocolBinding":"HTTP+JSON"`, `"streaming":true`} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("the card lacks %s: %d %s", want, code, text)
		}
	}
	if code, text := s.Call(t, "GET", "/a2a/missing/.well-known/agent-card.json", ""); code != 404 || !strings.Contains(text, "AGENT_NOT_FOUND") {
		t.Errorf("of an agent that is not there: %d %s", code, text)
	}
	resp := s.Do(t.Context(), t, "GET", "/a2a/coder/.well-known/agent-card.json", "")
	_ = resp.Body.Close()
	if code, text := s.Call(t, "GET", "/a2a/coder/.well-known/agent-card.json", "", "If-None-Match", resp.Header.Get("ETag")); code != 304 || text != "" {
		t.Errorf("the same card again: %d %s", code, text)
	}
}

func TestTasksByHand(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			t.Run("a message is a task, and its id counts once", func(t *testing.T) {
				task := b.task(t, s, "coder", said("plain-"+b.name, "hello"))
				if textAt(task, "status", "state") != completed || textAt(task, "artifacts", 0, "parts", 0, "text") != "Hello there." || textAt(task, "history", 0, "parts", 0, "text") != "hello" {
					t.Errorf("the task is %s", jsonOf(task))
				}
				if again := b.task(t, s, "coder", said("plain-"+b.name, "hello")); jsonOf(again) != jsonOf(task) {
					t.Errorf("again it is %s", jsonOf(again))
				}
				if read := b.must(t, s, "coder", "GetTask", object{"id": task["id"]}); jsonOf(read) != jsonOf(task) {
					t.Errorf("read it is %s", jsonOf(read))
				}
				if short := b.must(t, s, "coder", "GetTask", object{"id": task["id"], "historyLength": 0}); short["history"] != nil {
					t.Errorf("without history it is %s", jsonOf(short))
				}
				if _, fault := b.call(t, s, "asker", "GetTask", object{"id": task["id"]}); !strings.Contains(fault, "TASK_NOT_FOUND") {
					t.Errorf("of another agent: %s", fault)
				}
				next := b.follow(t, s, "coder", "SendStreamingMessage", said("next-"+b.name, "again", object{"contextId": task["contextId"]}), nil)
				if next.context != task["contextId"] || next.id == task["id"] || next.text() != "And again." || next.state != completed {
					t.Errorf("the next task is %+v", next)
				}
			})
			t.Run("a context of the client's", func(t *testing.T) {
				context := "Mine:" + b.name
				first := b.task(t, s, "coder", said("c1-"+b.name, "hello", object{"contextId": context}))
				second := b.task(t, s, "coder", said("c2-"+b.name, "refused", object{"contextId": context}))
				if first["contextId"] != context || second["contextId"] != context {
					t.Errorf("the contexts are %v and %v", first["contextId"], second["contextId"])
				}
				list := b.must(t, s, "coder", "ListTasks", object{"contextId": context})
				if at(list, "totalSize") != 2.0 || textAt(list, "tasks", 0, "id") != second["id"] || textAt(list, "tasks", 0, "status", "state") != failed || at(list, "tasks", 0, "artifacts") != nil {
					t.Errorf("the list is %s", jsonOf(list))
				}
				list = b.must(t, s, "coder", "ListTasks", object{"contextId": context, "pageSize": 1, "includeArtifacts": true})
				list = b.must(t, s, "coder", "ListTasks", object{"contextId": context, "pageSize": 1, "includeArtifacts": true, "pageToken": list["nextPageToken"]})
				if textAt(list, "tasks", 0, "artifacts", 0, "parts", 0, "text") != "Hello there." || list["nextPageToken"] != "" {
					t.Errorf("the last page is %s", jsonOf(list))
				}
				list = b.must(t, s, "coder", "ListTasks", object{"status": failed})
				if textAt(list, "tasks", 0, "id") != second["id"] {
					t.Errorf("those that failed are %s", jsonOf(list))
				}
				if _, fault := b.call(t, s, "asker", "SendMessage", said("c3-"+b.name, "hello", object{"contextId": context})); !strings.Contains(fault, "message.contextId") {
					t.Errorf("with another agent: %s", fault)
				}
			})
			t.Run("a tool, and a file", func(t *testing.T) {
				v := b.follow(t, s, "coder", "SendStreamingMessage", said("tool-"+b.name, "list"), nil)
				if v.state != completed || strings.TrimSpace(v.text()) != "found" || v.artifacts[v.order[0]] != "I look." {
					t.Errorf("the task is %+v", v)
				}
				task := b.task(t, s, "coder", said("file-"+b.name, "report"))
				url := textAt(task, "artifacts", -1, "parts", 0, "url")
				if code, text := s.Call(t, "GET", strings.TrimPrefix(url, s.URL), ""); code != 200 || text != "all is well\n" {
					t.Errorf("%s has %d %q; the task is %s", url, code, text, jsonOf(task))
				}
			})
			t.Run("a failure", func(t *testing.T) {
				v := b.follow(t, s, "coder", "SendStreamingMessage", said("failure-"+b.name, "refused"), nil)
				if v.state != failed || textAt(v.ask, "parts", 1, "data", "reason") != "MODEL_AUTHENTICATION" {
					t.Errorf("the task is %+v", v)
				}
			})
			t.Run("an end by request", func(t *testing.T) {
				v := b.follow(t, s, "coder", "SendStreamingMessage", said("stop-"+b.name, "forever"), func(v *view) bool { return v.text() == "" })
				for range 2 {
					if task := b.must(t, s, "coder", "CancelTask", object{"id": v.id}); textAt(task, "status", "state") != canceled {
						t.Errorf("the task is %s", jsonOf(task))
					}
				}
				done := b.task(t, s, "coder", said("plain-"+b.name, "hello"))
				if _, fault := b.call(t, s, "coder", "CancelTask", object{"id": done["id"]}); !strings.Contains(fault, "TASK_NOT_CANCELABLE") {
					t.Errorf("a task that has ended: %s", fault)
				}
				if _, fault := b.call(t, s, "coder", "SendMessage", said("late-"+b.name, "more", object{"taskId": done["id"]})); !strings.Contains(fault, "UNSUPPORTED_OPERATION") {
					t.Errorf("a message to it: %s", fault)
				}
			})
		})
	}
}

func TestAnApprovalAndAQuestion(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			for _, decision := range []string{"approve", "deny"} {
				v := b.follow(t, s, "asker", "SendStreamingMessage", said("write-"+decision+b.name, "write"), nil)
				if v.state != waits || textAt(v.ask, "parts", 1, "data", "approval", "tool") != "Write" {
					t.Fatalf("the task is %+v", v)
				}
				if _, fault := b.call(t, s, "asker", "SendMessage", said("text-"+decision+b.name, "yes", object{"taskId": v.id})); !strings.Contains(fault, `message.parts`) {
					t.Errorf("an answer that is no decision: %s", fault)
				}
				answer := said("answer-"+decision+b.name, []any{object{"data": object{"decision": decision, "comment": "not now"}}}, object{"taskId": v.id, "contextId": v.context})
				if decision == "approve" {
					delete(at(answer, "message", "parts", 0, "data").(object), "comment")
				}
				task := b.task(t, s, "asker", answer)
				text := textAt(task, "artifacts", -1, "parts", 0, "text")
				if textAt(task, "status", "state") != completed || strings.Contains(text, "not now") != (decision == "deny") {
					t.Errorf("%s: the task is %s", decision, jsonOf(task))
				}
				if again := b.task(t, s, "asker", answer); jsonOf(again) != jsonOf(task) {
					t.Errorf("the answer again: %s", jsonOf(again))
				}
			}
			v := b.follow(t, s, "asker", "SendStreamingMessage", said("ask-"+b.name, "ask me"), nil)
			if v.state != waits || textAt(v.ask, "parts", 0, "text") != "Which?" {
				t.Fatalf("the task is %+v", v)
			}
			if _, fault := b.call(t, s, "asker", "SendMessage", said("wrong-"+b.name, "B", object{"taskId": v.id, "contextId": "other"})); !strings.Contains(fault, "message.contextId") {
				t.Errorf("an answer in another context: %s", fault)
			}
			answered := b.follow(t, s, "asker", "SendStreamingMessage", said("b-"+b.name, "B", object{"taskId": v.id}), nil)
			if answered.state != completed || !strings.Contains(answered.text(), "B") {
				t.Errorf("the task is %+v", answered)
			}
			sub := b.task(t, s, "lead", said("lead-"+b.name, "delegate"))
			if textAt(sub, "status", "state") != waits {
				t.Fatalf("the task is %s", jsonOf(sub))
			}
			sub = b.task(t, s, "lead", said("lead-ok-"+b.name, []any{object{"data": object{"decision": "approve"}}}, object{"taskId": sub["id"]}))
			if textAt(sub, "status", "state") != completed {
				t.Errorf("the task is %s", jsonOf(sub))
			}
		})
	}
}

func TestADisconnectStopsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			part := b.follow(t, s, "coder", "SendStreamingMessage", said("count-"+b.name, "count"), func(v *view) bool { return len(v.text()) < 80 })
			rest := b.resume(t, s, "coder", part.id)
			if rest.id != part.id || rest.state != completed || rest.text() != strings.Repeat("tick", 150) {
				t.Errorf("the rest is %+v", rest)
			}
			if _, fault := b.call(t, s, "coder", "SubscribeToTask", object{"id": part.id}); !strings.Contains(fault, "UNSUPPORTED_OPERATION") {
				t.Errorf("a task that has ended: %s", fault)
			}
			read := b.must(t, s, "coder", "GetTask", object{"id": part.id})
			if textAt(read, "artifacts", 0, "parts", 0, "text") != rest.text() {
				t.Errorf("a page that is loaded again has %s", jsonOf(read))
			}
		})
	}
}
