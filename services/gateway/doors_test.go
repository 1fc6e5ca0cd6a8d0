package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/gen/openapi"
	"github.com/fairlead/fairlead/services/gateway"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/internal/kit/auth"
)

var update = flag.Bool("update", false, "write testdata/doors anew")

// site is the origin whose pages may call.
const site = "https://app.example.com"

// reached refuses every RPC with its name, so that an answer shows which one a request has reached.
type reached struct{}

// Invoke implements grpc.ClientConnInterface.
func (reached) Invoke(_ context.Context, method string, _, _ any, _ ...grpc.CallOption) error {
	if strings.HasSuffix(method, "/ClaimRequestKey") {
		return nil
	}
	return apierr.New(codes.NotFound, "fake", "REACHED", "reached "+method)
}

// NewStream implements grpc.ClientConnInterface.
func (c reached) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, c.Invoke(ctx, method, nil, nil)
}

// probe is a request to a path, whose name is in the golden file.
type probe struct {
	name, method, suffix string
	header               http.Header
}

var (
	known    = http.Header{"Authorization": {"Bearer fl_ann"}}
	unknown  = http.Header{}
	fromPage = http.Header{"Origin": {site}, "Access-Control-Request-Method": {"POST"}}
)

// probes are sent to every path, and rare to the first path of each door.
var (
	probes = []probe{
		{"GET", "GET", "", known}, {"HEAD", "HEAD", "", known}, {"POST", "POST", "", known}, {"PUT", "PUT", "", known}, {"PATCH", "PATCH", "", known},
		{"DELETE", "DELETE", "", known}, {"BREW", "BREW", "", known}, {"OPTIONS", "OPTIONS", "", unknown}, {"OPTIONS of a page", "OPTIONS", "", fromPage},
		{"GET without a key", "GET", "", unknown}, {"POST without a key", "POST", "", unknown},
		{"GET /", "GET", "/", known}, {"POST /", "POST", "/", known}, {"OPTIONS /", "OPTIONS", "/", unknown}, {"OPTIONS / of a page", "OPTIONS", "/", fromPage},
		{"GET /nothing", "GET", "/nothing", known}, {"POST /nothing", "POST", "/nothing", known},
		{"GET /%2F", "GET", "/%2F", known}, {"GET :verb", "GET", ":verb", known}, {"POST :verb", "POST", ":verb", known},
	}
	rare = []probe{
		{"GET with a wrong key", "GET", "", http.Header{"Authorization": {"Bearer fl_bob"}}},
		{"GET with the key none", "GET", "", http.Header{"X-Api-Key": {"none"}}},
		{"GET in a subprotocol", "GET", "", http.Header{"Sec-Websocket-Protocol": {"fairlead.bearer.fl_ann, fairlead.v1"}}},
		{"GET /nothing without a key", "GET", "/nothing", unknown},
		{"GET not UTF-8", "GET", "%ff", known}, {"GET a query that is not UTF-8", "GET", "?a=%ff", known},
		{"gRPC-Web", "POST", "", http.Header{"Authorization": {"Bearer fl_ann"}, "Content-Type": {"application/grpc-web+proto"}}},
		{"gRPC-Web without a key", "POST", "", http.Header{"Content-Type": {"application/grpc-web-text"}}},
		{"POST compressed", "POST", "", http.Header{"Authorization": {"Bearer fl_ann"}, "Content-Encoding": {"gzip"}}},
	}
)

