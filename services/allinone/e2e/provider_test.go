package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// providers are the kinds of real models, each on a loopback server that speaks
// its wire format.
func providers(t *testing.T, test func(t *testing.T, serve func(modeltest.Script) []string)) {
	t.Run("anthropic", func(t *testing.T) {
		test(t, func(script modeltest.Script) []string {
			s := modeltest.Anthropic(t, script)
			return []string{"FAIRLEAD_MODEL=anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY=" + modeltest.Key, "ANTHROPIC_BASE_URL=" + s.URL}
		})
	})
	t.Run("openai", func(t *testing.T) {
		test(t, func(script modeltest.Script) []string {
			s := modeltest.OpenAI(t, script)
			return []string{"FAIRLEAD_MODEL=openai:gpt-4.1", "OPENAI_API_KEY=" + modeltest.Key, "OPENAI_BASE_URL=" + s.URL}
		})
	})
}

// answers is a turn with a tool call, an overloaded provider and a stream that
// breaks midway.
func answers() modeltest.Script {
	return modeltest.Sequence(
		modeltest.Step{Status: 529, ErrorType: "overloaded_error", ErrorMessage: "Overloaded", Header: map[string]string{"retry-after": "0.05"}},
		modeltest.Step{Text: []string{"I ", "break "}, After: 2, Break: modeltest.Cut},
		modeltest.Step{Text: []string{"I run ", "it."}, Calls: []modeltest.Call{{ID: "call_1", Name: "Bash", Input: `{"command":"echo $((6*7))"}`}}},
		modeltest.Step{Text: []string{"It is ", "42."}, Usage: modeltest.Usage{Input: 50, Output: 7}},
	)
}

func TestRealProvidersOverREST(t *testing.T) {
	t.Parallel()
	providers(t, func(t *testing.T, serve func(modeltest.Script) []string) {
		s := start(t, options{env: serve(answers())})
		frames := s.turn(t, s.session(t, "coder"), "go")
		if got := last(t, frames, "COMPLETE").field("turnFinished", "finalText"); got != "It is 42." {
			t.Errorf("the final text is %q", got)
		}
		if got := results(frames); len(got) != 1 || !strings.HasPrefix(got[0], "Bash OK 42") {
			t.Errorf("the results are %q", got)
		}
		if names := events(frames); !strings.Contains(names, "warning") || !strings.Contains(names, "step.restarted") {
			t.Errorf("no retry and restart in %s", names)
		}
	})
}

func TestRealProvidersOverGRPC(t *testing.T) {
	t.Parallel()
	providers(t, func(t *testing.T, serve func(modeltest.Script) []string) {
		s := start(t, options{four: true, env: serve(answers())})
		sessions := sessionv1.NewSessionServiceClient(s.dial(t, s.grpc))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		created, err := sessions.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "coder"}})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := sessions.RunTurn(ctx, &sessionv1.RunTurnRequest{Parent: created.Session.Name, Text: "go"})
		if err != nil {
			t.Fatal(err)
		}
		var end *sessionv1.TurnFinished
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if f := resp.GetEvent().GetTurnFinished(); f != nil {
				end = f
			}
		}
		if end.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE || end.GetFinalText() != "It is 42." {
			t.Errorf("the turn ended %v", end)
		}
		if end.GetUsage().GetOutputTokens() == 0 || end.GetUsage().GetCostNanoUsd() == 0 {
			t.Errorf("usage is %v", end.GetUsage())
		}
	})
}

func TestRealProvidersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	providers(t, func(t *testing.T, serve func(modeltest.Script) []string) {
		out, _, code := fairlead(t, serve(answers()), "run", "go")
		if code != 0 || !strings.Contains(out, "It is 42.") || !strings.Contains(out, "Bash") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

func TestARefusedKeyIsAClearFailure(t *testing.T) {
	t.Parallel()
	providers(t, func(t *testing.T, serve func(modeltest.Script) []string) {
		env := serve(answers())
		for i := range env {
			env[i] = strings.Replace(env[i], modeltest.Key, "wrong-key-77", 1)
		}
		s := start(t, options{env: env})
		frames := s.turn(t, s.session(t, "coder"), "go")
		f := last(t, frames, "FAILED")
		if f.field("turnFinished", "error", "reason") != "MODEL_AUTHENTICATION" || strings.Contains(f.data, "wrong-key") {
			t.Errorf("it failed with %s", f.data)
		}
		out, errs, code := fairlead(t, env, "run", "go")
		if code != 1 || strings.Contains(out+errs, "wrong-key") {
			t.Errorf("exit code %d: %s %s", code, out, errs)
		}
	})
}

// fairlead runs the command line with an embedded server.
func fairlead(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "fairlead"), args...)
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + sandboxDir(t)}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if t.Failed() || err != nil {
		t.Logf("stderr: %s", errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (s *system) dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestTheCommandLineListsWhatItRan(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	server := "FAIRLEAD_SERVER=" + s.grpc
	out, _, code := fairlead(t, []string{server}, "run", "--json", "hello there")
	if code != 0 || !strings.Contains(out, `"turnFinished"`) {
		t.Fatalf("run: exit code %d: %s", code, out)
	}
	out, _, code = fairlead(t, []string{server}, "sessions", "list", "--json")
	if code != 0 || !strings.Contains(out, "sessions/") {
		t.Errorf("list: exit code %d: %s", code, out)
	}
	r := s.call(t, http.MethodGet, "/v1/sessions", "")
	_, rest, _ := strings.Cut(r.body, `"sessions/`)
	id, _, _ := strings.Cut(rest, `"`)
	out, _, code = fairlead(t, []string{server}, "sessions", "show", id)
	if code != 0 || !strings.Contains(out, "You said hello there") {
		t.Errorf("show: exit code %d: %s", code, out)
	}
	out, _, code = fairlead(t, []string{server}, "sessions", "events", id)
	if code != 0 || !strings.Contains(out, "turn.finished") {
		t.Errorf("events: exit code %d: %s", code, out)
	}
	if _, errs, code := fairlead(t, []string{server}, "sessions", "show", "nothing"); code == 0 || !strings.Contains(errs, "There is no session") {
		t.Errorf("a session that is not there: exit code %d: %s", code, errs)
	}
}

func TestChatShowsWhatTheAgentSaysFirst(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	if out, _, code := fairlead(t, []string{"FAIRLEAD_SERVER=" + s.grpc}, "chat", "--agent", "assistant"); code != 0 || !strings.Contains(out, "Hello!") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
