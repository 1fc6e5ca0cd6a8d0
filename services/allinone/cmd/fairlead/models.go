package main

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// modelsCommand lists models and makes the tenant's own entries.
type modelsCommand struct {
	List   lists[listModels, *sessionv1.Model]                `cmd:"" help:"List the models, and which of them can be used."`
	Get    shows[getModel, *sessionv1.Model]                  `cmd:"" help:"Show a model."`
	Add    shows[addModel, *sessionv1.Model]                  `cmd:"" help:"Give a model a name of the tenant's own, and perhaps narrower limits."`
	Delete shows[deleteModel, *sessionv1.DeleteModelResponse] `cmd:"" help:"Delete an own entry."`
}

// usable tells people whether a model works.
func usable(m *sessionv1.Model) string {
	switch {
	case m.GetUnusable() != "":
		return "no: " + m.GetUnusable()
	case m.GetWarning() != "":
		return "yes: " + m.GetWarning()
	}
	return "yes"
}

func modelName(m *sessionv1.Model) string { return strings.TrimPrefix(m.GetName(), "models/") }

func price(m *sessionv1.Model) string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return f(m.GetInputPrice()) + " / " + f(m.GetOutputPrice())
}

type listModels struct {
	jsonList
	inFull
}

func (listModels) request() proto.Message { return &sessionv1.ListModelsRequest{} }

func (listModels) row(m *sessionv1.Model) [][]string {
	return [][]string{
		{"MODEL", modelName(m)}, {"CONTEXT", strconv.FormatInt(m.GetContextTokens(), 10)}, {"ANSWER", strconv.FormatInt(m.GetMaxOutputTokens(), 10)},
		{"PRICE", price(m)}, {"USABLE", usable(m)},
	}
}

// aModel is a command that shows a model.
type aModel struct{ jsonOne }

func (aModel) show(s stdio, m *sessionv1.Model) error {
	rows := [][]string{
		{"model", modelName(m)}, {"provider", m.GetProvider()}, {"usable", usable(m)},
		{"context", strconv.FormatInt(m.GetContextTokens(), 10)}, {"answer", strconv.FormatInt(m.GetMaxOutputTokens(), 10)},
		{"thinking", strconv.FormatInt(m.GetThinkingTokens(), 10)}, {"price", price(m)},
		{"modes", strings.Join(m.GetModes(), " ")}, {"fallbacks", strings.Join(m.GetFallbacks(), " ")},
	}
	if spec := m.GetSpec(); spec != nil {
		rows = append(rows, []string{"target", spec.GetTarget()}, []string{"description", spec.GetDescription()}, []string{"version", version32(m.GetVersion())})
	}
	return whole(s.out, rows)
}

type getModel struct {
	Model string `arg:"" help:"The model, as provider:model, or tenant:NAME for an own entry."`
	aModel
}

func (f getModel) request() proto.Message {
	return &sessionv1.GetModelRequest{Name: "models/" + strings.TrimPrefix(f.Model, "models/")}
}

type addModel struct {
	Name            string   `arg:"" help:"The entry's name; agents name it as tenant:NAME."`
	Target          string   `arg:"" help:"The model that answers, as provider:model, perhaps with a mode."`
	Description     string   `help:"What the entry is for."`
	ContextTokens   int64    `placeholder:"N" help:"The longest conversation, in tokens."`
	MaxOutputTokens int64    `placeholder:"N" help:"The longest answer, in tokens."`
	ThinkingTokens  int64    `placeholder:"N" help:"The most thinking before an answer, in tokens."`
	Temperature     *float64 `placeholder:"X" help:"How much the model varies its answers, from 0 to 2."`
	TopP            *float64 `placeholder:"X" help:"The part of the likeliest tokens that the model chooses from, from 0 to 1."`
	aModel
}

func (f addModel) request() proto.Message {
	return &sessionv1.CreateModelRequest{ModelId: strings.TrimPrefix(f.Name, "tenant:"), Spec: &sessionv1.ModelSpec{
		Target: f.Target, Description: f.Description, ContextTokens: f.ContextTokens, MaxOutputTokens: f.MaxOutputTokens, ThinkingTokens: f.ThinkingTokens,
		Temperature: f.Temperature, TopP: f.TopP,
	}}
}

type deleteModel struct {
	Model string `arg:"" help:"The entry, as tenant:NAME."`
	JSON  bool   `name:"json" help:"Print the deleted model as JSON."`
}

func (f deleteModel) name() string {
	return "models/tenant:" + strings.TrimPrefix(strings.TrimPrefix(f.Model, "models/"), "tenant:")
}

func (f deleteModel) request() proto.Message { return &sessionv1.DeleteModelRequest{Name: f.name()} }

func (f deleteModel) show(s stdio, _ *sessionv1.DeleteModelResponse) error {
	m := &sessionv1.Model{Name: f.name()}
	if f.JSON {
		return writeJSON(s.out, m)
	}
	return whole(s.out, [][]string{{modelName(m), "deleted"}})
}
