package agui

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestRunsByHand(t *testing.T) {
	t.Parallel()
	s := serve(t)
	t.Run("a message is a run, and its id a turn", func(t *testing.T) {
		first := s.run(t, "asker", input("a thread / with any text", "r1", "hello"), nil)
		const want = "RUN_STARTED STATE_DELTA STEP_STARTED REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_END " +
			"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED STATE_DELTA RUN_FINISHED"
		if kinds(first) != want || said(first) != "Hello there." {
			t.Errorf("the run is %s\nand says %q", kinds(first), said(first))
		}
		for cut := range first {
			rest := s.run(t, "asker", input("a thread / with any text", "r1", "hello"), nil, "Last-Event-ID", first[cut].id)
			if len(rest) != len(first)-cut-1 {
				t.Errorf("after %s there are %d events, want %d", first[cut].id, len(rest), len(first)-cut-1)
			}
		}
		_, all := s.call(t.Context(), http.MethodGet, "/v1/sessions", nil)
		if n := strings.Count(all, `"finishedTurns":1`); n != 1 {
			t.Errorf("%d sessions have one turn: %s", n, all)
		}
		next := input("a thread / with any text", "r2", "again")
		next["messages"] = []any{object{"id": "m-r1", "role": "user", "content": "hello"}, object{"id": "x", "role": "assistant", "content": "Hello there."}, object{"id": "m-r2", "role": "user", "content": "again"}}
		if all := s.run(t, "asker", next, nil); said(all) != "And again." {
			t.Errorf("the next run says %q", said(all))
		}
	})
	t.Run("an approval ends a run, and resume begins the next", func(t *testing.T) {
		for _, c := range []struct{ name, payload, want string }{
			{"approved", `{"approved":true}`, "created"}, {"denied", `{"approved":false,"comment":"not now"}`, "not now"},
			{"edited", `{"approved":true,"editedArgs":{"file_path":"/workspace/b.txt","content":"two"}}`, "b.txt"},
		} {
			first := s.run(t, "asker", input(c.name, "w1-"+c.name, "write"), nil)
			stopped, _ := outcome(first)["interrupts"].([]any)
			if len(stopped) != 1 {
				t.Fatalf("%s: the run ends with %v", c.name, first[len(first)-1])
			}
			again := input(c.name, "w2-"+c.name, "write")
			if all := s.run(t, "asker", again, nil); kinds(all) != "RUN_ERROR" {
				t.Errorf("a message without resume: %s", kinds(all))
			}
			payload := jsonOf(t, c.payload)
			again["resume"] = []any{object{"interruptId": stopped[0].(object)["id"], "status": "resolved", "payload": payload}}
			second := s.run(t, "asker", again, nil)
			if outcome(second)["type"] != "success" || !strings.Contains(strings.ToLower(said(second)), c.want) {
				t.Errorf("%s: %s says %q", c.name, kinds(second), said(second))
			}
			if replayed := s.run(t, "asker", again, nil); kinds(replayed) != kinds(second) || said(replayed) != said(second) {
				t.Errorf("%s again: %s", c.name, kinds(replayed))
			}
		}
	})
	t.Run("a question", func(t *testing.T) {
		first := s.run(t, "asker", input("q", "q1", "ask me"), nil)
		stopped, _ := outcome(first)["interrupts"].([]any)
		if len(stopped) != 1 || stopped[0].(object)["reason"] != "input_required" {
			t.Fatalf("the run ends with %v", first[len(first)-1])
		}
		again := input("q", "q1", "ask me") // the id of the run that asked: the answer counts
		again["resume"] = []any{object{"interruptId": stopped[0].(object)["id"], "status": "resolved", "payload": object{"answers": object{"Which?": "B"}}}}
		if all := s.run(t, "asker", again, nil); !strings.Contains(said(all), "B") {
			t.Errorf("the agent says %q", said(all))
		}
	})
	t.Run("a client's tool", func(t *testing.T) {
		in := input("c", "c1", "pick")
		in["tools"] = []any{object{"name": "pick_color", "description": "asks for a color", "parameters": object{"type": "object"}}}
		first := s.run(t, "asker", in, nil)
		pending, _ := outcome(first)["pendingToolCallIds"].([]any)
		if len(pending) != 1 {
			t.Fatalf("the run ends with %v", first[len(first)-1])
		}
		next := input("c", "c2", "pick")
		next["messages"] = append(next["messages"].([]any), object{"id": "a", "role": "assistant"}, object{"id": "t", "role": "tool", "toolCallId": pending[0], "content": "red"})
		second := s.run(t, "asker", next, nil)
		if said(second) != "You picked red" {
			t.Errorf("the agent says %q in %s", said(second), kinds(second))
		}
		if again := s.run(t, "asker", next, nil); kinds(again) != kinds(second) {
			t.Errorf("again: %s, want %s", kinds(again), kinds(second))
		}
	})
	t.Run("a subagent that waits", func(t *testing.T) {
		first := s.run(t, "lead", input("s", "s1", "delegate"), nil)
		stopped, _ := outcome(first)["interrupts"].([]any)
		if len(stopped) != 1 || stopped[0].(object)["subagentRunId"] == nil || !strings.Contains(kinds(first), "SUBAGENT_FINISHED") {
			t.Fatalf("the run is %s and ends with %v", kinds(first), first[len(first)-1])
		}
		again := input("s", "s2", "delegate")
		again["resume"] = []any{object{"interruptId": stopped[0].(object)["id"], "status": "resolved", "payload": object{"approved": true}}}
		if all := s.run(t, "lead", again, nil); outcome(all)["type"] != "success" || !strings.Contains(kinds(all), "SUBAGENT_STARTED") {
			t.Errorf("the second run is %s: %v", kinds(all), all[len(all)-1])
		}
	})
	t.Run("what was set up, and what it took", func(t *testing.T) {
		for n, want := range []string{"The workspace was made.", ""} {
			all := s.run(t, "asker", input("setup", fmt.Sprintf("s%d", n), "look"), nil)
			if got := words(all, "developer"); got != want {
				t.Errorf("run %d: people read %q, want %q", n, got, want)
			}
			took, _ := all[len(all)-1].object["metadata"].(object)
			session, _ := took["session"].(object)
			if session["turns"] != float64(n+1) || took["model"] != "play:agui" || took["toolErrors"] != float64(2) || took["durationMs"] == float64(0) {
				t.Errorf("run %d took %v", n, took)
			}
		}
	})
	t.Run("another message under the id of a run", func(t *testing.T) {
		s.run(t, "asker", input("taken", "x1", "hello"), nil)
		code, text := s.call(t.Context(), http.MethodPost, "/v1/agui/asker", input("taken", "x1", "again"))
		if code != http.StatusConflict || !strings.Contains(text, "RUN_ID_TAKEN") {
			t.Errorf("%d %s", code, text)
		}
	})
	t.Run("a failure", func(t *testing.T) {
		all := s.run(t, "asker", input("f", "f1", "refused"), nil)
		if end := all[len(all)-1]; end.object["type"] != "RUN_ERROR" || end.object["code"] != "MODEL_AUTHENTICATION" {
			t.Errorf("the end is %v", end)
		}
	})
	t.Run("the list of things to do is state", func(t *testing.T) {
		all := s.run(t, "asker", input("p", "p1", "plan"), nil)
		if !strings.Contains(fmt.Sprint(all), "/fairlead/todos") {
			t.Errorf("the run is %v", all)
		}
	})
	t.Run("bad input", func(t *testing.T) {
		for body, field := range map[string]string{
			`{"runId":"r"}`: "threadId", `{"threadId":"t"}`: "runId", `{"threadId":"t","runId":"r","messages":{}}`: "messages",
			`{"threadId":"t","runId":"r","messages":[]}`: "messages", `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":5}]}`: "messages[0].content",
			`{"threadId":"t","runId":"r","protocolVersion":"9.0"}`: "protocolVersion",
		} {
			code, text := s.call(t.Context(), http.MethodPost, "/v1/agui/asker", jsonOf(t, body))
			if code != http.StatusBadRequest || !strings.Contains(text, `"field":"`+field+`"`) {
				t.Errorf("%s: %d %s", body, code, text)
			}
		}
	})
}

