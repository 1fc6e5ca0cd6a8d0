package e2e

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// secret is what no command, event, log or span may hold.
const secret = "hush-7c1f0d9a"

// TestWhatCommandsDoWithTheNetworkIsInTheLog has an agent's command ask a server
// outside, with a credential that the proxy adds, and one that is refused.
func TestWhatCommandsDoWithTheNetworkIsInTheLog(t *testing.T) {
	t.Parallel()
	needCurl(t)
	for _, four := range []bool{false, true} {
		t.Run(map[bool]string{false: "all in one", true: "four processes"}[four], func(t *testing.T) {
			t.Parallel()
			seen := make(chan string, 10)
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen <- r.Header.Get("Authorization")
				_, _ = fmt.Fprint(w, "an answer from outside")
			}))
			t.Cleanup(server.Close)
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			roots := filepath.Join(t.TempDir(), "roots.pem")
			if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			spans, address := receive(t)
			s := start(t, options{
				four: four,
				env: []string{
					"SSL_CERT_FILE=" + roots, "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_BSP_SCHEDULE_DELAY=100",
				},
				agents: fmt.Sprintf("  surfer: {profile: full, tools: [Bash], limits: {open-files: 64}, network: [{name: api, host: 127.0.0.1/32, ports: [%s], tls: upgrade, credential: vault}]}\n", u.Port()),
				sandbox: fmt.Sprintf(`
egress:
  ceiling: [{host: 127.0.0.1/32, ports: [%s]}]
  credentials:
    vault: {hosts: [127.0.0.1], prefix: "Bearer ", secret: %s}
`, u.Port(), secret),
			})
			if r := s.call(t, http.MethodGet, "/v1/capabilities", ""); !strings.Contains(r.body, `"network":"allowlist"`) || !strings.Contains(r.body, `"workspaceQuota":`) || !strings.Contains(r.body, `"includes":["user-namespace"`) {
				t.Errorf("the capabilities are %s", r.body)
			}
			if r := s.call(t, http.MethodGet, "/v1/agents/surfer", ""); !strings.Contains(r.body, `"limits":{"openFiles":64}`) {
				t.Errorf("the agent is %s", r.body)
			}
			const trace = "4bf92f3577b34da6a3ce929d0e0e4737"
			ask := fmt.Sprintf("curl -sS --noproxy none http://127.0.0.1:%s/x?query=hidden; ", u.Port())
			text := ask + ask + "curl -sS http://refused.example.com/; env; ulimit -n"
			frames := s.stream(t, http.MethodPost, "/v1/"+s.session(t, "surfer")+"/turns:stream", `{"text":"`+text+`"}`, nil, "traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
			last(t, frames, "COMPLETE")
			checkNetwork(t, frames, u.Port())
			close(seen) // the turn is over: there are no more questions
			if got := <-seen; got != "Bearer "+secret {
				t.Errorf("the server outside got %q", got)
			}
			if got := results(frames); len(got) != 1 || !strings.Contains(got[0], "an answer from outside") || !strings.Contains(got[0], "refused.example.com") || !strings.Contains(got[0], "\n64") {
				t.Errorf("the model reads %q", got)
			}
			processes := s.processes
			s.stop(t) // flushes
			var told strings.Builder
			_, _ = fmt.Fprint(&told, frames)
			for _, p := range processes {
				raw, err := os.ReadFile(p.log.Name())
				if err != nil {
					t.Fatal(err)
				}
				told.Write(raw)
			}
			found := spans.of(trace, map[bool]int{false: 1, true: 4}[four])
			requests := 0
			for _, sp := range found {
				told.WriteString(sp.String())
				if sp.Name == "egress" && hasAncestor(found, sp, "execute_tool Bash") {
					requests++
				}
			}
			if requests != 3 {
				t.Errorf("%d spans of requests below the call, want 3:\n%s", requests, tree(found))
			}
			if strings.Contains(told.String(), secret) {
				t.Error("the secret is in an event, a log or a span")
			}
		})
	}
}

func needCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("curl is not on this machine: install it")
		}
		t.Skip("curl is not on this machine")
	}
}

// checkNetwork checks the events of the network: they come right before the end of
// their call.
func checkNetwork(t *testing.T, frames []frame, port string) {
	t.Helper()
	var got []string
	for _, f := range frames {
		if f.event != "tool_call.network" {
			continue
		}
		n := func(name string) string { return f.field("toolCallNetwork", name) }
		got = append(got, strings.Join([]string{n("host"), n("port"), n("allowed"), n("outcome"), n("rule"), n("credential"), n("connections"), n("receivedBytes")}, " "))
		if strings.Contains(f.data, "hidden") {
			t.Errorf("an event holds the query: %s", f.data)
		}
	}
	slices.Sort(got)
	answered := "127.0.0.1 " + port + " true done api vault 1 22"
	want := []string{answered, answered, "refused.example.com 80  denied   1 "}
	if !slices.Equal(got, want) {
		t.Errorf("the events say\n%q, want\n%q", got, want)
	}
	ended := slices.IndexFunc(frames, func(f frame) bool { return f.event == "tool_call.finished" })
	if ended < 3 || slices.ContainsFunc(frames[ended-3:ended], func(f frame) bool { return f.event != "tool_call.network" }) {
		t.Errorf("they do not come before the call's end: %s", events(frames))
	}
}

// TestEachOfManyRequestsIsAnEvent has a command make more requests than one may.
func TestEachOfManyRequestsIsAnEvent(t *testing.T) {
	needCurl(t)
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const most, made = 1000, 1200
	s := start(t, options{
		agents:  fmt.Sprintf("  surfer: {profile: full, tools: [Bash], network: [{host: 127.0.0.1/32, ports: [%s]}]}\n", port),
		sandbox: fmt.Sprintf("egress:\n  requests: %d\n  ceiling: [{host: 127.0.0.1/32, ports: [%s]}]\n", most, port),
	})
	text := fmt.Sprintf("curl -s --noproxy none -o /dev/null http://127.0.0.1:%s/[1-%d]", port, made)
	frames := s.stream(t, http.MethodPost, "/v1/"+s.session(t, "surfer")+"/turns:stream", `{"text":"`+text+`"}`, nil)
	last(t, frames, "COMPLETE")
	told := map[string]int{}
	for _, f := range frames {
		if f.event == "tool_call.network" {
			told[f.field("toolCallNetwork", "outcome")+" "+f.field("toolCallNetwork", "connections")]++
		}
	}
	if told["done 1"] != most || told[fmt.Sprintf("limited %d", made-most)] != 1 || len(told) != 2 {
		t.Errorf("the events tell of %v", told)
	}
	if got := results(frames); len(got) != 1 || !strings.Contains(got[0], "ask the operator to raise egress.requests") {
		t.Errorf("the model reads %q", got)
	}
}
