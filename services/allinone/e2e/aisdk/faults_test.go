package aisdk

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
)

// until reads a stream until a line has a text, and returns what came.
func until(t *testing.T, body io.Reader, text string) string {
	t.Helper()
	var all strings.Builder
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			t.Fatalf("%v after %s", err, all.String())
		}
		if strings.Contains(line, text) {
			return all.String()
		}
	}
}

const counted = "start start-step text-start text-delta=one two three four five six seven eight nine ten text-end finish-step finish=stop"

func TestAClientThatLeavesComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ctx, leave := context.WithCancel(t.Context())
	resp := s.Do(ctx, t, http.MethodPost, "/v1/ai-sdk/chat", say("a chat/with slash", "m1", "slow"))
	if resp.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "v1" || resp.Header.Get("Content-Type") != "text/event-stream" || !strings.Contains(resp.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("headers %v", resp.Header)
	}
	began := until(t, resp.Body, `"three `)
	leave()
	_ = resp.Body.Close()
	path := "/v1/ai-sdk/chat/" + url.PathEscape("a chat/with slash")
	if _, history := s.Call(t, http.MethodGet, path, ""); strings.Contains(history, "assistant") || !strings.Contains(history, "slow") {
		t.Errorf("the history has the message that the stream brings: %s", history)
	}
	code, body := s.Call(t, http.MethodGet, path+"/stream", "")
	if code != http.StatusOK || brief(chunks(t, body)) != counted {
		t.Errorf("%d %s", code, body)
	}
	if id := chunks(t, body)[0]["messageId"]; id == "" || !strings.Contains(began, id.(string)) {
		t.Errorf("the message has another id: %v", id)
	}
	if code, _ := s.Call(t, http.MethodGet, path+"/stream", ""); code != http.StatusNoContent {
		t.Errorf("nothing runs: %d", code)
	}
	if _, history := s.Call(t, http.MethodGet, path, ""); !strings.Contains(history, "one two three four five six seven eight nine ten") {
		t.Errorf("history %s", history)
	}
}

func TestAKilledServerGoesOn(t *testing.T) {
	t.Parallel()
	s := spawn(t)
	resp := s.Do(t.Context(), t, http.MethodPost, "/v1/ai-sdk/chat", say("c", "m1", "slow"))
	_ = until(t, resp.Body, `"three `)
	s.Kill()
	if b, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the body of a killed server ends well: %s", b)
	}
	_ = resp.Body.Close()
	s.Start(t)
	code, body := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c/stream", "")
	if code != http.StatusOK || brief(chunks(t, body)) != counted {
		t.Errorf("%d %s", code, body)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	s := serve(t)
	resp := s.Do(t.Context(), t, http.MethodPost, "/v1/ai-sdk/chat", say("c", "m1", "long"))
	defer func() { _ = resp.Body.Close() }()
	_ = until(t, resp.Body, `word`)
	if code, body := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat/c/stop", ""); code != http.StatusOK || body != `{"stopped":true}` {
		t.Errorf("%d %s", code, body)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(rest), `{"type":"abort"}`) || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("%v %s", err, rest)
	}
	if code, body := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat/c/stop", ""); code != http.StatusOK || body != `{"stopped":false}` {
		t.Errorf("with nothing to stop: %d %s", code, body)
	}
	if got := brief(s.post(t, "", say("c", "m2", "hello"))); !strings.Contains(got, "You said: hello") {
		t.Errorf("the next turn: %s", got)
	}
}

func TestAnAnswerIsRedone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	again := func(chat, text string) string {
		return strings.Replace(say(chat, "m1", text), "submit-message", "regenerate-message", 1)
	}
	if got := brief(s.post(t, "?agent=short", say("c", "m1", "loop"))); !strings.HasSuffix(got, "finish=length") {
		t.Fatal(got)
	}
	if got := brief(s.post(t, "", again("c", "loop"))); !strings.HasPrefix(got, "start start-step tool-input-start") {
		t.Errorf("%s", got)
	}
	if code, text := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", again("none", "hello")); code != http.StatusNotFound {
		t.Errorf("an answer of no conversation: %d %s", code, text)
	}
	old := s.post(t, "", say("done", "m1", "hello"))[0]["messageId"].(string)
	got := s.post(t, "", named(again("done", "hello"), old))
	if fresh := got[0]["messageId"].(string); fresh == old || !strings.Contains(brief(got), "You said: hello") {
		t.Errorf("a complete answer: %s", brief(got))
	} else if repeated := s.post(t, "", named(again("done", "hello"), old)); repeated[0]["messageId"] != fresh {
		t.Errorf("the same request again makes another turn: %v", repeated[0])
	}
	if got := s.post(t, "", again("done", "hello")); !strings.Contains(brief(got), "You said: hello") { // the last answer, without a name
		t.Errorf("a complete answer without its name: %s", brief(got))
	}
	if _, history := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/done", ""); strings.Count(history, `"role"`) != 2 || strings.Contains(history, old) {
		t.Errorf("%s", history)
	}
}

