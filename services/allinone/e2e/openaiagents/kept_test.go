package openaiagents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAStreamGoesOnAfterTheServerWasKilled in the middle of a message: what the client has of it is not repeated, and
// nothing is missing.
func TestAStreamGoesOnAfterTheServerWasKilled(t *testing.T) {
	t.Parallel()
	s := spawn(t)
	id := s.begin(t)
	st := s.events(t, id)
	s.send(t, id, message("slow"))
	texts := map[string]string{}
	read := func(e object) {
		if kind(e) == "turn.output_text.delta" {
			texts[e.text("item_id")] += e.text("delta")
		}
	}
	for len(texts) == 0 {
		e, ok := st.next()
		if !ok {
			t.Fatal("the stream ended at once")
		}
		read(e)
	}
	s.Kill()
	for {
		e, ok := st.next()
		if !ok {
			break
		}
		read(e)
	}
	if st.done || st.lines.Err() == nil {
		t.Error("a stream that broke off ends well")
	}
	s.Start(t)
	resumed := s.events(t, id, "Last-Event-ID", st.last)
	var events []object
	for len(events) == 0 || kind(events[len(events)-1]) != "idle" {
		e, ok := resumed.next()
		if !ok {
			t.Fatalf("the stream ended after %s", kinds(events))
		}
		read(e)
		events = append(events, e)
	}
	if got := said(events); got != "one two three four five six seven eight nine ten" {
		t.Errorf("the agent says %q in %s", got, kinds(events))
	}
	items := s.must(t, "GET", "/sessions/"+id+"/items?order=asc", "").list("data")
	if len(items) != 2 || texts[items[1].text("id")] != "one two three four five six seven eight nine ten" {
		t.Errorf("the items are %v, the deltas %v", items, texts)
	}
}

func TestAPageThatIsLoadedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t)
	st := s.events(t, id)
	s.send(t, id, message("long"))
	st.until("turn.output_text.delta")
	again := s.follow(t, "GET", "/sessions/"+id+"/events", "")
	if e, ok := again.next(); !ok || kind(e) != "in_progress" || e.text("session", "id") != id {
		t.Errorf("a stream begins with %v", e)
	}
	items := s.must(t, "GET", "/sessions/"+id+"/items?order=asc", "").list("data")
	if len(items) != 2 || items[1].text("status") != "in_progress" || !strings.HasPrefix(items[1].list("content")[0].text("text"), "word ") {
		t.Errorf("the items are %v", items)
	}
	s.send(t, id, `{"type":"agent.session.input.cancel"}`)
	again.until("turn.cancelled")
}

