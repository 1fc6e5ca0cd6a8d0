package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/allinone/internal/host"
)

// asker is a server in this process whose agent has to ask before it writes.
type asker struct {
	address, data string
}

func startAsker(t *testing.T) *asker {
	t.Helper()
	needSandbox(t)
	a := &asker{data: dataOf(t)}
	scenario, conf := filepath.Join(a.data, "scenario.yaml"), filepath.Join(a.data, "fairlead.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(scenario, `
name: asker
turns:
  - when: ^ask$
    steps:
      - tools: [{name: AskUserQuestion, input: {questions: [
          {question: "Which database?", header: Database, options: [{label: Postgres, description: many}, {label: SQLite, description: one}]},
          {question: "Which parts?", header: Parts, multiSelect: true, options: [{label: API, description: a}, {label: UI, description: u}]}]}}]
      - text: ["{{ .LastToolResult }}"]
`+tasks("writer secret", "writer other", "writer open", "named secret", "named third", "named other", "named open")+`
  - when: ^plan$
    steps:
      - tools: [{name: ExitPlanMode, input: {plan: "1. Write a.txt\n2. Read it again"}}]
      - tools: [{name: Write, input: {file_path: /workspace/a.txt, content: hello}}]
      - text: ["{{ .LastToolResult }}"]
  - steps:
      - tools: [{name: Write, input: {file_path: "/workspace/{{ .UserText }}", content: "hello"}}]
      - text: ["{{ .LastToolResult }}"]
`)
	write(conf, `
session:
  scenario: `+scenario+`
  agents:
    asker: {model: "scripted:asker", prompt: p, tools: [Write, AskUserQuestion], profile: ask-writes}
    narrow:
      model: "scripted:asker"
      prompt: p
      tools: [Write, Task]
      profile: full
      permissions: {deny: ["Write(./secret*)"]}
      subagents: [{name: writer, description: w, prompt: p, tools: [Write]}, {name: named, agent: agents/narrower}]
    narrower: {model: "scripted:asker", prompt: p, tools: [Write], profile: full, permissions: {disabled-tools: [Bash], deny: ["Write(./third*)"]}}
    stopper: {model: "scripted:asker", prompt: p, tools: [Write], profile: stopper}
tools:
  profiles:
    stopper: {allow: [Write], interrupt: ["Write(./secret*)"]}
`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		_, errs, _ := fairlead(ctx, "", nil, "serve", "--data", a.data, "--config", conf, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ops", "")
		ended <- errs
	}()
	t.Cleanup(func() {
		stop()
		errs := <-ended
		if t.Failed() {
			t.Log(errs)
		}
	})
	for a.address == "" {
		select {
		case errs := <-ended:
			t.Fatalf("the server ended: %s", errs)
		case <-time.After(10 * time.Millisecond):
			a.address = host.Addresses(a.data)["public"]
		}
	}
	return a
}

// tasks returns turns of a scenario: each gives the name of a file to a subagent.
func tasks(all ...string) string {
	var b strings.Builder
	for _, t := range all {
		who, file, _ := strings.Cut(t, " ")
		fmt.Fprintf(&b, `
  - when: ^%s$
    steps:
      - tools: [{name: Task, input: {description: d, subagent_type: %s, prompt: %s.txt}}]
      - text: ["{{ .LastToolResult }}"]`, t, who, file)
	}
	return b.String()
}

// command runs a client's command.
func (a *asker) command(t *testing.T, want int, args ...string) string {
	t.Helper()
	out, errs, code := fairlead(t.Context(), "", nil, append(args, "--server", a.address)...)
	if code != want {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errs)
	}
	return out + errs
}

// pendingCall is a line of `fairlead approvals --json`.
type pendingCall struct {
	CallID, Session, Tool string
	ArgumentsJSON         string
}

// waits waits until n questions wait, and returns them.
func (a *asker) waits(t *testing.T, n int) (all []pendingCall) {
	t.Helper()
	for len(all) != n {
		all = nil
		for line := range strings.Lines(a.command(t, 0, "approvals", "--json")) {
			var p pendingCall
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatal(err, line)
			}
			all = append(all, p)
		}
	}
	return all
}

func TestAnswersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	a := startAsker(t)
	edited := filepath.Join(t.TempDir(), "arguments.json")
	if err := os.WriteFile(edited, []byte(`{"file_path":"/workspace/other.txt","content":"hello"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer, end []string
	}{
		{[]string{"deny", "CALL", "--comment", "write b.txt"}, []string{"refused by", "write b.txt"}},
		{[]string{"approve", "CALL", "--edit", edited}, []string{"approved by", "with other arguments: /workspace/other.txt"}},
		{[]string{"approve", "CALL"}, []string{"approved by", "COMPLETE"}},
	} {
		ended := make(chan string, 1)
		go func() {
			out, errs, _ := fairlead(t.Context(), "", nil, "run", "--agent", "asker", "--server", a.address, "a.txt")
			ended <- out + errs
		}()
		p := a.waits(t, 1)[0]
		if p.Tool != "Write" || !strings.Contains(p.ArgumentsJSON, "/workspace/a.txt") {
			t.Errorf("the list has %+v", p)
		}
		if list := a.command(t, 0, "approvals", "--session", bare(p.Session)); !strings.Contains(list, p.CallID) || !strings.Contains(list, "/workspace/a.txt") {
			t.Errorf("the list is\n%s", list)
		}
		c.answer[1] = p.CallID
		a.command(t, 0, c.answer...)
		out := <-ended
		for _, want := range append(c.end, "fairlead approve "+p.CallID) {
			if !strings.Contains(out, want) {
				t.Errorf("%v: %q is missing in\n%s", c.answer, want, out)
			}
		}
		if out := a.command(t, 1, "approve", p.CallID); !strings.Contains(out, "it may have an answer already") {
			t.Errorf("a second answer: %s", out)
		}
	}
	if out := a.command(t, 2, "approve", "x", "--rule", "Write"); !strings.Contains(out, "--session-scope") {
		t.Errorf("a rule for one call: %s", out)
	}
}

func TestAQuestionIsAnsweredFromTheCommandLine(t *testing.T) {
	t.Parallel()
	a := startAsker(t)
	for _, c := range []struct {
		answer []string
		want   string
	}{
		{[]string{"2", "API, 2"}, "Which database? SQLite\n- Which parts? API, UI"},
		{[]string{"postgres", "none of these"}, "Which database? Postgres\n- Which parts? none of these"},
		{[]string{"--content", `{"answers":{"Which database?":"x","Which parts?":["UI"]}}`}, "Which database? x\n- Which parts? UI"},
		{[]string{"--decline"}, "The user does not want to answer."},
	} {
		ended := make(chan string, 1)
		go func() {
			out, errs, _ := fairlead(t.Context(), "", nil, "run", "--agent", "asker", "--server", a.address, "ask")
			ended <- out + errs
		}()
		p := a.waits(t, 1)[0]
		if list := a.command(t, 0, "approvals"); !strings.Contains(list, "Which database?") {
			t.Errorf("the list is\n%s", list)
		}
		if out := a.command(t, 1, "approve", p.CallID); !strings.Contains(out, "fairlead answer") {
			t.Errorf("an approval of a question: %s", out)
		}
		if out := a.command(t, 2, "answer", p.CallID, "1"); !strings.Contains(out, "questions: 2, answers: 1") {
			t.Errorf("one answer of two: %s", out)
		}
		a.command(t, 0, append([]string{"answer", p.CallID}, c.answer...)...)
		if out := <-ended; !strings.Contains(out, c.want) || !strings.Contains(out, "fairlead answer "+p.CallID) {
			t.Errorf("%v: %q is missing in\n%s", c.answer, c.want, out)
		}
	}
}