func TestADisconnectStopsNothingAndAReloadShowsTheThread(t *testing.T) {
	t.Parallel()
	s := serve(t)
	n := 0
	part := s.run(t, "asker", input("t", "r1", "count"), func(f frame) bool {
		if f.object["type"] == "TEXT_MESSAGE_CONTENT" {
			n++
		}
		return n < 20
	})
	rest := s.read(t, http.MethodGet, "/v1/agui/asker/events?threadId=t&runId=r1", nil, nil, "Last-Event-ID", part[len(part)-1].id)
	if text := said(part) + said(rest); text != strings.Repeat("tick", 150) || outcome(rest)["type"] != "success" {
		t.Errorf("together they say %d bytes: %s", len(text), kinds(rest))
	}
	whole := s.read(t, http.MethodGet, "/v1/agui/asker/events?threadId=t", nil, nil)
	if kinds(whole) != "RUN_STARTED MESSAGES_SNAPSHOT RUN_FINISHED" || !strings.Contains(fmt.Sprint(whole), "ticktick") {
		t.Errorf("a page that is loaded sees %s", kinds(whole))
	}
}

// A page that did not begin a run gets a name for it, under which it may ask for the rest also when the run has ended.
func TestAPageGetsTheRestOfARunThatItDidNotBegin(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first := func(f frame) bool { return f.object["type"] != "TEXT_MESSAGE_CONTENT" }
	s.run(t, "asker", input("t", "r1", "count"), first)
	part := s.read(t, http.MethodGet, "/v1/agui/asker/events?threadId=t", nil, first)
	path := fmt.Sprintf("/v1/agui/asker/events?threadId=t&runId=%s", part[0].object["runId"])
	for range 2 { // while it runs, and when it has ended
		rest := s.read(t, http.MethodGet, path, nil, nil, "Last-Event-ID", part[len(part)-1].id)
		if text := said(part) + said(rest); text != strings.Repeat("tick", 150) || outcome(rest)["type"] != "success" {
			t.Errorf("together they say %d bytes: %s", len(text), kinds(rest))
		}
	}
}