// named is a body for a message that was sent before.
func named(body, message string) string {
	return strings.Replace(body, `"messages"`, fmt.Sprintf(`"messageId":%q,"messages"`, message), 1)
}

func TestAMessageIsEdited(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.post(t, "", say("c", "m1", "hello"))
	s.post(t, "", say("c", "m2", "think"))
	_, before := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c", "")
	for _, text := range []string{"another", "a third"} { // the message keeps its id
		if got := brief(s.post(t, "", named(say("c", "m1", text), "m1"))); !strings.Contains(got, "You said: "+text) {
			t.Errorf("%s", got)
		}
	}
	_, history := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c", "")
	if strings.Count(history, `"role"`) != 2 || !strings.Contains(history, "You said: a third") || strings.Contains(history, "hello") {
		t.Errorf("%s", history)
	}
	var messages []struct{ ID, Role string }
	if err := json.Unmarshal([]byte(history), &messages); err != nil {
		t.Fatal(err)
	}
	loaded := messages[0].ID // a page that was loaded again has our ids
	if got := brief(s.post(t, "", named(say("c", loaded, "a fourth"), loaded))); !strings.Contains(got, "You said: a fourth") {
		t.Errorf("%s", got)
	}
	if code, text := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", named(say("c", "m9", "x"), "m9")); code != http.StatusConflict || !strings.Contains(text, "read the conversation again") {
		t.Errorf("a message that was never sent: %d %s", code, text)
	}
	waiting(t, s.post(t, "?agent=asker", say("w", "m1", "ask")))
	if got := brief(s.post(t, "", named(say("w", "m1", "hello"), "m1"))); !strings.Contains(got, "You said: hello") {
		t.Errorf("a message whose turn waits: %s", got)
	}
	if before == history {
		t.Error("the conversation did not change")
	}
}

func TestAMessageInsteadOfAnAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	waiting(t, s.post(t, "?agent=asker", say("c", "m1", "ask")))
	if got := brief(s.post(t, "?agent=asker", say("c", "m2", "never mind"))); !strings.Contains(got, "You said: never mind") {
		t.Errorf("%s", got)
	}
	_, history := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c", "")
	if strings.Contains(history, `"approval-requested"`) || !strings.Contains(history, `"output-error"`) {
		t.Errorf("%s", history)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := serve(t)
	body := `{"id":"c","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"},{"type":"file","mediaType":"text/plain","filename":"a.txt","url":"data:text/plain;base64,aGVsbG8="}]}]}`
	s.post(t, "", body)
	_, history := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c", "")
	var all []struct {
		Parts []struct{ Type, URL, Filename, MediaType string }
	}
	if err := json.Unmarshal([]byte(history), &all); err != nil || len(all) != 2 || all[0].Parts[1].URL != "data:text/plain;base64,aGVsbG8=" || all[0].Parts[1].Filename != "a.txt" {
		t.Errorf("%s", history)
	}
}

func TestUsersOfOneServer(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	ann, bob := []string{"Authorization", "Bearer " + s.Keys["ann"]}, []string{"Authorization", "Bearer " + s.Keys["bob"]}
	if code, text := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", say("c", "m1", "hello")); code != http.StatusUnauthorized || strings.HasPrefix(text, "{") {
		t.Errorf("without a credential: %d %s", code, text)
	}
	if code, _ := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", say("c", "m1", "hello ann"), ann...); code != http.StatusOK {
		t.Fatal(code)
	}
	if _, history := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c", "", bob...); history != "[]" {
		t.Errorf("bob reads %s", history)
	}
	if code, _ := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", say("c", "m1", "hello bob"), bob...); code != http.StatusOK {
		t.Errorf("the same id of another user: %d", code)
	}
	_, sessions := s.Call(t, http.MethodGet, "/v1/sessions", "", ann...)
	var list struct{ Sessions []struct{ Name string } }
	if err := json.Unmarshal([]byte(sessions), &list); err != nil || len(list.Sessions) != 1 {
		t.Fatalf("%s", sessions)
	}
	own := list.Sessions[0].Name
	path := "/v1/ai-sdk/chat/" + url.PathEscape(own)
	if _, history := s.Call(t, http.MethodGet, path, "", ann...); !strings.Contains(history, "hello ann") {
		t.Errorf("by the session's name: %s", history)
	}
	if _, history := s.Call(t, http.MethodGet, path, "", bob...); history != "[]" {
		t.Errorf("bob reads by the session's name %s", history)
	}
	if code, _ := s.Call(t, http.MethodGet, path+"/stream", "", bob...); code != http.StatusNoContent {
		t.Errorf("bob streams: %d", code)
	}
	for _, stop := range []string{path, "/v1/ai-sdk/chat/unknown"} {
		if code, _ := s.Call(t, http.MethodPost, stop+"/stop", "", bob...); code != http.StatusNotFound {
			t.Errorf("bob stops %s: %d", stop, code)
		}
	}
	if code, _ := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", say(own, "m2", "hello"), bob...); code != http.StatusNotFound {
		t.Errorf("bob writes: %d", code)
	}
}

