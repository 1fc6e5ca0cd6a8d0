package doors

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/auth/internaltoken"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

// world is two tenants. The tenant `acme` has one resource of every kind, which are ann's; `rival` and bob, another
// user of acme, want to see them.
type world struct {
	*server
	names   map[string]string // by kind, as "sessions/*/turns/*"
	values  map[string]string // of fields that name no resource, by the fields' names
	keys    map[string]string // secrets of keys, by whose they are
	secrets []string          // of every key and token
	bad     []credential      // of no user

	absent  map[string]bool // kinds of resources that the test does not make
	shared  []string        // words in what every user of acme may see
	private []string        // words in what is ann's
}

// build makes the tenants, their users and their keys, on a database as in serve.
func build(t *testing.T, database string) *world {
	t.Helper()
	w := &world{server: serve(t, database), absent: map[string]bool{}, names: map[string]string{}, values: map[string]string{"url": "https://git.invalid/a/code.git", "query": "about", "path": "a.md", "new_path": "b.md", "cron": "0 3 1 1 *"}, keys: map[string]string{}}
	w.keys["root"] = w.issuer.root()
	for _, tenant := range []string{"acme", "rival"} {
		made := w.do(t, "root", http.MethodPost, "/v1/tenants?tenant_id="+tenant, `{"title":"`+w.word(&w.shared)+`"}`)
		w.keys[tenant] = field(t, made, "secret")
	}
	w.shared = w.shared[:1] // the other one is rival's own
	w.names["tenants/*"] = "tenants/acme"
	for user, role := range map[string]string{"ann": "USER", "bob": "USER", "vic": "VIEWER", "oda": "OPERATOR"} {
		w.do(t, "acme", http.MethodPost, "/v1/users?user_id="+user, `{"title":"`+w.word(&w.private)+`","role":"ROLE_`+role+`"}`)
		w.keys[user] = w.key(t, "acme", `{"user":"users/`+user+`"}`)
	}
	w.do(t, "rival", http.MethodPost, "/v1/users?user_id=ben", `{"role":"ROLE_USER"}`)
	w.keys["ben"] = w.key(t, "rival", `{"user":"users/ben"}`)
	w.keys["a key for agents"] = w.key(t, "acme", `{"scopes":["agents.read"]}`)
	w.keys["a key for tools"] = w.key(t, "acme", `{"scopes":["tools.read"]}`)
	w.findBad(t)
	return w
}

// word returns a new word, and adds it to a list.
func (*world) word(list *[]string) string {
	b := make([]byte, 9)
	_, _ = rand.Read(b)
	for i := range b {
		b[i] = 'a' + b[i]%26
	}
	*list = append(*list, "zq"+string(b))
	return "zq" + string(b)
}

// key makes a key, and returns its secret.
func (w *world) key(t *testing.T, by, body string) string {
	t.Helper()
	secret := field(t, w.do(t, by, http.MethodPost, "/v1/keys", body), "secret")
	w.secrets = append(w.secrets, secret)
	return secret
}

// of returns a caller's own credential.
func (w *world) of(who string) credential {
	return credential{name: who, header: "Bearer " + w.keys[who]}
}