// byDoor are paths of each door.
var byDoor = map[string][]string{
	"specification": {"/openapi.json"},
	"metadata": {
		"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp/sessions/s1", "/v1/mcp/client", "/v1/mcp/callback",
	},
	"grpcweb": {"/fairlead.session.v1.SessionService/GetSession", "/fairlead.session.v1.TriggerService/FireTrigger", "/fairlead.session.v1.SessionService/Nothing"},
	"files": {
		"/v1/sessions/s1:export", "/v1/sessions:import", "/v1/sessions/s1/files/a%2Fb/c", "/v1/sessions/s1/files:archive", "/v1/sessions/s1/files:unpack",
		"/v1/files:upload", "/v1/files/f1:content", "/v1/triggers/t1:fire", "/v1/uploads", "/v1/uploads/f1", "/v1/sessions/S/files/a", "/v1/sessions/s1/files/",
	},
	"mcp": {"/mcp", "/mcp/agents/coder", "/mcp/sessions/s1", "/mcp/agents/Coder"},
	"models": {
		"/anthropic/v1/messages", "/anthropic/v1/messages/count_tokens", "/anthropic/v1/models", "/anthropic/v1/models/a:b/c", "/anthropic/v1/nothing",
		"/anthropic/sessions/s1/v1/messages", "/openai/v1/chat/completions", "/openai/v1/responses", "/openai/v1/models", "/openai/sessions/s1/v1/models/m",
		"/openai/v1/nothing", "/anthropic/nothing", "/openai",
	},
	"aisdk": {
		"/v1/ai-sdk/chat", "/v1/ai-sdk/chat/c1", "/v1/ai-sdk/chat/a%2Fb", "/v1/ai-sdk/chat/c1/stream", "/v1/ai-sdk/chat/c1/stop", "/v1/ai-sdk/chat/a%2Fstop",
		"/v1/ai-sdk/chatter", "/v1/ai-sdk",
	},
	"agui": {
		"/v1/agui/coder", "/v1/agui/coder/events", "/v1/agui/coder/health", "/v1/agui/coder/capabilities", "/v1/agui/coder/tasks", "/v1/agui/coder/mcp/status",
		"/v1/agui/coder/export", "/v1/agui/coder/interrupt", "/v1/agui/coder/tasks/stop", "/v1/agui/coder/model", "/v1/agui/coder/clone", "/v1/agui/coder/feedback",
		"/v1/agui/coder%2Fhealth", "/v1/agui/", "/v1/agui",
	},
	"a2a": {
		"/a2a/coder", "/a2a/coder/.well-known/agent-card.json", "/a2a/coder/message:send", "/a2a/coder/message:stream", "/a2a/coder/tasks", "/a2a/coder/tasks/t1",
		"/a2a/coder/tasks/t1:cancel", "/a2a/coder/tasks/t1:subscribe", "/a2a/coder/tasks/t1/pushNotificationConfigs", "/a2a/coder/tasks/t1/pushNotificationConfigs/c1",
		"/a2a/coder/extendedAgentCard", "/a2a", "/a2a/",
	},
	"managed": {
		"/anthropic/v1/agents", "/anthropic/v1/agents/a1", "/anthropic/v1/agents/a1/archive", "/anthropic/v1/agents/a1/versions",
		"/anthropic/v1/environments", "/anthropic/v1/environments/e1", "/anthropic/v1/environments/e1/archive",
		"/anthropic/v1/sessions", "/anthropic/v1/sessions/s1", "/anthropic/v1/sessions/s1/archive", "/anthropic/v1/sessions/s1/resources",
		"/anthropic/v1/sessions/s1/events", "/anthropic/v1/sessions/s1/events/stream", "/anthropic/v1/sessions/s1/threads", "/anthropic/v1/sessions/s1/threads/t1",
		"/anthropic/v1/sessions/s1/threads/t1/events", "/anthropic/v1/sessions/s1/threads/t1/stream",
		"/anthropic/v1/environments/e1/work/poll", "/anthropic/v1/environments/e1/work/stats", "/anthropic/v1/environments/e1/work", "/anthropic/v1/environments/e1/work/work_s1_1",
		"/anthropic/v1/environments/e1/work/work_s1_1/ack", "/anthropic/v1/environments/e1/work/work_s1_1/heartbeat", "/anthropic/v1/environments/e1/work/work_s1_1/stop",
		"/anthropic/v1/files", "/anthropic/v1/files/f1", "/anthropic/v1/files/f1/content",
		"/anthropic/v1/vaults", "/anthropic/v1/skills/s1", "/anthropic/v1/agents/a%2Fb",
	},
	"openaiagents": {
		"/openai/v1/agents/sessions", "/openai/v1/agents/sessions/s1", "/openai/v1/agents/sessions/s1/events", "/openai/v1/agents/sessions/s1/items",
		"/openai/v1/agents/sessions/s1/turns", "/openai/v1/agents/sessions/s1/turns/t1", "/openai/v1/agents/sessions/s1/turns/t1/items",
		"/openai/v1/agents/sessions/s1/artifacts", "/openai/v1/agents/sessions/s1/artifacts/a1", "/openai/v1/agents/sessions/s1/artifacts/a1/content",
		"/openai/v1/agents/sessions/s1/subagents", "/openai/v1/agents/sessions/s1/subagents/a1", "/openai/v1/agents/sessions/s1/subagents/a1/items",
		"/openai/v1/agents/sessions/s1/subagents/a1/turns", "/openai/v1/agents/sessions/s1/subagents/a1/turns/t1",
		"/openai/v1/agents/sessions/s1/subagents/a1/turns/t1/items", "/openai/v1/agents", "/openai/v1/agents/a1",
		"/openai/v1/vaults", "/openai/v1/agents/environments", "/openai/v1/agents/automations/a1",
	},
	"socket": {"/v1/ws", "/v1/sessions/s1/ws", "/v1/sessions/S/ws"},
	"rest": {
		"/v1/sessions", "/v1/sessions/s1", "/v1/sessions/s1:interrupt", "/v1/sessions:converse", "/v1/sessions/s1/turns", "/v1/sessions/s1/turns:stream",
		"/v1/sessions/s1/events", "/v1/sessions/s1/events:stream", "/v1/sessions/s1/approvals:resolve", "/v1/users/me", "/v1/users/ann", "/v1/tools/Bash",
		"/v1/sessions%2Fs1", "/v1/sessions/s1%2Fturns", "/v1/operations/t1.1.0:cancel", "/v1/skills/s1", "/v1/nothing", "/v2/sessions", "/", "//v1/sessions", "/v1/../v1/sessions",
	},
}

