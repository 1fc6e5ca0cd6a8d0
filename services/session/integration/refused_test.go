package integration

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestARefusalForAnotherReasonWithholdsNothing(t *testing.T) {
	t.Parallel()
	for said, code := range map[string]int{
		"Invalid value for 'top_k'. See our documentation at https://example.com/images": http.StatusBadRequest,
		"not provisioned for your region":                                                http.StatusBadRequest,
		"model was retired. See the documentation":                                       http.StatusNotFound,
		"messages.1.content.0: text content blocks must be non-empty":                    http.StatusBadRequest,
		"text content blocks must be non-empty":                                          http.StatusBadRequest,
	} {
		for _, kind := range []string{"anthropic", "openai"} {
			t.Run(kind+", "+said, func(t *testing.T) {
				t.Parallel()
				wire, change := wired(t, kind, picky("fail now", said, code))
				f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
				ctx := t.Context()
				s := f.session(ctx, t)
				show := func(text string) *sessionv1.TurnFinished {
					return finished(t, f.runTurn(ctx, t, &sessionv1.RunTurnRequest{Parent: s, Text: text, Content: []*commonv1.Content{picture("image/png", png)}}, nil))
				}
				if end := show("look"); end.State != complete {
					t.Fatalf("the first turn ended %v", end)
				}
				if end := show("fail now"); end.State != sessionv1.TurnState_TURN_STATE_FAILED {
					t.Fatalf("the second turn ended %v", end)
				}
				for _, m := range f.messages(ctx, t, s) {
					for _, b := range m.Blocks {
						if len(b.Refusals) > 0 {
							t.Errorf("withheld: %v", b)
						}
					}
				}
				if n := len(wire.Requests()); n != 2 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
}

func TestAPictureThatOneModelRefusedIsShownToAnother(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString(png)
	shown := func(r modeltest.Request) bool { return strings.Contains(fmt.Sprint(r.Body["messages"]), encoded) }
	wire, change := wired(t, "openai", func(r modeltest.Request) modeltest.Step {
		if r.Body["model"] == "m" && shown(r) {
			return modeltest.Step{Status: http.StatusBadRequest, ErrorType: "invalid_request_error", ErrorMessage: "This model does not support image input"}
		}
		return modeltest.Step{Text: []string{"fine"}}
	})
	f := start(t, "fallback: {steps: [{text: [unused]}]}", change, func(c *session.Config) { c.Models.Models["wire:sees"] = c.Models.Models["wire:m"] })
	ctx := t.Context()
	s := f.session(ctx, t)
	r := &sessionv1.RunTurnRequest{Parent: s, Text: "look", Content: []*commonv1.Content{picture("image/png", png)}}
	if end := finished(t, f.runTurn(ctx, t, r, nil)); end.State != sessionv1.TurnState_TURN_STATE_FAILED {
		t.Fatalf("the turn of the model without eyes ended %v", end)
	}
	for _, next := range []struct {
		model string
		sees  bool
	}{{"wire:m", false}, {"wire:sees", true}, {"wire:m", false}} {
		f.config.Models.Model = next.model
		f.restart(t)
		if end := finished(t, f.turn(ctx, t, s, "go on")); end.State != complete {
			t.Errorf("%s: the turn ended %v", next.model, end)
		}
		requests := wire.Requests()
		if last := requests[len(requests)-1]; shown(last) != next.sees {
			t.Errorf("%s: shown the picture: %t", next.model, shown(last))
		}
	}
}