func TestARunSurvivesTheServersDeath(t *testing.T) {
	t.Parallel()
	s := serve(t)
	n := 0
	s.run(t, "asker", input("t", "r1", "count"), func(f frame) bool {
		if f.object["type"] == "TEXT_MESSAGE_CONTENT" {
			n++
		}
		return n < 20
	})
	s.kill()
	s.start(t)
	all := s.run(t, "asker", input("t", "r1", "count"), nil)
	if outcome(all)["type"] != "success" || !strings.Contains(kinds(all), "MESSAGES_SNAPSHOT") || !strings.HasSuffix(said(all), strings.Repeat("tick", 150)) {
		t.Errorf("the run is %s and says %d bytes", kinds(all), len(said(all)))
	}
}

func TestRoutesBesideRuns(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run(t, "asker", input("t", "r1", "hello"), nil)
	for _, c := range []struct {
		method, path string
		body         any
		code         int
		want         string
	}{
		{"GET", "health", nil, 200, `"healthy"`},
		{"GET", "capabilities", nil, 200, `"approveWithEdits":true`},
		{"GET", "tasks?threadId=t", nil, 200, `{"tasks":[]}`},
		{"GET", "mcp/status?threadId=t", nil, 200, `/mcp"`},
		{"GET", "export?threadId=t", nil, 200, `Hello`},
		{"GET", "export", nil, 400, `"field":"threadId"`},
		{"POST", "feedback", object{"type": "META", "metaType": "thumbs_up", "threadId": "t", "ts": 1, "payload": object{"runId": "r1", "comment": "fine"}}, 200, `"recorded":true`},
		{"POST", "feedback", object{"type": "META", "metaType": "thumbs_up", "threadId": "t", "ts": 1, "payload": object{"runId": "r1", "comment": "fine"}}, 200, `"recorded":true`},
		{"POST", "feedback", object{"type": "META", "metaType": "perhaps", "threadId": "t"}, 400, `"field":"metaType"`},
		{"POST", "feedback", object{"type": "META", "metaType": "thumbs_down", "threadId": "t", "payload": object{"messageId": "x"}}, 400, `"field":"payload.messageId"`},
		{"POST", "feedback", object{"type": "META", "metaType": "thumbs_down", "threadId": "t", "payload": object{"runId": "x"}}, 400, `"field":"payload.runId"`},
		{"POST", "feedback", object{"type": "META", "metaType": "thumbs_down", "threadId": "another"}, 404, `another`},
		{"GET", "tasks?threadId=other", nil, 404, `SESSION_NOT_FOUND`},
		{"POST", "interrupt", object{"thread_id": "t"}, 200, `Interrupt signal sent`},
		{"POST", "model", object{"threadId": "t", "model": "none:such"}, 400, `"error"`},
		{"POST", "model", object{"threadId": "t"}, 400, `"field":"model"`},
		{"POST", "model", object{"threadId": "t", "model": "play:agui"}, 200, `"model":"play:agui"`},
		{"POST", "tasks/stop", object{"threadId": "t", "taskId": "none"}, 404, `"error"`},
		{"GET", "interrupt", nil, 405, `METHOD_NOT_ALLOWED`},
		{"GET", "nothing", nil, 404, `PATH_NOT_FOUND`},
	} {
		if code, text := s.call(t.Context(), c.method, "/v1/agui/asker/"+c.path, c.body); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", c.method, c.path, code, text, c.code, c.want)
		}
	}
	_, text := s.call(t.Context(), http.MethodPost, "/v1/agui/asker/clone", object{"threadId": "t"})
	made, _ := jsonOf(t, text).(object)["threadId"].(string)
	if all := s.read(t, http.MethodGet, "/v1/agui/asker/events?threadId="+made, nil, nil); !strings.Contains(fmt.Sprint(all), "Hello there.") {
		t.Errorf("the clone %q has %v", text, all)
	}
}
