package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
)

func TestAnAgentFileHasTheKeysOfTheConfiguration(t *testing.T) {
	read := func(text string) (*sessionv1.AgentSpec, error) {
		file := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return session.AgentFile(file)
	}
	got, err := read(`
prompt: You repair failing tests.
profile: full
tools: [Bash, Read]
checkpoints: []
output-schema: {type: object, properties: {n: {type: integer}}}
limits: {memory: 1024, cpus: 1.5, timeout: 2m}
network: [{host: example.com, ports: [443]}]
repositories: [{url: "https://git.example.com/a.git", push: turn_end}]
max-wall-time: 20m
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &sessionv1.AgentSpec{
		Prompt: "You repair failing tests.", Profile: "full", Tools: []string{"Bash", "Read"}, Checkpoints: &sessionv1.AgentCheckpoints{},
		OutputSchemaJson: `{"type":"object","properties":{"n":{"type":"integer"}}}`,
		Limits:           &sessionv1.AgentLimits{MemoryBytes: 1024, CpuMillis: 1500, Timeout: durationpb.New(2 * time.Minute)},
		Network:          []*sessionv1.AgentNetworkRule{{Host: "example.com", Ports: []int32{443}}},
		Repositories:     []*sessionv1.AgentRepository{{Url: "https://git.example.com/a.git", Push: "turn_end"}},
		MaxWallTime:      durationpb.New(20 * time.Minute),
	}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if _, err := read("promt: x"); err == nil || !strings.Contains(err.Error(), "promt") {
		t.Errorf("a key that does not exist: %v", err)
	}
}
