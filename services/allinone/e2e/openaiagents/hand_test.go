package openaiagents

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const oneTool = "turn.created in_progress turn.in_progress turn.item.added:message turn.content_part.added turn.output_text.delta turn.output_text.done turn.content_part.done " +
	"turn.item.done:message turn.item.added:command_execution agent.output.command_execution_output.delta turn.item.done:command_execution " +
	"turn.item.added:message turn.content_part.added turn.output_text.delta turn.output_text.done turn.content_part.done turn.item.done:message turn.completed idle"

func TestTheQuickstartByHand(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	key := []string{"Authorization", "Bearer " + s.Keys["ann"], "OpenAI-Beta", "agents=v1"}
	id := s.begin(t, key...)
	st := s.events(t, id, key...)
	s.send(t, id, message("tool, please"), key...)
	events := st.until("idle")
	// The first item is the user's message, so it is one of two kinds of the same name.
	if got := kinds(events); got != oneTool {
		t.Errorf("the events are\n%s", got)
	}
	if got := said(events); got != "It says 9007199254740993" {
		t.Errorf("the agent says %q", got)
	}
	x := s.must(t, "GET", "/sessions/"+id, "", key...)
	if x.text("status") != "idle" || x.text("agent", "instructions") != "Help." || x.text("environment", "type") != "openai_hosted" || x.at("usage", "total_tokens") == nil {
		t.Errorf("the session is %v", x)
	}
	// What was on the stream is in the lists, in pages and both orders.
	var items []string
	for after := ""; ; {
		page := s.must(t, "GET", "/sessions/"+id+"/items?order=asc&limit=2"+after, "", key...)
		for _, it := range page.list("data") {
			items = append(items, it.text("type"))
		}
		if page["has_more"] != true {
			break
		}
		after = "&after=" + page.text("last_id")
	}
	if got := strings.Join(items, " "); got != "message message command_execution message" {
		t.Errorf("the items are %s", got)
	}
	turns := s.must(t, "GET", "/sessions/"+id+"/turns", "", key...).list("data")
	turn := last(t, events, "turn.completed").text("turn_id")
	if len(turns) != 1 || turns[0].text("id") != turn || turns[0].text("status") != "completed" || s.must(t, "GET", "/sessions/"+id+"/turns/"+turn, "", key...).at("usage", "input_tokens") == nil {
		t.Errorf("the turns are %v", turns)
	}
	if got := s.must(t, "GET", "/sessions/"+id+"/turns/"+turn+"/items", "", key...).list("data"); len(got) != 4 || got[3].text("role") != "user" {
		t.Errorf("the items of the turn are %v", got)
	}
	// The file that the agent has left.
	artifacts := s.must(t, "GET", "/sessions/"+id+"/artifacts", "", key...).list("data")
	if len(artifacts) != 1 || artifacts[0].text("path") != "/workspace/artifacts/number.txt" || artifacts[0].text("turn_id") != turn {
		t.Fatalf("the artifacts are %v", artifacts)
	}
	path := "/sessions/" + id + "/artifacts/" + artifacts[0].text("id")
	if code, text := s.Call(t, "GET", base+path+"/content", "", key...); code != http.StatusOK || text != "9007199254740993\n" {
		t.Errorf("the artifact: %d %q", code, text)
	}
	s.must(t, "DELETE", path, "", key...)
	if code, text := s.Call(t, "GET", base+path, "", key...); code != http.StatusNotFound {
		t.Errorf("the artifact that was deleted: %d %s", code, text)
	}
	// A user who is no operator takes the agent that there is, and does not see the other one's session.
	bob := []string{"Authorization", "Bearer " + s.Keys["bob"]}
	if code, text := s.Call(t, "GET", base+"/sessions/"+id, "", bob...); code != http.StatusNotFound {
		t.Errorf("another one's session: %d %s", code, text)
	}
	own := s.must(t, "POST", "/sessions", fmt.Sprintf(`{"agent_id":%q,%s,"input":"hello"}`, x.text("agent", "id"), hosted), bob...)
	if own.text("status") != "in_progress" {
		t.Errorf("the session is %v", own)
	}
	if code, text := s.Call(t, "GET", base+"/sessions/"+id, ""); code != http.StatusUnauthorized || !strings.Contains(text, `"authentication_error"`) {
		t.Errorf("without a key: %d %s", code, text)
	}
}

