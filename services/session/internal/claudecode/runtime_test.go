package claudecode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/turntest"
)

// program returns the CLI.
func program(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(cmp.Or(os.Getenv("CLAUDE_CODE_PROGRAM"), "../../../../bin/claude-code/claude")) // the variable tries another version
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the Claude Code CLI is not installed: run `make claude-code` where npm can be reached (%v)", err)
	}
	return path
}

// local runs the relay on this machine.
type local struct {
	t      *testing.T
	dir    string
	mu     sync.Mutex
	relays []*exec.Cmd
}

type pipe struct {
	io.Reader
	io.WriteCloser
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *pipe) Close() error {
	err := p.WriteCloser.Close()
	<-p.done
	return err
}

// Pipe implements Sandbox.
func (l *local) Pipe(context.Context, *commonv1.CallRef, []string) (io.ReadWriteCloser, error) {
	l.t.Helper()
	cmd := exec.Command("relaytree/bin/relay")
	path, err := filepath.Abs(cmd.Path)
	if err != nil {
		return nil, err
	}
	cmd.Path, cmd.Dir, cmd.Env, cmd.Stderr = path, l.dir, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + l.dir}, l.t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = w.Close()
	p := &pipe{Reader: out, WriteCloser: in, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.relays = append(l.relays, cmd)
	return p, nil
}

// started returns how many CLIs were started.
func (l *local) started() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.relays)
}

type fixture struct {
	*turntest.Fixture
	*Runtime
	local *local
	tools []model.Tool
}

func begun(t *testing.T, spec agent.Spec, c Config) *fixture {
	t.Helper()
	spec.Runtime = agent.ClaudeCodeCLI
	f := &fixture{Fixture: turntest.New(t, spec), local: &local{t: t, dir: t.TempDir()}}
	f.tools = []model.Tool{
		{Name: "Echo", Description: "Says it again.", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
		{Name: "mcp__files__read", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}
	if c.Processes == 0 {
		c.Processes = 4
	}
	f.Runtime = New(c, f.local, f.Logger)
	t.Cleanup(func() {
		f.Close()
		left, _ := filepath.Glob(filepath.Join(f.local.dir, "fairlead-*"))
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		for _, cmd := range f.local.relays {
			if cmd.ProcessState == nil {
				t.Errorf("relay %d runs still", cmd.Process.Pid)
			}
		}
	})
	return f
}

// ask returns the runtime's request for the conversation.
func (f *fixture) ask(t *testing.T) model.Request {
	t.Helper()
	r, out, err := f.try(t)
	if err != nil || !out.GoesOn() {
		t.Fatalf("%v, %v", err, out.End)
	}
	return r
}

func (f *fixture) try(t *testing.T) (model.Request, state.Outcome, error) {
	t.Helper()
	next, out, err := f.Compose(f.Scope, turntest.Model(nil), model.Request{
		Model: "m", System: "You are a $careful agent.", Messages: f.View(f.Path), Tools: f.tools, MaxOutputTokens: 100, Step: int(f.Active.Step()),
	})
	return next.Request, out, err
}

// answer gives the runtime an answer, and commits it as the session does.
func (f *fixture) answer(blocks ...*sessionv1.Block) *sessionv1.Message {
	resp := &model.Response{Blocks: blocks, StopReason: "end_turn", Usage: &sessionv1.Usage{InputTokens: 10, OutputTokens: 5}}
	if len(state.ToolUsesOf(blocks)) > 0 {
		resp.StopReason = "tool_use"
	}
	f.Answer(f.Scope, resp)
	for i, u := range state.ToolUsesOf(resp.Blocks) {
		u.CallId = state.CallID(f.Active.ID, f.Active.Step(), i)
	}
	return f.Say(sessionv1.Role_ROLE_ASSISTANT, resp.Blocks...)
}

func use(tool, arguments string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{Tool: tool, ArgumentsJson: arguments}}}
}

