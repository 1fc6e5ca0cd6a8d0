package managed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestBadInputNamesItsField(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.begin(t, toolset)
	events := "/sessions/" + id + "/events"
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "/agents", `{"model":"scripted:agents"}`, 400, "name: "},
		{"POST", "/agents", `{"name":"x"}`, 400, "model: "},
		{"POST", "/agents", `{"name":5,"model":"x"}`, 400, "name"},
		{"POST", "/agents", `{"name":"x","model":"scripted:agents","tools":[{"type":"bash_20250124"}]}`, 400, "tools[0].type: "},
		{"POST", "/agents", `{"name":"x","model":"scripted:agents","tools":[{"type":"agent_toolset_20260401","configs":[{"name":"web_search","enabled":true}]}]}`, 400, "tools[0].configs[0].enabled: "},
		{"POST", "/agents", `{"name":"x","model":"scripted:agents","skills":[{"type":"anthropic","skill_id":"xlsx"}]}`, 400, "skills: "},
		{"POST", "/agents", `{"name":"x","model":"scripted:agents","multiagent":{"type":"coordinator"}}`, 400, "multiagent: "},
		{"POST", "/environments", `{"name":"x","config":{"type":"on_the_moon"}}`, 400, "config.type: "},
		{"POST", "/environments", `{"name":"x","config":{"type":"cloud","packages":{"pip":["pandas"]}}}`, 400, "config.packages.pip: "},
		{"POST", "/sessions", `{"agent":"agent_coder"}`, 400, "environment_id: "},
		{"POST", "/sessions", `{"agent":"agent_coder","environment_id":"env_x","vault_ids":["vlt_1"]}`, 400, "vault_ids: "},
		{"POST", "/sessions", `{"agent":"agent_coder","environment_id":"env_x","resources":[{"type":"memory_store"}]}`, 400, "resources[0].type: "},
		{"POST", "/sessions", `{"agent":{"type":"agent_with_overrides","id":"agent_coder"},"environment_id":"env_x"}`, 400, "agent.type: "},
		{"POST", events, `{"events":[]}`, 400, "events: "},
		{"POST", events, `{"events":[{"type":"user.message","content":[{"type":"text","text":"x"}]},{"type":"user.define_outcome"}]}`, 400, "events[1].type: "},
		{"POST", events, `{"events":[{"type":"user.message","content":[{"type":"image","source":{"type":"url","url":"https://a"}}]}]}`, 400, "events[0].content[0].source.type: "},
		{"POST", events, `{"events":[{"type":"user.tool_confirmation","tool_use_id":"sevt_c_none.1.0","result":"allow"}]}`, 400, "events[0].tool_use_id: "},
		{"POST", events, `{"events":[{"type":"user.tool_confirmation","tool_use_id":"x","result":"perhaps"}]}`, 400, "events[0].tool_use_id: "},
		{"POST", events, `{`, 400, "JSON"},
		{"GET", events + "?order=desc&page=asc.1.0", "", 400, "page: "},
		{"GET", events + "?limit=x", "", 400, "limit: "},
		{"GET", "/vaults", "", 404, "vaults"},
		{"POST", "/memory_stores", `{}`, 404, "memory stores"},
		{"POST", "/deployments", `{}`, 404, "deployments"},
		{"GET", "/environments/env_x/work/poll", "", 404, "environments/x"},
		{"GET", "/agents/agent_none", "", 404, "none"},
	} {
		code, text := s.Call(t, c.method, base+c.path, c.body)
		var got struct {
			Type      string
			Error     struct{ Type, Message string }
			RequestID string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != c.code || got.Type != "error" || got.RequestID == "" || !strings.Contains(got.Error.Message, c.want) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, code, text)
		}
	}
	if got := s.must(t, "GET", events, "").list(); len(got) != 0 {
		t.Errorf("bad input has left %s", kinds(got))
	}
	if code, text := s.Call(t, "POST", "/anthropic/v1/messages", `{"model":"scripted:agents","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`); code != http.StatusOK || !strings.Contains(text, "You said: hi") {
		t.Errorf("the model proxy beside it: %d %s", code, text)
	}
}

func TestWhatIsKeptComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t)
	agent := s.must(t, "POST", "/agents", `{"name":"Ä b","description":"d","model":{"id":"scripted:agents","effort":"high"},"metadata":{"Key Ü":"v","gone":"x"}}`)
	if agent.text("name") != "Ä b" || agent.text("metadata", "Key Ü") != "v" || agent.text("model", "effort", "type") != "high" || fmt.Sprint(agent["version"]) != "1" {
		t.Errorf("the agent is %v", agent)
	}
	path := "/agents/" + agent.text("id")
	changed := s.must(t, "POST", path, `{"version":1,"system":"New.","metadata":{"gone":null,"more":"y"}}`)
	if changed.text("system") != "New." || changed.text("name") != "Ä b" || fmt.Sprint(changed["metadata"]) != "map[Key Ü:v more:y]" || fmt.Sprint(changed["version"]) != "2" {
		t.Errorf("the changed agent is %v", changed)
	}
	if code, text := s.Call(t, "POST", base+path, `{"version":1,"system":"Late."}`); code != http.StatusConflict {
		t.Errorf("a change of an old version: %d %s", code, text)
	}
	if same := s.must(t, "POST", path, `{"name":"Ä b"}`); fmt.Sprint(same["version"]) != "2" {
		t.Errorf("no change makes version %v", same["version"])
	}
	if old := s.must(t, "GET", path+"?version=1", ""); old["system"] != nil || old.text("metadata", "gone") != "x" {
		t.Errorf("version 1 is %v", old)
	}
	if all := s.must(t, "GET", path+"/versions", "").list(); len(all) != 2 || fmt.Sprint(all[0]["version"]) != "2" {
		t.Errorf("the versions are %v", all)
	}
	env := s.must(t, "POST", "/environments", `{"name":"e","config":{"type":"cloud","networking":{"type":"limited","allowed_hosts":["api.example.com"]}},"metadata":{"A B":"c"}}`)
	session := s.must(t, "POST", "/sessions", fmt.Sprintf(`{"agent":{"type":"agent","id":%q,"version":2},"environment_id":%q,"metadata":{"Z z":"1"},"budget":{"type":"limit","max_list_cost":{"amount":"250","currency":"USD"}}}`, agent.text("id"), env.text("id")))
	path = "/sessions/" + session.text("id")
	if got := s.must(t, "POST", path, `{"title":"New title","metadata":{"more":"2"}}`); got.text("title") != "New title" || fmt.Sprint(got["metadata"]) != "map[Z z:1 more:2]" || got.text("budget", "max_list_cost", "amount") != "250" {
		t.Errorf("the session is %v", got)
	}
	for range 2 {
		s.must(t, "POST", "/sessions", fmt.Sprintf(`{"agent":%q,"environment_id":%q}`, agent.text("id"), env.text("id")))
	}
	if got := s.must(t, "POST", path+"/archive", ""); got.text("status") != "terminated" {
		t.Errorf("the archived session is %v", got)
	}
	for query, want := range map[string]int{"": 2, "?include_archived=true": 3, "?statuses[]=terminated&include_archived=true": 1, "?created_at[gt]=2100-01-01T00:00:00Z": 0, "?agent_id=" + agent.text("id"): 2} {
		n, next := 0, ""
		for {
			link := "?"
			if query != "" {
				link = query + "&"
			}
			got := s.must(t, "GET", "/sessions"+link+"limit=1&page="+next, "")
			n += len(got.list())
			if next = got.text("next_page"); next == "" {
				break
			}
		}
		if n != want {
			t.Errorf("sessions%s: %d, want %d", query, n, want)
		}
	}
	if threads := s.must(t, "GET", path+"/threads", "").list(); len(threads) != 1 || threads[0].text("session_id") != session.text("id") {
		t.Errorf("the threads are %v", threads)
	}
	s.must(t, "DELETE", "/environments/"+env.text("id"), "")
	if code, _ := s.Call(t, "GET", base+"/environments/"+env.text("id"), ""); code != http.StatusNotFound {
		t.Errorf("a deleted environment: %d", code)
	}
}

func TestMetadataOfAUserAreNoFault(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	bob := []string{"Authorization", "Bearer " + s.Keys["bob"]}
	code, text := s.Call(t, "POST", "/v1/sessions", `{"agent":"coder","metadata_json":"{\"managed_session\":{\"self_hosted\":true,\"tools\":[{\"type\":\"agent_toolset_20260401\",\"configs\":[{\"name\":\"bash\"}]}]}}"}`, bob...)
	var made struct{ Name string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || code != http.StatusOK {
		t.Fatalf("a session: %d %s", code, text)
	}
	if code, text := s.Call(t, "GET", base+"/sessions/sesn_"+strings.TrimPrefix(made.Name, "sessions/")+"/events", "", bob...); code != http.StatusOK {
		t.Errorf("its events: %d %s", code, text)
	}
	for _, query := range []string{"/sessions?page=%ff", "/agents?%ff=a"} {
		if code, text := s.Call(t, "GET", base+query, "", bob...); code != http.StatusBadRequest || !strings.Contains(text, "UTF-8") {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
}