func TestAStreamedSession(t *testing.T) {
	t.Parallel()
	s := serve(t)
	st := s.follow(t, "POST", "/sessions", `{"agent":{"model":"scripted:agents"},"environment":{"type":"none"},"input":"hello","stream":true,"metadata":{"a":"b"}}`)
	first, _ := st.next()
	if kind(first) != "created" || first.text("session", "metadata", "a") != "b" || first.text("session", "environment", "type") != "none" {
		t.Errorf("it begins with %v", first)
	}
	events := st.until("idle")
	if _, more := st.next(); more || !st.done {
		t.Error("the stream goes on after the turn")
	}
	if got := said(events); got != "You said: hello" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
	// Without an environment there are no commands.
	id := first.text("session", "id")
	next := s.events(t, id)
	s.send(t, id, message("tool"))
	if got := kinds(next.until("idle")); strings.Contains(got, "command_execution_output") {
		t.Errorf("a command runs without an environment: %s", got)
	}
}

func TestAPersonDecides(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.careful(t)
	for decision, want := range map[string]string{"approve": "turn.completed It says 9007199254740993", "deny": "turn.completed It says ", "cancel": "turn.cancelled "} {
		id := s.must(t, "POST", "/sessions", `{"agent_id":"careful",`+hosted+`}`).text("id")
		st := s.events(t, id)
		s.send(t, id, message("tool"))
		actions := last(t, st.until("requires_action"), "requires_action").list("session", "required_actions")
		if len(actions) != 1 || actions[0].text("type") != "mcp_approval_request" || actions[0].text("request", "server_label") != "fairlead" || actions[0].text("request", "name") != "Bash" ||
			!strings.Contains(actions[0].text("request", "arguments", "command"), "number.txt") {
			t.Fatalf("it asks for %v", actions)
		}
		x := s.must(t, "GET", "/sessions/"+id, "")
		if got := x.list("required_actions"); x.text("status") != "requires_action" || fmt.Sprint(got) != fmt.Sprint(actions) {
			t.Errorf("the session is %v", x)
		}
		answer := fmt.Sprintf(`{"type":"agent.session.input.mcp_approval_request_result","request_id":%q,"response":{"type":"mcp_tool_call","decision":%q}}`, actions[0].text("request_id"), decision)
		for range 2 { // the same answer again changes nothing
			s.send(t, id, answer)
		}
		events := st.until("idle")
		end := ""
		for _, e := range events {
			if strings.HasPrefix(kind(e), "turn.c") && e["turn"] != nil {
				end = kind(e)
			}
		}
		if got := end + " " + said(events); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q in %s", decision, got, kinds(events))
		}
	}
}

func TestTheClientRunsATool(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t)
	st := s.events(t, id)
	s.send(t, id, message("client"))
	var call object
	for call == nil {
		if e := last(t, st.until("turn.item.added"), "turn.item.added"); e.text("item", "type") == "function_call" {
			call = mapOf(e["item"])
		}
	}
	if call.text("name") != "weather" || call.text("arguments", "city") != "Berlin" {
		t.Errorf("the call is %v", call)
	}
	result := func(call, more string) string {
		return fmt.Sprintf(`{"events":[{"type":"agent.session.input.tool_result","turn_id":%q,"call_id":%q,%s}]}`, strings.Split(call, ".")[0], call, more)
	}
	// The helpers of the official clients know this very refusal, and ask again.
	other := strings.Split(call.text("call_id"), ".")[0] + ".9.9"
	if code, text := s.Call(t, "POST", base+"/sessions/"+id+"/events", result(other, `"success":true`)); code != http.StatusBadRequest ||
		text != fmt.Sprintf(`{"error":{"code":"invalid_request_error","message":"Unknown pending tool call: %s","param":null,"type":"invalid_request_error"}}`, other) {
		t.Errorf("a call that there is not: %d %s", code, text)
	}
	for range 2 { // the same result again changes nothing
		if code, text := s.Call(t, "POST", base+"/sessions/"+id+"/events", result(call.text("call_id"), `"success":true,"output":"21 degrees"`)); code != http.StatusAccepted {
			t.Fatalf("the result: %d %s", code, text)
		}
	}
	events := st.until("idle")
	if got := said(events); got != "The weather: 21 degrees" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
}