func resultBlock(callID, text string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_ToolResult{ToolResult: state.TextResult(callID, sessionv1.ToolOutcome_TOOL_OUTCOME_OK, text)}}
}

func thinking(text string) *sessionv1.Block {
	return &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: text}}, ProviderData: &sessionv1.ProviderData{Data: []byte("sealed")}}
}

// shown returns a conversation as lines, without the CLI's reminders.
func shown(messages []*sessionv1.Message) string {
	var b strings.Builder
	for _, m := range messages {
		if len(m.GetBlocks()) == 1 && strings.HasPrefix(m.GetBlocks()[0].GetContent().GetText().GetText(), "<system-reminder>") {
			continue
		}
		b.WriteString(strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_")) + ":")
		for _, block := range m.GetBlocks() {
			switch k := block.GetKind().(type) {
			case *sessionv1.Block_Content:
				t := k.Content.GetText().GetText()
				switch {
				case k.Content.GetText() == nil:
					t = "media"
				case strings.HasPrefix(t, "<system-reminder>"):
					continue
				}
				b.WriteString(" " + t)
			case *sessionv1.Block_Thinking:
				b.WriteString(" (" + k.Thinking.GetText() + string(block.GetProviderData().GetData()) + ")")
			case *sessionv1.Block_ToolUse:
				b.WriteString(" " + k.ToolUse.GetTool() + k.ToolUse.GetArgumentsJson())
			case *sessionv1.Block_ToolResult:
				b.WriteString(" =" + k.ToolResult.GetContent()[0].GetText().GetText())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// pixel returns an image.
func pixel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (f *fixture) want(t *testing.T, want string) {
	t.Helper()
	begun := time.Now()
	r := f.ask(t)
	if got := shown(r.Messages); got != want {
		t.Errorf("the model is asked\n%swant\n%s", got, want)
	}
	t.Logf("asked after %v", time.Since(begun).Round(time.Millisecond))
}

func TestATurnWithCallsAndAnotherTurn(t *testing.T) {
	f := begun(t, agent.Spec{}, Config{Program: program(t)})
	r := f.ask(t)
	if got := shown(r.Messages); got != "user: Hello.\n" {
		t.Errorf("the model is asked\n%s", got)
	}
	if !strings.Contains(r.System, "You are a $careful agent.") || len(r.Tools) != 2 || r.MaxOutputTokens != 100 {
		t.Errorf("the request is %+v", r)
	}
	m := f.answer(thinking("hm"), state.TextBlock("I call."), use("Echo", `{"text":"a"}`), use("Unknown", `{}`), use("mcp__files__read", `not JSON`))
	uses := state.ToolUses(m)
	f.Say(sessionv1.Role_ROLE_USER, resultBlock(uses[0].CallId, "A"), resultBlock(uses[1].CallId, "B"), resultBlock(uses[2].CallId, strings.Repeat("C", 1<<20)), state.TextBlock("A hint."))
	f.Active.Proto.Steps++
	f.Say(sessionv1.Role_ROLE_USER, state.TextBlock("/compact And @/etc/hostname"))
	before := "user: Hello.\nassistant: (hmsealed) I call. Echo{\"text\":\"a\"} Unknown{} mcp__files__readnot JSON\nuser: =A =B =" + strings.Repeat("C", 1<<20) + " A hint.\nuser: /compact And @/etc/hostname\n"
	f.want(t, before)
	f.want(t, before) // as for a second attempt
	f.answer(state.TextBlock("Done."))
	f.Active.Proto.Steps++
	f.Say(sessionv1.Role_ROLE_USER, state.TextBlock("/compact @/etc/hostname"), &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: "image/png", Data: pixel(t)}}}}})
	all := before + "assistant: Done.\nuser: /compact @/etc/hostname media\n"
	f.want(t, all)
	if n := f.local.started(); n != 1 {
		t.Errorf("%d CLIs were started", n)
	}
	f.answer(state.TextBlock("Yes."))
	f.Active.Proto.Steps++

	// Another replica goes on from the messages alone.
	f.Close()
	f.Runtime = New(f.config, f.local, f.Logger)
	f.Say(sessionv1.Role_ROLE_USER, state.TextBlock("/clear"))
	f.want(t, all+"assistant: Yes.\nuser: /clear\n")
	if w := f.Warnings(); len(w) > 0 {
		t.Error(w)
	}
}