// doors runs a gateway that refuses every RPC.
func doors(t *testing.T, change func(*gateway.Config)) *httptest.Server {
	t.Helper()
	c := gateway.DefaultConfig()
	c.AllowedOrigins, c.PublicURL = []string{site}, "https://agents.example.com"
	change(&c)
	callers := knowing(t, auth.Config{Mode: auth.Required, Issuers: []auth.Issuer{{
		Issuer: "https://login.example.com", Audience: "fairlead", JWKSURL: "https://login.example.com/keys", Tenant: "acme",
	}}}, &oneKey{})
	s, err := gateway.New(t.Context(), c, gateway.Deps{Session: reached{}, Tools: reached{}, Auth: callers, Secret: []byte("s"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	t.Cleanup(client.CloseIdleConnections)
	return srv
}

// common are headers of every answer, and those that differ each time.
var common = []string{
	"Content-Length", "Content-Security-Policy", "Cross-Origin-Resource-Policy", "Date", "Referrer-Policy", "Request-Id", "X-Content-Type-Options", "X-Request-Id",
	"Access-Control-Allow-Headers", "Access-Control-Expose-Headers", "Access-Control-Max-Age", "Access-Control-Allow-Origin", "Etag",
}

// random is what differs each time in an answer.
var random = regexp.MustCompile(`"request_id":"[^"]*"|Retry-After=\d+|"retryDelay":"[0-9.]+s"`)

// shown returns an answer in one line.
func shown(t *testing.T, srv *httptest.Server, p probe, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), p.method, srv.URL+path+p.suffix, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	maps.Copy(req.Header, p.header)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return "cut off" // the answer of a handler that has panicked to abort
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body) // what has arrived counts
	var line strings.Builder
	fmt.Fprint(&line, resp.StatusCode)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		value := strings.Join(resp.Header[name], "|")
		if usual := name == "Cache-Control" && value == "no-store" || name == "Vary" && value == "Origin"; !usual && !slices.Contains(common, name) {
			fmt.Fprintf(&line, " %s=%s", name, value)
		}
	}
	var plain bytes.Buffer
	if json.Compact(&plain, body) == nil {
		body = plain.Bytes()
	}
	text := random.ReplaceAllString(string(body), "RANDOM")
	for _, name := range []string{path + p.suffix, decoded(path + p.suffix)} {
		if len(name) > len("/v1/") {
			text = strings.ReplaceAll(text, name, "PATH")
		}
	}
	text = strings.ReplaceAll(text, " take "+p.method+";", " take METHOD;")
	head := random.ReplaceAllString(line.String(), "RANDOM") + " " + strings.ReplaceAll(fmt.Sprintf("%q", text[:min(len(text), 100)]), `\"`, `'`)
	if len(text) > 100 && path != "/openapi.json" {
		head += fmt.Sprintf("… %08x", crc32.ChecksumIEEE([]byte(text)))
	}
	return head
}

