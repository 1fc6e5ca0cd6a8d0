package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/allinone/e2e/wiretest"
	"github.com/fairlead/fairlead/services/allinone/internal/freeport"
	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// prefix is what the names of the suite's tools begin with in Fairlead.
const prefix = "mcp__suite__"

// everything starts the SDK's server that has the tools which the suite calls, for clients of a revision, and returns its
// URL.
func everything(t *testing.T, revision string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "everything")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, "-http", address, fmt.Sprintf("-stateless=%t", revision == modern))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	return "http://" + address
}

// suiteClient is a proxy between the suite and the server. It has a user's key, and leaves the prefix of the suite's tools
// out: the suite calls them by their own names. Scenarios of the modern revision leave questions without an answer, for
// which later calls of the session would wait, so a call that asks gets a session of its own.
type suiteClient struct {
	*server
	user, agent string

	mu       sync.Mutex
	sessions map[string]string // by the request state of their call
}

// own are the names of the suite's tools in its calls.
var own = regexp.MustCompile(`"name":\s*"((?:test_|json_)\w+)"`)

// named are the requests that have such a name.
var named = regexp.MustCompile(`"(?:tools/call|prompts/get|completion/complete)"`)

// start starts the proxy and returns its URL.
func (c *suiteClient) start(t *testing.T) string {
	t.Helper()
	to, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.URL.Path, p.Out.Host = "/mcp/agents/"+c.agent, p.In.Host
			p.Out.Header.Set("Authorization", "Bearer "+c.keys[c.user])
			body, _ := io.ReadAll(p.In.Body)
			if named.Match(body) {
				body = own.ReplaceAll(body, []byte(`"name":"`+prefix+`$1"`))
				if n := p.In.Header.Get("Mcp-Name"); strings.HasPrefix(n, "test_") || strings.HasPrefix(n, "json_") {
					p.Out.Header.Set("Mcp-Name", prefix+n)
				}
				if strings.HasPrefix(p.In.Header.Get("Mcp-Name"), "test_input_required_") {
					p.Out.URL.Path = "/mcp/" + c.session(t, body)
				}
			}
			p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: func(resp *http.Response) error {
			from, body := bufio.NewReaderSize(resp.Body, 1<<20), resp.Body
			r, w := io.Pipe()
			go func() {
				for {
					line, err := from.ReadBytes('\n')
					c.remember(resp.Request.URL.Path, line)
					_, failed := w.Write(bytes.ReplaceAll(line, []byte(`"name":"`+prefix), []byte(`"name":"`)))
					if err != nil || failed != nil {
						_ = w.CloseWithError(err)
						_ = body.Close()
						return
					}
				}
			}()
			resp.Header.Del("Content-Length")
			resp.ContentLength, resp.Body = -1, readAndClose{r, body}
			return nil
		},
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(func() {
		srv.Close()
		transport.CloseIdleConnections()
	})
	return srv.URL
}

// session returns the session of a call: that to whose question it has the answer, or a new one.
func (c *suiteClient) session(t *testing.T, body []byte) string {
	var call struct {
		Params struct{ RequestState string }
	}
	if err := json.Unmarshal(body, &call); err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	for state, session := range c.sessions {
		if strings.HasPrefix(call.Params.RequestState, state) { // with more behind it, it is a forged one
			c.mu.Unlock()
			return session
		}
	}
	c.mu.Unlock()
	resp := c.send(t.Context(), t, c.user, http.MethodPost, "/v1/sessions", `{"agent":"agents/`+c.agent+`"}`)
	var made struct{ Name string }
	if err := json.Unmarshal([]byte(read(t, resp)), &made); err != nil || made.Name == "" {
		t.Errorf("no session: %d %v", resp.StatusCode, err)
	}
	return made.Name
}

var requestState = regexp.MustCompile(`"requestState":"([^"]+)"`)

// remember notes of which session a request state is.
func (c *suiteClient) remember(path string, line []byte) {
	if m := requestState.FindSubmatch(line); m != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sessions[string(m[1])] = strings.TrimPrefix(path, "/mcp/")
	}
}

// readAndClose is a body whose end closes another one.
type readAndClose struct {
	*io.PipeReader
	body io.Closer
}

// Close implements io.Closer.
func (r readAndClose) Close() error {
	_ = r.PipeReader.Close()
	return r.body.Close()
}

// passes are the scenarios of each revision that this server passes.
var passes = map[string][]string{
	legacy: {
		"server-initialize", "ping", "completion-complete", "resources-subscribe", "resources-unsubscribe", "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-image", "tools-call-audio",
		"tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-with-progress", "tools-call-elicitation",
		"tools-call-with-logging", "logging-set-level", "elicitation-sep1034-defaults", "elicitation-sep1330-enums", "json-schema-2020-12", "server-sse-multiple-streams", "server-session-lifecycle", "dns-rebinding-protection",
		"resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read",
		"prompts-list", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
	},
	modern: {
		"server-stateless", "completion-complete", "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-image", "tools-call-audio",
		"tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-with-progress", "json-schema-2020-12", "server-sse-multiple-streams", "dns-rebinding-protection",
		"http-header-validation", "http-custom-header-server-validation", "caching",
		"resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read", "sep-2164-resource-not-found",
		"prompts-list", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
		"input-required-result-basic-elicitation", "input-required-result-request-state", "input-required-result-multi-round",
		"input-required-result-missing-input-response", "input-required-result-result-type", "input-required-result-unsupported-methods",
		"input-required-result-tampered-state", "input-required-result-ignore-extra-params", "input-required-result-validate-input",
		"input-required-result-non-tool-request",
	},
}