// TestAnOperatorHasConversationsOfItsOwn also where an id is another user's, whose sessions an operator may see.
func TestAnOperatorHasConversationsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := serveUsers(t)
	as := func(user string) []string { return []string{"Authorization", "Bearer " + s.Keys[user]} }
	chat := func(user string) string {
		code, stream := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", say("c", "m-"+user, "hello "+user), as(user)...)
		if code != http.StatusOK {
			t.Errorf("%s writes: %d %s", user, code, stream)
		}
		_, history := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c", "", as(user)...)
		return history
	}
	chat("ann")
	if history := chat("operator"); strings.Contains(history, "hello ann") || !strings.Contains(history, "hello operator") {
		t.Errorf("the operator reads %s", history)
	}
	if history := chat("ann"); strings.Contains(history, "operator") {
		t.Errorf("ann reads %s", history)
	}
	// A viewer may read, and neither begin a conversation nor write into one.
	if code, text := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat", say("v", "m1", "hello"), as("viewer")...); code != http.StatusForbidden {
		t.Errorf("a viewer writes: %d %s", code, text)
	}
}

func TestBadInputByHand(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.post(t, "", say("c", "m1", "hello"))
	user := func(parts string) string {
		return `{"id":"c","messages":[{"id":"m9","role":"user","parts":[` + parts + `]}]}`
	}
	for _, c := range []struct {
		name, query, body string
		code              int
		want              string
	}{
		{"nothing", "", ``, 400, "empty"},
		{"no JSON", "", `{`, 400, "not the JSON"},
		{"no id", "", `{"messages":[]}`, 400, "id is missing"},
		{"an id of another kind", "", `{"id":5}`, 400, "id is a JSON number"},
		{"no messages", "", `{"id":"c","messages":[]}`, 400, "messages is empty"},
		{"no text", "", user(`{"type":"unheard-of"}`), 400, "messages[0].parts has neither text nor files"},
		{"another role", "", `{"id":"c","messages":[{"id":"x","role":"system","parts":[]}]}`, 400, "messages[0].role"},
		{"an unknown trigger", "", `{"id":"c","trigger":"x","messages":[]}`, 400, "trigger"},
		{"a file of the network", "", user(`{"type":"file","mediaType":"image/png","url":"https://example.com/a.png"}`), 400, "messages[0].parts[0].url"},
		{"a broken upload", "", user(`{"type":"file","mediaType":"image/png","url":"data:image/png;base64,%%%"}`), 400, "messages[0].parts[0].url"},
		{"an unknown agent", "?agent=none", strings.Replace(say("new", "m1", "x"), "c", "c", 1), 404, "none"},
		{"no name of an agent", "?agent=No%20Body", say("new", "m1", "x"), 400, "agent"},
		{"another agent", "?agent=asker", say("c", "m2", "x"), 409, "asker"},
		{"an unknown form", "?tools=x", say("c", "m2", "x"), 400, "tools"},
		{"an unknown version", "?version=4", say("c", "m2", "x"), 400, "version"},
		{"an answer to nothing", "", answer("c", "unknown", responded("call", true)), 409, "messages[1].id"},
		{"an answer of no conversation", "", answer("none", "unknown", responded("call", true)), 404, "none"},
	} {
		code, text := s.Call(t, http.MethodPost, "/v1/ai-sdk/chat"+c.query, c.body, "Content-Type", "application/json")
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.name, code, text)
		}
	}
	if code, text := s.Call(t, http.MethodDelete, "/v1/ai-sdk/chat", ""); code != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", code, text)
	}
	if code, text := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c/else", ""); code != http.StatusNotFound {
		t.Errorf("%d %s", code, text)
	}
	if _, history := s.Call(t, http.MethodGet, "/v1/ai-sdk/chat/c", ""); strings.Count(history, `"role"`) != 2 {
		t.Errorf("bad input changed the conversation: %s", history)
	}
}
