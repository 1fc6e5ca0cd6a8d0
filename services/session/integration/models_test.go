package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
)

func (f *fixture) models() sessionv1.ModelServiceClient {
	return sessionv1.NewModelServiceClient(f.conn)
}

// model creates an own entry and returns its name.
func (f *fixture) model(ctx context.Context, t *testing.T, id string) string {
	t.Helper()
	made, err := f.models().CreateModel(ctx, &sessionv1.CreateModelRequest{ModelId: id, Spec: &sessionv1.ModelSpec{Target: "openai:gpt-5.5"}})
	if err != nil {
		t.Fatal(err)
	}
	return made.Model.Name
}

func TestModelsAreListedInPages(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	own := f.model(ctx, t, "fast")
	var names []string
	for token := ""; ; {
		resp, err := f.models().ListModels(ctx, &sessionv1.ListModelsRequest{PageSize: 5, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range resp.Models {
			names = append(names, m.Name)
			if m.Provider == "anthropic" && !strings.Contains(m.Unusable, "ANTHROPIC_API_KEY") {
				t.Errorf("%s is unusable because %q", m.Name, m.Unusable)
			}
		}
		if token = resp.NextPageToken; token == "" {
			break
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) || !slices.Contains(names, own) || !slices.Contains(names, "models/openai:gpt-5.5") {
		t.Errorf("listed %v", names)
	}
	if _, err := f.models().GetModel(ctx, &sessionv1.GetModelRequest{Name: "models/nowhere:x"}); status.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
	unlisted, err := f.models().GetModel(ctx, &sessionv1.GetModelRequest{Name: "models/openai:org/new-1"})
	if err != nil || unlisted.Model.Warning == "" || unlisted.Model.InputPrice != 0 {
		t.Errorf("got %v, %v", unlisted, err)
	}
	can, err := sessionv1.NewAgentServiceClient(f.conn).GetCapabilities(ctx, &sessionv1.GetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	notes := map[string]*sessionv1.ModelCapabilities{}
	for _, n := range can.ModelNotes {
		notes[n.Name] = n
	}
	if notes["openai:org/new-1"] != nil { // a request named it, and no agent has it
		t.Error("a model that a request named is in the capabilities")
	}
	if notes["anthropic:claude-opus-5"].GetUnusable() == "" {
		t.Errorf("the notes are %v", can.ModelNotes)
	}
}

func TestAnOwnModelDrivesATurnOfItsTenantAlone(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	create := func(ctx context.Context, spec *sessionv1.ModelSpec) error {
		_, err := f.models().CreateModel(ctx, &sessionv1.CreateModelRequest{ModelId: "quick", Spec: spec})
		return err
	}
	for field, spec := range map[string]*sessionv1.ModelSpec{
		"spec.target":            {Target: "nowhere:x"},
		"spec.max_output_tokens": {Target: "play:test", MaxOutputTokens: 1 << 40},
		"spec.temperature":       {Target: "anthropic:claude-opus-5", ThinkingTokens: 2000, Temperature: new(float64)},
	} {
		if err := create(ctx, spec); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if err := create(ctx, &sessionv1.ModelSpec{Target: "tenant:quick"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an entry that leads to an entry: %v", err)
	}
	if err := create(ctx, &sessionv1.ModelSpec{Target: "play:test", MaxOutputTokens: 100}); err != nil {
		t.Fatal(err)
	}
	spec := fixer(3)
	spec.Model = "tenant:quick"
	f.createAgent(ctx, t, "fixer", spec)
	made, err := f.CreateSession(ctx, &sessionv1.CreateSessionRequest{Session: &sessionv1.Session{Agent: "fixer"}})
	if err != nil {
		t.Fatal(err)
	}
	if end := lastOf(f.turn(ctx, t, made.Session.Name, "hello")); end.GetState() != sessionv1.TurnState_TURN_STATE_COMPLETE {
		t.Errorf("the turn ends as %v", end)
	}
	elsewhere := principal.With(ctx, principal.Principal{Tenant: "other", User: "ann", Role: principal.RoleAdmin})
	if _, err := f.models().GetModel(elsewhere, &sessionv1.GetModelRequest{Name: "models/tenant:quick"}); status.Code(err) != codes.NotFound {
		t.Errorf("another tenant gets %v", err)
	}
	updated, err := f.models().UpdateModel(ctx, &sessionv1.UpdateModelRequest{Name: "models/tenant:quick", ExpectedVersion: 1, Spec: &sessionv1.ModelSpec{Target: "play:test", Description: "shorter", MaxOutputTokens: 50}})
	if err != nil || updated.Model.Version != 2 || updated.Model.MaxOutputTokens != 50 {
		t.Errorf("got %v, %v", updated, err)
	}
	if _, err := f.models().UpdateModel(ctx, &sessionv1.UpdateModelRequest{Name: "models/tenant:quick", ExpectedVersion: 1, Spec: &sessionv1.ModelSpec{Target: "play:test"}}); status.Code(err) != codes.Aborted {
		t.Errorf("an old version: %v", err)
	}
	if _, err := f.models().DeleteModel(ctx, &sessionv1.DeleteModelRequest{Name: "models/tenant:quick"}); err != nil {
		t.Error(err)
	}
	if _, err := f.models().GetModel(ctx, &sessionv1.GetModelRequest{Name: "models/tenant:quick"}); status.Code(err) != codes.NotFound {
		t.Errorf("a deleted one: %v", err)
	}
	if end := lastOf(f.turn(ctx, t, made.Session.Name, "hello")); end.GetState() != sessionv1.TurnState_TURN_STATE_FAILED || !strings.Contains(end.GetError().GetMessage(), "tenant:quick") {
		t.Errorf("the turn of a deleted model ends as %v", end)
	}
}

// lastOf returns how a turn ended.
func lastOf(events []*sessionv1.Event) *sessionv1.TurnFinished {
	return events[len(events)-1].GetTurnFinished()
}
