package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

// proxied calls a model through the proxy, and returns the status and the body.
func (f *fixture) proxied(ctx context.Context, model, text string) (int32, string, error) {
	stream, err := sessionv1.NewModelProxyServiceClient(f.conn).CallModel(ctx, &sessionv1.CallModelRequest{
		Method: http.MethodPost, Path: "/openai/v1/chat/completions",
		Body: fmt.Appendf(nil, `{"model":%q,"stream":true,"messages":[{"role":"user","content":%q}]}`, model, text),
	})
	if err != nil {
		return 0, "", err
	}
	var code int32
	var body strings.Builder
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return code, body.String(), nil
		}
		if err != nil {
			return 0, "", err
		}
		if h := piece.GetHead(); h != nil {
			code = h.Status
		}
		body.Write(piece.GetData())
	}
}

// askedFor is the bound on the answer in the newest request with a text.
func askedFor(t *testing.T, wire *modeltest.Server, text string) (most any) {
	t.Helper()
	for _, r := range wire.Requests() {
		if strings.Contains(string(r.Raw), text) {
			for _, field := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
				if v, ok := r.Body[field]; ok {
					most = v
				}
			}
		}
	}
	return most
}

// While turns and calls through the proxy run, a change of an entry breaks none of them, and the next ones go by it.
func TestTheNextCallGoesByAChangedModel(t *testing.T) {
	t.Parallel()
	wires(t, func(t *testing.T, play func(...modeltest.Step) (*modeltest.Server, func(*session.Config))) {
		wire, change := play(modeltest.Step{Text: []string{"done"}})
		f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
		ctx := t.Context()
		write := func(version int32, most int64) error {
			_, err := f.models().UpdateModel(ctx, &sessionv1.UpdateModelRequest{Name: "models/tenant:quick", ExpectedVersion: version, Spec: &sessionv1.ModelSpec{Target: "wire:small", MaxOutputTokens: most}})
			return err
		}
		if _, err := f.models().CreateModel(ctx, &sessionv1.CreateModelRequest{ModelId: "quick", Spec: &sessionv1.ModelSpec{Target: "wire:small"}}); err != nil {
			t.Fatal(err)
		}
		spec := fixer(3)
		spec.Model = "tenant:quick"
		f.createAgent(ctx, t, "fixer", spec)
		made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "fixer"}})
		if err != nil {
			t.Fatal(err)
		}
		busy, stop := context.WithCancel(ctx)
		var load sync.WaitGroup
		defer load.Wait()
		defer stop()
		for range 2 {
			load.Go(func() {
				for busy.Err() == nil {
					if code, body, err := f.proxied(ctx, "tenant:quick", "load"); err != nil || code != http.StatusOK {
						t.Errorf("a call beside the changes: %d %s %v", code, body, err)
						return
					}
				}
			})
		}
		for n := range int64(4) {
			most := 2000 + n
			if err := write(int32(n)+1, most); err != nil {
				t.Fatal(err)
			}
			call, turn := fmt.Sprintf("call %d.", n), fmt.Sprintf("turn %d.", n)
			if code, body, err := f.proxied(ctx, "tenant:quick", call); err != nil || code != http.StatusOK {
				t.Fatalf("%d %s %v", code, body, err)
			}
			if end := lastOf(f.turn(ctx, t, made.Session.Name, turn)); end.GetState() != complete {
				t.Fatalf("the turn ends as %v", end)
			}
			for _, text := range []string{call, turn} {
				if got := askedFor(t, wire, text); got != float64(most) {
					t.Errorf("%s asks for %v tokens, want %d", text, got, most)
				}
			}
		}
		stop()
		load.Wait()
		if _, err := f.models().DeleteModel(ctx, &sessionv1.DeleteModelRequest{Name: "models/tenant:quick"}); err != nil {
			t.Fatal(err)
		}
		if code, body, err := f.proxied(ctx, "tenant:quick", "late"); err != nil || code != http.StatusNotFound || !strings.Contains(body, `"code":"model_not_found"`) {
			t.Errorf("a call of a deleted model: %d %s %v", code, body, err)
		}
		if end := lastOf(f.turn(ctx, t, made.Session.Name, "late")); end.GetState() != sessionv1.TurnState_TURN_STATE_FAILED {
			t.Errorf("a turn of a deleted model ends as %v", end)
		}
		if askedFor(t, wire, "late") != nil {
			t.Error("a deleted model was asked")
		}
	})
}