// fails are the other scenarios, and why each fails.
var fails = map[string]map[string]string{
	legacy: {
		"tools-call-sampling": notDeclared,
		"server-sse-polling":  "not scored: the suite's tool ends its stream without an event id, so its server's response is lost to any client, and the call ends as not known",
	},
	modern: {
		"input-required-result-basic-sampling":          notDeclared,
		"input-required-result-basic-list-roots":        notDeclared,
		"input-required-result-multiple-input-requests": notDeclared,
		"input-required-result-capability-check":        "the client cannot be asked (it declares sampling alone), so the call waits for an answer that is given elsewhere, longer than the suite waits",
		"tasks-lifecycle":                               noTasks,
		"tasks-capability-negotiation":                  noTasks,
		"tasks-wire-fields":                             noTasks,
		"tasks-request-state-removal":                   noTasks,
		"tasks-mrtr-input":                              noTasks,
		"tasks-request-headers":                         noTasks,
		"tasks-dispatch-and-envelope":                   noTasks,
		"tasks-required-task-error":                     noTasks,
		"tasks-mrtr-composition":                        noTasks,
	},
}

const (
	// notDeclared is in docs/decisions.md: an MCP client declares neither sampling nor roots.
	notDeclared = "the server behind the session wants sampling or roots, which Fairlead does not declare, on purpose"
	// noTasks are scenarios that the suite does not score, as the test checks.
	noTasks = "not scored: the extension io.modelcontextprotocol/tasks, which the server does not declare, and whose tools the suite's server does not have"
)

// The official suite judges a server whose session has, as an MCP server, the tools that the suite calls.
func TestTheOfficialConformanceSuite(t *testing.T) {
	t.Parallel()
	prove.Only(t, "the suite takes half a minute for each revision")
	node := wiretest.Have(t, modules+"/node/bin/node", "npm ci --prefix deploy/tools/mcp")
	suite := wiretest.Have(t, modules+"/@modelcontextprotocol/conformance/dist/index.js", "npm ci --prefix deploy/tools/mcp")
	agents := map[string]any{}
	for name, revision := range map[string]string{"legacy": legacy, "modern": modern} {
		agents[name] = map[string]any{
			"prompt": "Test.", "profile": "full", "tools": []string{"Read", "ListMcpResources", "ReadMcpResource", "GetMcpPrompt"}, "checkpoints": []string{},
			"mcp-servers": map[string]any{"suite": map[string]any{"url": everything(t, revision), "trusted": true}},
		}
	}
	s := serve(t, map[string]any{
		"tools":   map[string]any{"mcp-allow-private": []string{"127.0.0.1"}},
		"session": map[string]any{"default-agent": "modern", "agents": agents},
	})
	for agent, revision := range map[string]string{"legacy": legacy, "modern": modern} {
		t.Run(revision, func(t *testing.T) {
			c := s.connect(t, "ann", "/mcp/agents/"+agent, modern, nil)
			until(t, "the tools of the suite are there", func() bool {
				listed, err := c.ListTools(t.Context(), nil)
				return err == nil && len(listed.Tools) > 20
			})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			out, proxy := t.TempDir(), &suiteClient{server: s, user: "ann", agent: agent, sessions: map[string]string{}}
			arguments := []string{suite, "server", "--url", proxy.start(t) + "/mcp", "-o", out, "--requirements", revision}
			report, err := exec.CommandContext(ctx, node, arguments...).CombinedOutput()
			passed, failed := results(t, out)
			t.Logf("%v: %d scenarios pass: %s\n%d fail: %s", err, len(passed), strings.Join(passed, " "), len(failed), strings.Join(slices.Sorted(maps.Keys(failed)), " "))
			for _, scenario := range slices.Sorted(maps.Keys(failed)) {
				t.Logf("%s: %s", scenario, failed[scenario])
			}
			t.Logf("the suite says:\n%s", tail(report))
			for _, scenario := range passes[revision] {
				if !slices.Contains(passed, scenario) {
					t.Errorf("%s does not pass: %s", scenario, failed[scenario])
				}
			}
			for scenario := range failed {
				if fails[revision][scenario] == "" {
					t.Errorf("%s fails, for no known reason", scenario)
				}
			}
			for scenario, why := range fails[revision] {
				if failed[scenario] == "" {
					t.Errorf("%s passes, and is said to fail: %s", scenario, why)
				}
				if strings.HasPrefix(why, "not scored") && !unscored(report, scenario) {
					t.Errorf("%s counts, and is said not to", scenario)
				}
			}
		})
	}
}

// unscored reports whether a failing scenario is in the suite's list of those that do not count.
func unscored(report []byte, scenario string) bool {
	_, list, _ := strings.Cut(string(report), "\nNot scored for ")
	return strings.Contains(list, "✗ "+scenario+" (")
}

// results reads the verdicts of the suite: the scenarios that pass, and why the others do not.
func results(t *testing.T, dir string) (passed []string, failed map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the suite has written nothing: %v", err)
	}
	failed = map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct {
			ID, Status, ErrorMessage string
			Details                  json.RawMessage
		}
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatal(err)
		}
		scenario := regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT.*$`).FindStringSubmatch(filepath.Base(filepath.Dir(file)))[1]
		for _, c := range checks {
			if c.Status == "FAILURE" {
				failed[scenario] += fmt.Sprintf("%s: %s %.700s; ", c.ID, c.ErrorMessage, c.Details)
			}
		}
		if failed[scenario] == "" {
			passed = append(passed, scenario)
		}
	}
	return passed, failed
}

// tail returns the end of a report.
func tail(report []byte) string { return string(report[max(0, len(report)-4000):]) }