// findBad makes the credentials that nothing may take.
func (w *world) findBad(t *testing.T) {
	t.Helper()
	bearer := func(name, secret string) {
		w.secrets = append(w.secrets, secret)
		w.bad = append(w.bad, credential{name: name, header: "Bearer " + secret, may: nothing})
	}
	w.bad = []credential{
		{name: "no credential", may: nothing},
		{name: "an empty credential", header: "Bearer ", may: nothing},
		{name: "a password", header: "Basic YWRtaW46YWRtaW4=", may: nothing},
		{name: "half a key", header: "Bearer " + w.keys["acme"][:20], may: nothing},
		{name: "a key without its scheme", header: w.keys["acme"], may: nothing},
		{name: "a principal as text", header: `Bearer {"tenant":"acme","user":"admin","role":4}`, may: nothing},
	}
	unknown := make([]byte, 32)
	_, _ = rand.Read(unknown)
	bearer("an unknown key", "fl_"+base64.RawURLEncoding.EncodeToString(unknown))
	revoked := w.do(t, "acme", http.MethodPost, "/v1/keys", `{}`)
	w.do(t, "acme", http.MethodPost, "/v1/"+field(t, revoked, "key.name")+":revoke", `{}`)
	bearer("a revoked key", field(t, revoked, "secret"))
	w.do(t, "acme", http.MethodPost, "/v1/users?user_id=gone", `{"role":"ROLE_OPERATOR"}`)
	bearer("a key of a deleted user", w.key(t, "acme", `{"user":"users/gone"}`))
	w.do(t, "acme", http.MethodDelete, "/v1/users/gone", "")
	end := time.Now().Add(time.Second)
	bearer("an expired key", w.key(t, "acme", `{"expireTime":"`+end.UTC().Format(time.RFC3339Nano)+`"}`))
	for name, token := range w.issuer.bad("acme") {
		bearer(name, token)
	}
	keys, err := internaltoken.New(internalSeed)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"session", "tools", "sandbox"} {
		token, err := keys.Mint(principal.Principal{Tenant: "acme", User: "admin", Role: principal.RoleAdmin}, service)
		if err != nil {
			t.Fatal(err)
		}
		bearer("an internal token for "+service, token)
		w.bad = append(w.bad, credential{name: "an internal token for " + service + " among the metadata", token: token, may: nothing})
	}
	for _, secret := range w.keys {
		w.secrets = append(w.secrets, secret)
	}
	timer := time.NewTimer(time.Until(end)) // the key has to expire
	defer timer.Stop()
	<-timer.C
}

// furnish makes one resource of every kind.
func (w *world) furnish(t *testing.T) {
	t.Helper()
	word := func() string { return w.word(&w.private) }
	as := func(method, path, body string) map[string]any { t.Helper(); return w.do(t, "ann", method, path, body) }
	w.names["sessions/*"] = field(t, as("POST", "/v1/sessions?session_id=hers", `{"agent":"agents/asker","title":"`+word()+`","labels":{"topic":"`+word()+`"}}`), "name")
	session := "/v1/" + w.names["sessions/*"]
	w.write(t, http.MethodPut, session+"/files/a.md", "# "+word())
	w.names["sessions/*/files/*"] = w.names["sessions/*"] + "/files/a.md"
	w.names["sessions/*/schedules/*"] = field(t, as("POST", session+"/schedules?schedule_id=nightly", `{"cron":"0 3 1 1 *","text":"`+word()+`"}`), "name")
	w.names["sessions/*/mcp"] = w.names["sessions/*"] + "/mcp"
	w.names["users/*"] = "users/ann"
	w.names["users/*/storage"] = "users/ann/storage"
	w.names["users/*/variables/*"] = field(t, as("PUT", "/v1/users/ann/variables/"+strings.ToUpper(word()), `{"value":"`+w.word(&w.secrets)+`"}`), "name")
	w.names["users/*/mcpServers/*"] = field(t, as("PUT", "/v1/users/ann/mcpServers/hers", `{"server":{"name":"hers","http":{"url":"https://`+word()+`.example.com/mcp","headers":{"X-Key":"`+w.word(&w.secrets)+`"}}}}`), "name")
	w.names["sessions/*/mcp"], w.names["sessions/*/mcp/*"] = w.names["sessions/*"]+"/mcp", w.names["sessions/*"]+"/mcp/hers"
	w.names["keys/*"] = field(t, as("POST", "/v1/keys", `{"title":"`+word()+`"}`), "key.name")
	w.names["sessions/*/checkpoints/*"] = field(t, as("POST", session+"/checkpoints", `{"description":"`+word()+`"}`), "name")
	w.names["sessions/*/repositories/*"] = field(t, as("POST", session+"/repositories", `{"repositoryId":"code"}`), "repository.name")
	upload := func() string {
		return field(t, as("POST", "/v1/files", `{"file":{"filename":"`+word()+`.md","size":"13"}}`), "name")
	}
	w.names["files/*"], w.names["uploads/*"] = upload(), strings.Replace(upload(), "files", "uploads", 1)
	w.write(t, http.MethodPatch, "/v1/"+strings.Replace(w.names["files/*"], "files", "uploads", 1), "# "+word())
	w.names["skills/*"] = field(t, as("POST", "/v1/skills", `{"user":"users/ann","file":"`+w.skillFile(t, word())+`"}`), "name")
	w.work(t)
	w.export(t, session)
	w.ask(t, session, word())
	made := as("POST", "/v1/triggers", `{"agent":"agents/writer","text":"`+word()+`","proof":"TRIGGER_PROOF_ADDRESS"}`)
	w.secrets, w.names["triggers/*"] = append(w.secrets, field(t, made, "secret")), field(t, made, "trigger.name")
	w.grant(t, word())
	w.names["webhooks/*"] = field(t, w.do(t, "acme", "POST", "/v1/webhooks?webhook_id=hook", `{"url":"https://hooks.example.com/`+word()+`","session":"`+w.names["sessions/*"]+`"}`), "webhook.name") // no turn of hers ends, so nothing is delivered
}

