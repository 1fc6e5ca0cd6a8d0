package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
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
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// prefix is what the names of the suite's tools begin with in Fairlead.
const prefix = "mcp__suite__"

// everything starts the SDK's server that has the tools which the suite calls, and returns its URL.
func everything(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "everything")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, "-http", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	return "http://" + address
}

// renaming returns the URL of a proxy before the server that has a user's key and leaves the prefix of the suite's
// tools out: the suite calls them by their own names.
func (s *server) renaming(t *testing.T, user string) string {
	t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`"name":\s*"((?:test_|json_)\w+)"`)
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Host = p.In.Host
			p.Out.Header.Set("Authorization", "Bearer "+s.keys[user])
			if n := p.In.Header.Get("Mcp-Name"); strings.HasPrefix(n, "test_") || strings.HasPrefix(n, "json_") {
				p.Out.Header.Set("Mcp-Name", prefix+n)
			}
			body, _ := io.ReadAll(p.In.Body)
			if bytes.Contains(body, []byte(`"tools/call"`)) {
				body = name.ReplaceAll(body, []byte(`"name":"`+prefix+`$1"`))
			}
			p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: func(resp *http.Response) error {
			from, body := bufio.NewReaderSize(resp.Body, 1<<20), resp.Body
			r, w := io.Pipe()
			go func() {
				for {
					line, err := from.ReadBytes('\n')
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

// passes are the scenarios of each revision that this server passes. The others are about what it does not have:
// prompts, resources, completion, logging, sampling, tasks, audio, and more progress than a call reports in a second.
var passes = map[string][]string{
	legacy: {
		"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-image", "json-schema-2020-12",
		"server-sse-multiple-streams", "server-sse-polling", "server-session-lifecycle", "dns-rebinding-protection",
	},
	modern: {
		"tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-image", "json-schema-2020-12",
		"server-sse-multiple-streams", "dns-rebinding-protection",
		"input-required-result-missing-input-response", "input-required-result-unsupported-methods",
		"input-required-result-ignore-extra-params", "input-required-result-validate-input",
	},
}

// The official suite judges a server whose session has, as an MCP server, the tools that the suite calls.
func TestTheOfficialConformanceSuite(t *testing.T) {
	prove.Only(t, "the suite takes half a minute for each revision")
	node := have(t, modules+"/node/bin/node", "npm ci --prefix deploy/tools/mcp")
	suite := have(t, modules+"/@modelcontextprotocol/conformance/dist/index.js", "npm ci --prefix deploy/tools/mcp")
	s := serve(t, map[string]any{
		"tools": map[string]any{"mcp-allow-private": []string{"127.0.0.1"}},
		"session": map[string]any{
			"default-agent": "suite",
			"agents": map[string]any{"suite": map[string]any{
				"prompt": "Test.", "profile": "full", "tools": []string{"Read"}, "checkpoints": []string{},
				"mcp-servers": map[string]any{"suite": map[string]any{"url": everything(t), "trusted": true}},
			}},
		},
	})
	c := s.connect(t, "ann", "/mcp", modern, nil)
	until(t, "the tools of the suite are there", func() bool {
		listed, err := c.ListTools(t.Context(), nil)
		return err == nil && len(listed.Tools) > 20
	})
	run := func(t *testing.T, user string, scenarios []string, arguments ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		out := t.TempDir()
		arguments = append([]string{suite, "server", "--url", s.renaming(t, user) + "/mcp", "-o", out}, arguments...)
		report, err := exec.CommandContext(ctx, node, arguments...).CombinedOutput()
		passed, failed := results(t, out)
		t.Logf("%v: %d scenarios pass: %s\n%d fail: %s", err, len(passed), strings.Join(passed, " "), len(failed), strings.Join(slices.Sorted(maps.Keys(failed)), " "))
		for _, scenario := range scenarios {
			if !slices.Contains(passed, scenario) {
				t.Errorf("%s does not pass: %s\n%s", scenario, failed[scenario], tail(report))
			}
		}
	}
	// In a session of its own: the suite leaves questions without an answer, for which the calls behind them wait.
	for _, scenario := range []string{"http-header-validation", "http-custom-header-server-validation"} {
		t.Run(scenario, func(t *testing.T) {
			run(t, "bob", []string{scenario}, "--scenario", scenario, "--spec-version", modern)
		})
	}
	eras(t, func(t *testing.T, revision string) { run(t, "ann", passes[revision], "--requirements", revision) })
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
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatal(err)
		}
		scenario := regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT.*$`).FindStringSubmatch(filepath.Base(filepath.Dir(file)))[1]
		for _, c := range checks {
			if c.Status == "FAILURE" {
				failed[scenario] += c.ID + ": " + c.ErrorMessage + "; "
			}
		}
		if failed[scenario] == "" {
			passed = append(passed, scenario)
		}
	}
	return passed, failed
}

// tail returns the end of a report.
func tail(report []byte) string { return string(report[max(0, len(report)-500):]) }