func TestBadInputIsNamed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t)
	events := "/sessions/" + id + "/events"
	for _, c := range []struct {
		method, path, body string
		code               int
		want, param        string
	}{
		{"POST", "/sessions", `{`, 400, "not the JSON", ""},
		{"POST", "/sessions", `{"agent":{"model":"scripted:agents"}}`, 400, "it is required", "environment"},
		{"POST", "/sessions", `{"agent":{"model":"scripted:agents"},"environment":{"type":"none"}}`, 400, "it is required", "input"},
		{"POST", "/sessions", `{"agent":{"model":"scripted:agents"},"environment":{"type":"self_hosted"}}`, 400, "not public", "environment.type"},
		{"POST", "/sessions", `{"agent":{"model":"scripted:agents"},"environment":{"type":"openai_hosted","env":{"A":"b"}}}`, 400, "not served", "environment.env"},
		{"POST", "/sessions", `{"agent":{},` + hosted + `}`, 400, "required", "agent.model"},
		{"POST", "/sessions", `{"agent":{"model":"none"},` + hosted + `}`, 400, "not a model", "agent.model"},
		{"POST", "/sessions", `{"agent":{"model":"scripted:agents","tools":[{"type":"web_search"}]},` + hosted + `}`, 400, "not served", "agent.tools[0].type"},
		{"POST", "/sessions", `{"agent":{"model":"scripted:agents","tools":[{"type":"function","name":"Bash"}]},` + hosted + `}`, 400, "tool of Fairlead", "agent.tools[0].name"},
		{"POST", "/sessions", `{"agent":{"model":"scripted:agents","multi_agent":{"enabled":true}},` + hosted + `}`, 400, "not served", "agent.multi_agent.enabled"},
		{"POST", "/sessions", `{"agent_id":"none",` + hosted + `}`, 404, "none", ""},
		{"POST", "/sessions", `{` + inline + `,` + hosted + `,"vault_ids":["v"]}`, 400, "not served", "vault_ids"},
		{"POST", "/sessions", `{` + inline + `,` + hosted + `,"spend_control":{"limit":-1}}`, 400, "cents", "spend_control.limit"},
		{"POST", "/sessions", `{` + inline + `,` + hosted + `,"input":[{"role":"system","content":"x"}]}`, 400, "only user", "input[0].role"},
		{"POST", "/sessions/" + id, `{"spend_control":{"limit":5}}`, 400, "cannot be changed", "spend_control"},
		{"GET", "/sessions?limit=0", "", 400, "above 0", "limit"},
		{"GET", "/sessions?agent_id=%ff", "", 400, "not UTF-8", "agent_id"},
		{"GET", "/sessions?order=up", "", 400, "asc", "order"},
		{"POST", events, `{}`, 400, "required", "events"},
		{"POST", events, `{"events":[{"type":"agent.session.input.message"}]}`, 400, "required", "events[0].input"},
		{"POST", events, `{"events":[` + message("hi") + `,{"type":"what"}]}`, 400, "not served", "events[1].type"},
		{"POST", events, `{"events":[{"type":"agent.session.input.message","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]}]}`, 400, "data URLs", "events[0].input[0].content[0].image_url"},
		{"POST", events, `{"events":[{"type":"agent.session.input.tool_result","call_id":"t.1.1"}]}`, 400, "required", "events[0].success"},
		{"POST", events, `{"events":[{"type":"agent.session.input.mcp_approval_request_result","request_id":"x","response":{"decision":"approve"}}]}`, 400, "no approval", "request_id"},
		{"POST", events, `{"events":[{"type":"agent.session.input.mcp_approval_request_result","request_id":"mcpr_a.1.1","response":{"decision":"maybe"}}]}`, 400, "none of approve", "events[0].response.decision"},
		{"GET", "/sessions/none", "", 404, "none", ""},
		{"GET", "/sessions/" + id + "/turns/none", "", 404, "none", ""},
		{"GET", "/sessions/" + id + "/artifacts/none", "", 404, "none", ""},
		{"GET", "/sessions/" + id + "/traces", "", 404, "not served", ""},
		{"GET", "/automations", "", 404, "not served", ""},
		{"POST", "/environments/templates", `{}`, 404, "not served", ""},
		{"PUT", "/sessions", `{}`, 405, "PUT", ""},
	} {
		code, text := s.Call(t, c.method, base+c.path, c.body)
		got := parse(text)
		if code != c.code || !strings.Contains(got.text("error", "message"), c.want) || got.text("error", "param") != c.param || got.text("error", "type") != "invalid_request_error" {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, code, text)
		}
	}
	if code, text := s.Call(t, "GET", base+events, "", "Last-Event-ID", "99.0"); code != http.StatusBadRequest || !strings.Contains(text, "Last-Event-ID") {
		t.Errorf("an id of no event: %d %s", code, text)
	}
	if code, text := s.Call(t, "GET", "/openai/v1/vaults", ""); code != http.StatusNotFound || !strings.Contains(text, "not served") {
		t.Errorf("vaults: %d %s", code, text)
	}
	if got := s.must(t, "GET", "/sessions/"+id+"/items", "").list("data"); len(got) != 0 {
		t.Errorf("bad input has left %v", got)
	}
	if got := s.must(t, "GET", "/sessions", "").list("data"); len(got) != 1 {
		t.Errorf("bad input has left sessions: %v", got)
	}
	if code, text := s.Call(t, "POST", "/openai/v1/chat/completions", `{"model":"scripted:agents","messages":[{"role":"user","content":"hi"}]}`); code != http.StatusOK || !strings.Contains(text, "You said: hi") {
		t.Errorf("the model proxy beside it: %d %s", code, text)
	}
}

func TestARepetitionHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	s := serve(t)
	body := `{` + inline + `,` + hosted + `,"input":"hello"}`
	first := s.must(t, "POST", "/sessions", body, "X-Stainless-Retry-Count", "0")
	again := s.must(t, "POST", "/sessions", body, "X-Stainless-Retry-Count", "1")
	other := s.must(t, "POST", "/sessions", body, "X-Stainless-Retry-Count", "0")
	if first.text("id") != again.text("id") || first.text("id") == other.text("id") {
		t.Errorf("the sessions are %s, %s and %s", first.text("id"), again.text("id"), other.text("id"))
	}
	if first.text("agent", "id") != other.text("agent", "id") {
		t.Error("equal agents of sessions are not shared")
	}
	if got := s.must(t, "GET", "/sessions/"+first.text("id")+"/turns", "").list("data"); len(got) != 1 {
		t.Errorf("the turns are %v", got)
	}
}

func TestWhatIsKeptComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t)
	agent := s.must(t, "POST", "", `{"name":"Ä b","model":"scripted:agents","instructions":"Help.","reasoning":{"effort":"high"},"metadata":{"Key Ü":"v"},"tools":[`+weather+`]}`)
	if agent.text("object") != "agent" || agent.text("name") != "Ä b" || agent.text("metadata", "Key Ü") != "v" || agent.text("reasoning", "effort") != "high" || agent.list("tools")[0].text("name") != "weather" {
		t.Errorf("the agent is %v", agent)
	}
	path := "/" + agent.text("id")
	changed := s.must(t, "POST", path, `{"instructions":"New."}`)
	if changed.text("instructions") != "New." || changed.text("name") != "Ä b" || len(changed.list("tools")) != 1 {
		t.Errorf("the changed agent is %v", changed)
	}
	if got := s.must(t, "GET", path, ""); got.text("instructions") != "New." {
		t.Errorf("the agent is %v", got)
	}
	x := s.must(t, "POST", "/sessions", fmt.Sprintf(`{"agent_id":%q,"agent":{"instructions":"Other."},%s,"metadata":{"n":"1"},"spend_control":{"limit":250}}`, agent.text("id"), hosted))
	if x.text("agent", "instructions") != "Other." || x.text("agent", "name") != "Ä b" || x.at("spend_control", "limit") != 250.0 || x.at("spend_control", "consumed") != 0.0 {
		t.Errorf("the session is %v", x)
	}
	session := "/sessions/" + x.text("id")
	if got := s.must(t, "POST", session, `{"metadata":{"m":"2"}}`); fmt.Sprint(got["metadata"]) != "map[m:2]" || got.text("agent", "instructions") != "Other." {
		t.Errorf("the session is %v", got)
	}
	for range 4 {
		s.must(t, "POST", "/sessions", fmt.Sprintf(`{"agent_id":%q,%s}`, agent.text("id"), hosted))
	}
	for query, want := range map[string]int{"": 5, "order=asc&": 5, "agent_id=" + agent.text("id") + "&": 4, "metadata[m]=2&": 1, "metadata[m]=3&": 0} {
		n, after := 0, ""
		for {
			got := s.must(t, "GET", "/sessions?"+query+"limit=2"+after, "")
			n += len(got.list("data"))
			if got["has_more"] != true {
				break
			}
			after = "&after=" + got.text("last_id")
		}
		if n != want {
			t.Errorf("sessions %s: %d, want %d", query, n, want)
		}
	}
	// A client that deletes what it lists comes to the end.
	n := 0
	for after := ""; ; {
		got := s.must(t, "GET", "/sessions?limit=2"+after, "")
		for _, x := range got.list("data") {
			s.must(t, "DELETE", "/sessions/"+x.text("id"), "")
			n++
		}
		if got["has_more"] != true {
			break
		}
		after = "&after=" + got.text("last_id")
	}
	if n != 5 {
		t.Errorf("%d sessions were deleted", n)
	}
	found := 0
	for _, a := range s.must(t, "GET", "?limit=100", "").list("data") {
		if a.text("name") == "Ä b" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the agent is %d times in the list", found)
	}
	if got := s.must(t, "DELETE", path, ""); got["deleted"] != true || got.text("object") != "agent.deleted" {
		t.Errorf("the answer is %v", got)
	}
	if code, _ := s.Call(t, "GET", base+path, ""); code != http.StatusNotFound {
		t.Errorf("a deleted agent: %d", code)
	}
}

func parse(text string) object {
	st := object{}
	_ = json.Unmarshal([]byte(text), &st)
	return st
}

func TestMetadataOfAUserBreakNoList(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	ann, bob := []string{"Authorization", "Bearer " + s.Keys["ann"]}, []string{"Authorization", "Bearer " + s.Keys["bob"]}
	for _, kept := range []string{`{"openai_session":null}`, `{"openai_session":{"agent":{},"environment":null}}`, `{"openai_session":{"environment":{"type":"none"}}}`} {
		body, err := json.Marshal(object{"agent": "coder", "metadata_json": kept})
		if err != nil {
			t.Fatal(err)
		}
		if code, text := s.Call(t, "POST", "/v1/sessions", string(body), bob...); code != http.StatusOK {
			t.Fatalf("%s: %d %s", kept, code, text)
		}
		if code, text := s.Call(t, "GET", base+"/sessions", "", ann...); code != http.StatusOK || !strings.Contains(text, `"openai_hosted"`) {
			t.Errorf("the operator's list with %s: %d %s", kept, code, text)
		}
	}
}

func TestAnInlineAgentIsAsItWasSent(t *testing.T) {
	t.Parallel()
	s := serve(t)
	body := `{"agent":{"model":"scripted:agents","instructions":"Be kind."},` + hosted + `}`
	seen := map[string]bool{}
	for _, change := range [][2]string{{"POST", `{"instructions":"Be rude."}`}, {"DELETE", ""}, {}} {
		code, text := s.Call(t, "POST", base+"/sessions", body)
		made := object{}
		if err := json.Unmarshal([]byte(text), &made); err != nil || code != http.StatusOK {
			t.Fatalf("a session: %d %s", code, text)
		}
		agent := made.text("agent", "id")
		if code, got := s.Call(t, "GET", base+"/"+agent, ""); seen[agent] || !strings.Contains(got, "Be kind.") {
			t.Errorf("the agent of the session: %d %s", code, got)
		}
		seen[agent] = true
		if change[0] != "" {
			if code, text := s.Call(t, change[0], base+"/"+agent, change[1]); code != http.StatusOK {
				t.Fatalf("%s: %d %s", change[0], code, text)
			}
		}
	}
}
