package host

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/internal/kit/telemetry"
)

// guests is a running server, whose users have a token each.
type guests struct {
	t      *testing.T
	http   string
	grpc   *grpc.ClientConn
	client *http.Client
	key    ed25519.PrivateKey
}

// receive runs a server whose users have one request, and the next one ten seconds later.
func receive(t *testing.T, settings string) *guests {
	t.Helper()
	dir := t.TempDir()
	public, private, _ := ed25519.GenerateKey(nil) // it never fails
	keys := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","alg":"EdDSA","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	for name, text := range map[string]string{"keys.json": keys, "play.yaml": "name: x\nfallback: {steps: [{text: [hello]}]}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf := Defaults(filepath.Join(dir, "data"))
	settings += "\nsession: {model: 'play:x', providers: {play: {kind: scripted, scenario: " + filepath.Join(dir, "play.yaml") + "}}, limits: {user: {rate: 0.1}}}"
	if err := config.Load(&conf, config.Options{Name: "test", Environ: []string{"A=b"}, Args: []string{"--config=" + file(t, settings)}}); err != nil {
		t.Fatal(err)
	}
	conf.HTTP, conf.GRPC = "127.0.0.1:0", "127.0.0.1:0"
	conf.Sandbox.Driver, conf.Sandbox.NoIsolation = "none", true
	conf.Auth.Issuers = []auth.Issuer{{
		Issuer: "https://login.example", Audience: "fairlead", JWKSFile: filepath.Join(dir, "keys.json"),
		RoleClaim: "roles", Roles: map[string]string{"admin": "admin"},
	}}
	h, err := New(t.Context(), conf, telemetry.Discard(slog.New(slog.DiscardHandler)), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	at, ended := make(chan [2]string, 2), make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(face, address string) { at <- [2]string{face, address} }) }()
	g := &guests{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, key: private}
	for range 2 {
		select {
		case l := <-at:
			if l[0] == "http" {
				g.http = "http://" + l[1]
				continue
			}
			if g.grpc, err = rpc.Dial(l[1]); err != nil {
				t.Fatal(err)
			}
		case err := <-ended:
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = g.grpc.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return g
}

// token returns the credential of a user.
func (g *guests) token(user string, aud ...string) string {
	encode := func(v any) string {
		text, _ := json.Marshal(v) // maps of texts always marshal
		return base64.RawURLEncoding.EncodeToString(text)
	}
	if len(aud) == 0 {
		aud = []string{"fairlead"}
	}
	signed := encode(map[string]any{"alg": "EdDSA", "kid": "k"}) + "." + encode(map[string]any{
		"iss": "https://login.example", "aud": aud, "sub": user, "roles": []string{"admin"}, "exp": time.Now().Add(time.Hour).Unix(),
	})
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(g.key, []byte(signed)))
}

// ask makes a request as a user, and returns its answer up to the first 16 KiB.
func (g *guests) ask(token, method, path, body string, header ...string) (*http.Response, string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.http+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := g.client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text := make([]byte, 16<<10)
	n, _ := io.ReadFull(resp.Body, text)
	return resp, string(text[:n])
}

// Whatever the gateway asks inside, a request of a client is one of those that a limit allows. The next one is refused with
// a time to wait.
func TestARequestCountsAsOneAtEveryDoor(t *testing.T) {
	g := receive(t, "")
	_, made := g.ask(g.token("host"), http.MethodPost, "/v1/sessions?session_id=shared", `{"agent":"coder"}`)
	if !strings.Contains(made, "sessions/shared") {
		t.Fatalf("the shared session: %s", made)
	}
	if _, made := g.ask(g.token("landlord"), http.MethodPost, "/v1/environments?environment_id=office", `{"description":"x"}`); !strings.Contains(made, "environments/office") {
		t.Fatalf("the environment: %s", made)
	}
	const agui = `{"threadId":"t1","runId":"r1","messages":[{"id":"m1","role":"user","content":"hi"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`
	const mcp = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Glob","arguments":{"pattern":"*"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	frame := string([]byte{0, 0, 0, 0, 0})
	for door, c := range map[string]struct {
		method, path, body string
		header             []string
		want               string // in the answer
	}{
		"REST":                     {"POST", "/v1/sessions", `{"agent":"coder"}`, nil, "sessions/"},
		"a turn by SSE":            {"POST", "/v1/sessions/shared/turns:stream", `{"text":"hi"}`, []string{"Accept", "text/event-stream"}, "turn.finished"},
		"AG-UI":                    {"POST", "/v1/agui/coder", agui, nil, "RUN_FINISHED"},
		"the AI SDK":               {"POST", "/v1/ai-sdk/chat", `{"id":"c1","agent":"coder","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`, nil, "hello"},
		"Managed Agents":           {"POST", "/anthropic/v1/sessions?beta=true", `{"agent":"coder","environment_id":"office","title":"x"}`, []string{"Anthropic-Beta", "managed-agents-2026-04-01", "Anthropic-Version", "2023-06-01"}, `"id"`},
		"events of Managed Agents": {"POST", "/anthropic/v1/sessions/shared/events?beta=true", `{"events":[{"type":"user.message","content":[{"type":"text","text":"hi"}]}]}`, []string{"Anthropic-Beta", "managed-agents-2026-04-01", "Anthropic-Version", "2023-06-01"}, `"data"`},
		"OpenAI Agents":            {"POST", "/openai/v1/agents/sessions", `{"agent_id":"coder","environment":{"type":"openai_hosted"},"input":"hi","stream":true}`, nil, "hello"},
		"A2A":                      {"POST", "/a2a/coder", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}}`, []string{"A2A-Version", "1.0"}, "hello"},
		"MCP":                      {"POST", "/mcp", mcp, []string{"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "Glob"}, `"content"`},
		"gRPC-Web":                 {"POST", "/fairlead.session.v1.SessionService/ListSessions", frame, []string{"Content-Type", "application/grpc-web+proto"}, "sessions/shared"},
		"the model proxy":          {"GET", "/openai/v1/models", "", nil, "play:x"},
	} {
		t.Run(door, func(t *testing.T) {
			token := g.token("u-" + strings.ReplaceAll(door, " ", "-"))
			resp, text := g.ask(token, c.method, c.path, c.body, c.header...)
			if resp.StatusCode != http.StatusOK || !strings.Contains(text, c.want) || strings.Contains(text, "has reached a limit") {
				t.Errorf("the first request: %s %.2000s", resp.Status, text)
			}
			resp, text = g.ask(token, http.MethodGet, "/v1/sessions", "")
			if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
				t.Errorf("the next one: %s %.500s", resp.Status, text)
			}
			resp, text = g.ask(token, c.method, c.path, c.body, c.header...) // a door tells of it in its own way, with the wait in the header
			if resp.Header.Get("Retry-After") == "" && door != "MCP" || !strings.Contains(text, "limit") {
				t.Errorf("the next one at the same door: %s %v %.500s", resp.Status, resp.Header, text)
			}
		})
	}
	t.Run("gRPC", func(t *testing.T) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+g.token("u-grpc"))
		for i, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
			if _, err := sessionv1.NewSessionServiceClient(g.grpc).ListSessions(ctx, &sessionv1.ListSessionsRequest{}); apierr.Code(err) != want {
				t.Errorf("request %d: %v", i, err)
			}
		}
	})
	t.Run("A2A over gRPC", func(t *testing.T) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+g.token("u-a2a"), "a2a-version", "1.0")
		message := &a2apb.Message{MessageId: "m1", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hi"}}}}
		for i, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
			_, err := a2apb.NewA2AServiceClient(g.grpc).SendMessage(ctx, &a2apb.SendMessageRequest{Tenant: "coder", Message: message})
			if apierr.Code(err) != want {
				t.Errorf("request %d: %v", i, err)
			}
		}
	})
}

// The audit log names the client behind a trusted proxy, over REST and gRPC.
func TestTheAuditLogNamesTheClientBehindAProxy(t *testing.T) {
	g := receive(t, "trusted-proxies: [127.0.0.0/8]\ngateway: {public-url: 'https://agents.example'}")
	resp, text := g.ask(g.token("one"), http.MethodPost, "/v1/users?user_id=ann", `{"role":"ROLE_USER"}`, "X-Forwarded-For", "6.6.6.6, 203.0.113.7")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Status, text)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+g.token("two"), "x-forwarded-for", "203.0.113.8", "fairlead-client", "6.6.6.6")
	if _, err := sessionv1.NewIdentityServiceClient(g.grpc).CreateUser(ctx, &sessionv1.CreateUserRequest{UserId: "bob", User: &sessionv1.User{Role: 2}}); err != nil {
		t.Fatal(err)
	}
	_, text = g.ask(g.token("three"), http.MethodGet, "/v1/audit", "")
	for user, client := range map[string]string{"users/ann": "203.0.113.7", "users/bob": "203.0.113.8"} {
		if !strings.Contains(text, client) || !strings.Contains(text, user) || strings.Contains(text, "6.6.6.6") {
			t.Errorf("%s came from %s: %s", user, client, text)
		}
	}
	// A token for an address of MCP is good there, and nowhere else.
	const list = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	for i, c := range []struct {
		aud, method, path string
		want              int
	}{
		{"https://agents.example/mcp", http.MethodPost, "/mcp", 200},
		{"https://agents.example/mcp/agents/coder", http.MethodPost, "/mcp/agents/coder", 200},
		{"https://agents.example/mcp", http.MethodPost, "/mcp/agents/coder", 401},
		{"https://agents.example/mcp", http.MethodGet, "/v1/sessions", 401},
		{"http://127.0.0.1/mcp", http.MethodPost, "/mcp", 401},
	} {
		resp, text := g.ask(g.token(fmt.Sprint("m", i), c.aud), c.method, c.path, list, "Accept", "application/json, text/event-stream")
		if resp.StatusCode != c.want {
			t.Errorf("a token for %s at %s: %s %.300s", c.aud, c.path, resp.Status, text)
		}
	}
}
