package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// respawn kills one program and starts it again.
func (s *system) respawn(t *testing.T, name string) {
	t.Helper()
	i := slices.IndexFunc(s.processes, func(p *process) bool { return p.name == name })
	p := s.processes[i]
	_ = p.cmd.Process.Kill()
	_ = <-p.done //nolint:staticcheck // only the end matters
	_ = p.log.Close()
	s.processes = slices.Delete(s.processes, i, i+1)
	s.spawn(t, name, p.cmd.Args[1:])
	s.waitReady(t)
}

// metrics are a service's.
func (s *system) metrics(t *testing.T, service string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.options.addrs[service+"-ops"]+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOutputGoesOnAfterAServiceWasKilled kills a service in the middle of a command's output. Whoever
// follows the session sees every byte of it, and none twice.
func TestOutputGoesOnAfterAServiceWasKilled(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"session", "tools"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{four: true, env: []string{"FAIRLEAD_SESSION_LEASE_TTL=2s", "FAIRLEAD_TOOLS_LEASE_TTL=2s"}})
			session := s.session(t, "coder")
			if r := s.call(t, http.MethodPost, "/v1/"+session+"/turns", `{"text":"recite"}`); r.code != http.StatusOK {
				t.Fatalf("create a turn: %d %s", r.code, r.body)
			}
			told := map[string]string{}
			tell := func(f frame) {
				if f.event == "tool_call.output_delta" {
					data, err := base64.StdEncoding.DecodeString(f.field("toolCallOutputDelta", "data"))
					if err != nil {
						t.Fatal(err)
					}
					told[f.field("toolCallOutputDelta", "stream")] += string(data)
				}
			}
			seen := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool {
				tell(f)
				return !strings.Contains(told["stdout"], "verse 8\n") || !strings.Contains(told["stderr"], "breath 8\n")
			})
			s.respawn(t, service)
			if service == "session" { // a call without a follower at its end has its result for all
				until(t, "another holder has the session", func() bool {
					return slices.ContainsFunc(strings.Split(s.metrics(t, "tools"), "\n"), func(line string) bool {
						return strings.Contains(line, "FenceSession") && !strings.HasPrefix(line, "#")
					})
				})
			}
			sign := filepath.Join(s.options.data, "sandbox", "default", strings.TrimPrefix(session, "sessions/"), "workspace", "go")
			if err := os.WriteFile(sign, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			rest := s.stream(t, http.MethodGet, "/v1/"+session+"/events", "", func(f frame) bool {
				tell(f)
				return f.event != "turn.finished"
			}, "Last-Event-ID", seen[len(seen)-1].id)
			last(t, rest, "COMPLETE")
			var verses, breaths strings.Builder
			for i := range 16 {
				_, _ = fmt.Fprintf(&verses, "verse %d\n", i+1)
				_, _ = fmt.Fprintf(&breaths, "breath %d\n", i+1)
			}
			if told["stdout"] != verses.String() || told["stderr"] != breaths.String() {
				t.Errorf("followers saw %q", told)
			}
		})
	}
}