// skillFile uploads the archive of a skill of ann's.
func (w *world) skillFile(t *testing.T, description string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("SKILL.md")
	if err == nil {
		_, err = io.WriteString(f, "---\nname: dancing\ndescription: "+description+"\n---\n")
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, err := m.CreateFormFile("file", "skill.zip")
	if err == nil {
		_, err = part.Write(b.Bytes())
	}
	if err := errors.Join(err, m.Close()); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/files:upload", &form)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.keys["ann"])
	req.Header.Set("Content-Type", m.FormDataContentType())
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("upload a skill: %s %v %v", resp.Status, answer, err)
	}
	return field(t, answer, "name")
}

// share makes what every user of acme may see.
func (w *world) share(t *testing.T) {
	t.Helper()
	spec := `{"description":"` + w.word(&w.shared) + `","prompt":"` + w.word(&w.shared) + `","profile":"full","tools":["Write"]}`
	w.names["agents/*"] = field(t, w.do(t, "acme", "POST", "/v1/agents?agent_id=secretary", spec), "name")
	w.names["agents/*/versions/*"] = w.names["agents/*"] + "/versions/1"
	environment := w.do(t, "acme", "POST", "/v1/environments?environment_id=office", `{"description":"`+w.word(&w.shared)+`"}`)
	w.names["environments/*"] = field(t, environment, "name")
	model := w.do(t, "acme", "POST", "/v1/models?model_id=quick", `{"target":"scripted:default","description":"`+w.word(&w.shared)+`"}`)
	w.names["models/*"] = field(t, model, "name")
	profile := w.do(t, "acme", "POST", "/v1/profiles?profile_id=careful", `{"description":"`+w.word(&w.shared)+`","rules":{"allow":["Read"]}}`)
	w.names["profiles/*"] = field(t, profile, "name")
	w.names["tools/*"] = "tools/Write"
}

var (
	asked     = regexp.MustCompile(`"approvalRequested":\{[^}]*"callId":"([^"]+)"`)
	digest    = regexp.MustCompile(`"digest":"([^"]+)"`)
	turn      = regexp.MustCompile(`"turn":"(sessions/[^"]+)"`)
	operation = regexp.MustCompile(`operations/[A-Za-z0-9._-]*[A-Za-z0-9]`)
)

// ask makes a turn that waits for an approval.
func (w *world) ask(t *testing.T, session, word string) {
	t.Helper()
	events := w.play(t, session, "ask about "+word, `"turnWaiting"`)
	found := func(p *regexp.Regexp) string {
		m := p.FindStringSubmatch(events)
		if m == nil {
			t.Fatalf("there is no %s in %s", p, events)
		}
		return m[1]
	}
	w.values["call_id"], w.values["digest"] = found(asked), found(digest)
	w.names["sessions/*/turns/*"] = found(turn)
}