func TestACancelAndAFollowUp(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t)
	st := s.events(t, id)
	s.send(t, id, message("long"))
	st.until("turn.output_text.delta")
	if got := s.must(t, "GET", "/sessions/"+id, "").text("status"); got != "in_progress" {
		t.Errorf("the session is %s", got)
	}
	if code, text := s.Call(t, "DELETE", base+"/sessions/"+id, ""); code != http.StatusBadRequest {
		t.Errorf("a running session is deleted: %d %s", code, text)
	}
	s.send(t, id, `{"type":"agent.session.input.cancel"}`)
	events := st.until("idle")
	last(t, events, "turn.cancelled")
	if got := last(t, events, "turn.item.done").text("item", "status"); got != "incomplete" {
		t.Errorf("the message is %s", got)
	}
	s.send(t, id, message("and now?"))
	if got := said(st.until("idle")); got != "You said: and now?" {
		t.Errorf("the agent says %q", got)
	}
	s.send(t, id, message("fail"))
	failed := last(t, st.until("idle"), "turn.failed")
	if failed.text("turn", "error", "code") != "authentication_error" {
		t.Errorf("the turn is %v", failed)
	}
	s.must(t, "DELETE", "/sessions/"+id, "")
	st.until("failed") // it never runs again
	if code, _ := s.Call(t, "GET", base+"/sessions/"+id, ""); code != http.StatusNotFound {
		t.Errorf("the session that was deleted: %d", code)
	}
}

func TestAMessageSteersTheTurn(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t)
	st := s.events(t, id)
	s.send(t, id, message("steer"))
	actions := last(t, st.until("requires_action"), "requires_action").list("session", "required_actions")
	key := []string{"Idempotency-Key", "k-1"}
	for range 2 { // the same key counts once
		s.send(t, id, message("more"), key...)
	}
	s.send(t, id, fmt.Sprintf(`{"type":"agent.session.input.tool_result","turn_id":%q,"call_id":%q,"success":true,"output":"sun"}`, actions[0].text("turn_id"), actions[0].text("call_id")))
	events := st.until("idle")
	if got := said(events); got != "You said: more" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
	if strings.Contains(kinds(events), "turn.created") || len(s.must(t, "GET", "/sessions/"+id+"/turns", "").list("data")) != 1 {
		t.Errorf("a message that steers makes a turn: %s", kinds(events))
	}
	users := 0
	for _, it := range s.must(t, "GET", "/sessions/"+id+"/items", "").list("data") {
		if it.text("role") == "user" {
			users++
		}
	}
	if users != 2 {
		t.Errorf("the user has said %d messages", users)
	}
}

func TestASubagentIsRead(t *testing.T) {
	t.Parallel()
	s := serve(t)
	code, text := s.Call(t, "POST", "/v1/agents?agentId=boss", `{"model":"scripted:agents","profile":"full","tools":["Task","Bash"],"subagents":[{"name":"leaf","description":"answers","prompt":"Answer."}]}`)
	if code != http.StatusOK {
		t.Fatal(text)
	}
	id := s.must(t, "POST", "/sessions", `{"agent_id":"boss",`+hosted+`}`).text("id")
	st := s.events(t, id)
	s.send(t, id, message("ask a leaf"))
	events := st.until("idle")
	closed := last(t, events, "subagent.closed")
	if got := said(events); !strings.Contains(got, "You said: of the leaf") || closed.text("subagent", "name") != "leaf" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
	path := "/sessions/" + id + "/subagents"
	every := s.must(t, "GET", path, "").list("data")
	if len(every) != 1 || every[0].text("id") != closed.text("subagent", "id") || every[0].text("status") != "closed" || every[0].text("parent_agent_id") != "boss" {
		t.Fatalf("the subagents are %v", every)
	}
	path += "/" + every[0].text("id")
	if got := s.must(t, "GET", path, ""); got.text("session_id") != id {
		t.Errorf("the subagent is %v", got)
	}
	turns := s.must(t, "GET", path+"/turns", "").list("data")
	if len(turns) != 1 || turns[0].text("subagent_id") != every[0].text("id") || turns[0].text("session_id") != id {
		t.Fatalf("its turns are %v", turns)
	}
	path2 := path + "/turns/" + turns[0].text("id")
	if got := s.must(t, "GET", path2, ""); got.text("subagent_id") != every[0].text("id") {
		t.Errorf("its turn is %v", got)
	}
	a, b := s.must(t, "GET", path+"/items", "").list("data"), s.must(t, "GET", path2+"/items", "").list("data")
	if len(a) != 2 || fmt.Sprint(a) != fmt.Sprint(b) || a[0].list("content")[0].text("text") != "You said: of the leaf" {
		t.Errorf("its items are %v and %v", a, b)
	}
	if code, text := s.Call(t, "GET", base+"/sessions/"+s.begin(t)+"/subagents/"+every[0].text("id"), ""); code != http.StatusNotFound {
		t.Errorf("a subagent of another session: %d %s", code, text)
	}
}