func TestATurnGoesOnFromItsResultsAfterADeath(t *testing.T) {
	f := begun(t, agent.Spec{Extensions: agent.Extensions{ClaudeCode: agent.ClaudeCode{PresetPrompt: true}}}, Config{Program: program(t)})
	f.ask(t)
	m := f.answer(use("Echo", `{"text":"a"}`))
	f.local.relays[0].Process.Kill() //nolint:errcheck // it runs
	<-f.pool.waiting[f.Lease.Key].c.p.over
	f.Say(sessionv1.Role_ROLE_USER, resultBlock(state.ToolUses(m)[0].CallId, "A"))
	f.Active.Proto.Steps++
	f.want(t, "user: Hello.\nassistant: Echo{\"text\":\"a\"}\nuser: =A\n")
	if n := f.local.started(); n != 2 {
		t.Errorf("%d CLIs were started", n)
	}
}

func TestAProgramThatCannotBeUsed(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "claude")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct{ program, reason, text string }{
		"missing":         {"/nonexistent/claude", "RUNTIME_UNAVAILABLE", "does not exist"},
		"too old":         {script(`echo '{"type":"control_response","response":{"subtype":"success","response":{"claude_code_version":"1.0.9"}}}'; exec cat >/dev/null`), "RUNTIME_UNAVAILABLE", "1.0.9"},
		"too old by far":  {script(`if [ "$1" = --version ]; then echo "2.1.249 (Claude Code)"; exit; fi; echo "error: unknown option" >&2; exit 1`), "RUNTIME_UNAVAILABLE", "Claude Code 2.1.249, which is older than 2.1.250"},
		"of another form": {script(`if [ "$1" = --version ]; then echo unknown; exit; fi; echo a last word >&2; exit 3`), "RUNTIME_FAILED", "a last word"},
		"odd version":     {script(`if [ "$1" = --version ]; then head -c 100000 /dev/zero; exit; fi; echo a last word >&2; exit 3`), "RUNTIME_FAILED", "a last word"},
		"dies":            {script("echo a last word >&2; exit 3"), "RUNTIME_FAILED", "a last word"},
		"floods":          {script("exec yes no-JSON"), "RUNTIME_FAILED", "no message of its protocol"},
		"refuses":         {script(`echo '{"type":"result","is_error":true,"errors":["No conversation"]}'; exec cat >/dev/null`), "RUNTIME_FAILED", "No conversation"},
	} {
		t.Run(name, func(t *testing.T) {
			f := begun(t, agent.Spec{}, Config{Program: c.program})
			_, out, err := f.try(t)
			if err != nil || out.End == nil || out.End.Error.GetReason() != c.reason || !strings.Contains(out.End.Error.GetMessage(), c.text) {
				t.Errorf("%v, %v", err, out.End)
			}
		})
	}
}

func TestWhichVersionsAreTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"1.9.999": true, "2.0.0": true, "2.1.9": true, "2.1.197": true, "2.1.249": true, "2.1.250": false, "2.1.329": false, "2.2.0": false, "10.0.1": false, "odd": false, "2": false,
	} {
		if got := tooOld(version); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

func TestAnInterruptEndsTheWaitForTheCLI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec cat >/dev/null\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := begun(t, agent.Spec{}, Config{Program: path})
	ctx, cancel := context.WithCancelCause(f.Scope)
	f.Scope = f.With(ctx)
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("interrupted")) })
	if _, out, err := f.try(t); err != nil || !out.Stopped {
		t.Errorf("%v, %+v", err, out)
	}
}