// grant makes a grant of ann, which holds in a session of its own.
func (w *world) grant(t *testing.T, word string) {
	t.Helper()
	session := field(t, w.do(t, "ann", http.MethodPost, "/v1/sessions", `{"agent":"agents/asker"}`), "name")
	events := w.play(t, "/v1/"+session, "ask about "+word, `"turnWaiting"`)
	w.do(t, "ann", http.MethodPost, "/v1/"+session+"/approvals:resolve", fmt.Sprintf(
		`{"callId":%q,"digest":%q,"approved":true,"scope":"APPROVAL_SCOPE_SESSION"}`, asked.FindStringSubmatch(events)[1], digest.FindStringSubmatch(events)[1]))
	for range 1000 {
		granted := w.do(t, "ann", http.MethodGet, "/v1/grants?session="+session, "")
		if all, ok := granted["grants"].([]any); ok && len(all) == 1 {
			w.names["grants/*"] = field(t, all[0].(map[string]any), "name")
			return
		}
	}
	t.Fatal("the approval has made no grant")
}

// work makes an operation that goes on.
func (w *world) work(t *testing.T) {
	t.Helper()
	busy := field(t, w.do(t, "ann", http.MethodPost, "/v1/sessions", `{"agent":"agents/worker"}`), "name")
	events := w.play(t, "/v1/"+busy, "work", `"turnFinished"`)
	if w.names["operations/*"] = operation.FindString(events); w.names["operations/*"] == "" {
		t.Fatalf("there is no operation in %s", events)
	}
}

// play runs a turn of ann until something appears in its events, which it returns.
func (w *world) play(t *testing.T, session, message, until string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp := w.send(ctx, t, w.keys["ann"], http.MethodPost, session+"/turns:stream", `{"text":"`+message+`"}`)
	defer func() { _ = resp.Body.Close() }()
	var text strings.Builder
	for buf := make([]byte, 64<<10); !strings.Contains(text.String(), until); {
		n, err := resp.Body.Read(buf)
		text.Write(buf[:n])
		if err != nil && !strings.Contains(text.String(), until) {
			t.Fatalf("there is no %s in the turn: %v after %s", until, err, text.String())
		}
	}
	return text.String()
}

// export checks that no credential is in ann's own export.
func (w *world) export(t *testing.T, session string) {
	t.Helper()
	resp := w.send(t.Context(), t, w.keys["ann"], http.MethodGet, session+":export", "")
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || len(text) < 100 {
		t.Fatalf("an export: %s %s %v", resp.Status, text, err)
	}
	for _, secret := range w.secrets {
		if strings.Contains(string(text), secret) {
			t.Error("an export has a credential")
		}
	}
}

// do makes a request that must succeed, and returns its answer.
func (w *world) do(t *testing.T, who, method, path, body string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp := w.send(ctx, t, w.keys[who], method, path, body)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s of %s: %s %s %v", method+" "+path, who, resp.Status, text, err)
	}
	answer := map[string]any{}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s of %s: %v in %s", method+" "+path, who, err, text)
	}
	return answer
}

// write writes a file of ann.
func (w *world) write(t *testing.T, method, path, content string) {
	t.Helper()
	resp := w.send(t.Context(), t, w.keys["ann"], method, path, content)
	defer func() { _ = resp.Body.Close() }()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
}

func (w *world) send(ctx context.Context, t *testing.T, secret, method, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "# ") {
		req.Header.Set("Content-Type", "application/offset+octet-stream")
		for name, value := range headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// field reads a text inside an answer, by names with dots.
func field(t *testing.T, answer map[string]any, path string) string {
	t.Helper()
	var v any = answer
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	s, ok := v.(string)
	if !ok || s == "" {
		t.Fatalf("there is no %s in %v", path, answer)
	}
	return s
}