// decoded returns a path as texts of errors have it.
func decoded(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// TestEveryDoorAnswersAsBefore pins what clients see of each door: status, headers, and the form of its refusals.
func TestEveryDoorAnswersAsBefore(t *testing.T) {
	srv := doors(t, func(*gateway.Config) {})
	for name, paths := range byDoor {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			for i, path := range paths {
				fmt.Fprintf(&out, "%s\n", path)
				same, order, sent := map[string][]string{}, []string{}, probes
				if i == 0 {
					sent = slices.Concat(probes, rare)
				}
				for _, p := range sent {
					a := shown(t, srv, p, path)
					if same[a] == nil {
						order = append(order, a)
					}
					same[a] = append(same[a], p.name)
				}
				for _, a := range order {
					fmt.Fprintf(&out, "  %s: %s\n", strings.Join(same[a], ", "), a)
				}
			}
			golden(t, name, out.String())
		})
	}
}

// TestEveryPathOfTheSpecificationReachesItsRPC pins the answers of the paths that are made from the protos.
func TestEveryPathOfTheSpecificationReachesItsRPC(t *testing.T) {
	srv := doors(t, func(*gateway.Config) {})
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\{\w+\}`)
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		at := variable.ReplaceAllString(path, "x1")
		fmt.Fprintf(&out, "%s\n", path)
		for _, method := range append(slices.Sorted(maps.Keys(doc.Paths[path])), "options") {
			p := probe{method: strings.ToUpper(method), header: known}
			fmt.Fprintf(&out, "  %s: %s\n  without a key: ", p.method, shown(t, srv, p, at))
			p.header = unknown
			fmt.Fprintf(&out, "%s\n", shown(t, srv, p, at))
		}
	}
	golden(t, "paths", out.String())
}

// TestEveryDoorRefusesAClientThatAsksTooOften pins the form of the refusal before anything else is known.
func TestEveryDoorRefusesAClientThatAsksTooOften(t *testing.T) {
	srv := doors(t, func(c *gateway.Config) { c.Rate, c.Burst = 0.000_1, 1 })
	post := probe{method: "POST", header: known}
	shown(t, srv, post, "/v1/sessions")
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(byDoor)) {
		for _, path := range byDoor[name] {
			fmt.Fprintf(&out, "%s: %s\n", path, shown(t, srv, post, path))
		}
	}
	golden(t, "rate", out.String())
}

// TestTheTableOfDoorsIsWritten writes each path of each door in a line: its methods, those of them that need no key, and
// the form of its refusals. The paths of REST are in paths.txt.
func TestTheTableOfDoorsIsWritten(t *testing.T) {
	srv := doors(t, func(*gateway.Config) {})
	allow, form := regexp.MustCompile(`Allow=([A-Z]+(?:, [A-Z]+)*)`), regexp.MustCompile(`Content-Type=(\S+(?: charset=\S+)?)|'(\w+)':\{?`)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(byDoor)) {
		for _, path := range byDoor[name] {
			methods, open := "?", []string{}
			if found := allow.FindStringSubmatch(shown(t, srv, probe{method: "OPTIONS", header: unknown}, path)); found != nil {
				methods = found[1]
			}
			for m := range strings.SplitSeq(methods, ", ") {
				if m != "?" && m != "OPTIONS" && !strings.HasPrefix(shown(t, srv, probe{method: m, header: unknown}, path), "401 ") {
					open = append(open, m)
				}
			}
			var errors []string
			for _, f := range form.FindAllStringSubmatch(shown(t, srv, probe{method: "POST", header: http.Header{"Authorization": {"Bearer fl_bob"}}}, path), 3) {
				errors = append(errors, cmp.Or(f[1], f[2]))
			}
			fmt.Fprintf(&out, "%-13s %-75s %-35s open: %-10s errors: %s\n", name, path, methods, strings.Join(open, " "), strings.Join(errors, " "))
		}
	}
	golden(t, "table", out.String())
}

// golden compares a text with a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "doors", name+".txt")
	if *update {
		if err := cmp.Or(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(got), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Error(d)
	}
}
