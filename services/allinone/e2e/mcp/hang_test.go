package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A command that never speaks is reported in plain words within its time to start. One of the two is a stand-in for npx
// in a sandbox without network, which waits for its registry.
func TestACommandThatSaysNothingIsReported(t *testing.T) {
	t.Parallel()
	servers := map[string]any{
		"packed": map[string]any{"command": "/workspace/npx", "args": []string{"-y", "a-server"}},
		"mute":   map[string]any{"command": "sleep", "args": []string{"600"}},
	}
	const limit = 3 * time.Second
	s := serve(t, map[string]any{
		"tools": map[string]any{"mcp-start": limit.String()},
		"session": map[string]any{"default-agent": "waiter", "agents": map[string]any{
			"waiter": map[string]any{"prompt": "Wait.", "profile": "full", "tools": []string{"Bash"}, "mcp-servers": servers},
		}},
	})
	resp := s.send(t.Context(), t, "ann", http.MethodPost, "/v1/sessions", `{}`)
	var made struct{ Name string }
	if err := json.Unmarshal([]byte(read(t, resp)), &made); err != nil || made.Name == "" {
		t.Fatalf("no session: %d %v", resp.StatusCode, err)
	}
	script := `printf '#!/bin/sh\necho waiting for the registry >&2\nexec sleep 600\n' > npx && chmod +x npx`
	arguments, err := json.Marshal(map[string]string{"command": script})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"tool": "Bash", "argumentsJson": string(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	read(t, s.send(t.Context(), t, "ann", http.MethodPost, "/v1/"+made.Name+"/tools:call", string(body)))

	type status struct{ Name, State, Message string }
	look := func() map[string]status {
		var got struct{ Servers []status }
		text := read(t, s.send(t.Context(), t, "ann", http.MethodGet, "/v1/"+made.Name+"/mcp", ""))
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all := map[string]status{}
		for _, one := range got.Servers {
			all[one.Name] = one
		}
		return all
	}
	begin := time.Now()
	var all map[string]status
	until(t, "both count as failed", func() bool {
		all = look()
		return all["packed"].State == "MCP_SERVER_STATE_FAILED" && all["mute"].State == "MCP_SERVER_STATE_FAILED" && strings.Contains(all["packed"].Message, "did not answer in time")
	})
	t.Log(time.Since(begin), all)
	for name, words := range map[string][]string{
		"packed": {"did not answer in time", "npx may be waiting for the network", "allow the registry in the network rules", "It printed last: waiting for the registry"},
		"mute":   {"did not answer in time", "says nothing", "Run it in the session's workspace"},
	} {
		for _, w := range words {
			if !strings.Contains(all[name].Message, w) {
				t.Errorf("the message of %s lacks %q: %s", name, w, all[name].Message)
			}
		}
	}
	for end := time.Now().Add(limit / 2); time.Now().Before(end); { // while it is tried again
		if again := look(); again["mute"].State != "MCP_SERVER_STATE_FAILED" {
			t.Fatalf("then the state is %s: %s", again["mute"].State, again["mute"].Message)
		}
	}
}
