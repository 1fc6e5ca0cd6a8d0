package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// modelsCommand lists models and makes the tenant's own entries.
type modelsCommand struct {
	List   listModelsCommand  `cmd:"" help:"List the models, and which of them can be used."`
	Get    getModelCommand    `cmd:"" help:"Show a model."`
	Add    addModelCommand    `cmd:"" help:"Give a model a name of the tenant's own, and perhaps narrower limits."`
	Delete deleteModelCommand `cmd:"" help:"Delete an own entry."`
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

// listModelsCommand lists models.
type listModelsCommand struct {
	JSON bool `name:"json" help:"Print one JSON model per line."`
	target
}

// Run lists models.
func (c listModelsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Model
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.models.ListModels(ctx, &sessionv1.ListModelsRequest{PageSize: size, PageToken: token})
			all = append(all, resp.GetModels()...)
			return len(resp.GetModels()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		rows := [][]string{{"MODEL", "CONTEXT", "ANSWER", "PRICE", "USABLE"}}
		for _, m := range all {
			rows = append(rows, []string{modelName(m), strconv.FormatInt(m.GetContextTokens(), 10), strconv.FormatInt(m.GetMaxOutputTokens(), 10), price(m), usable(m)})
		}
		return whole(s.out, rows)
	})
}

// modelOutput is how a command shows a model.
type modelOutput struct {
	JSON bool `name:"json" help:"Print the model as JSON."`
}

func (o modelOutput) print(w io.Writer, m *sessionv1.Model) error {
	if o.JSON {
		return printJSON(w, []*sessionv1.Model{m})
	}
	rows := [][]string{
		{"model", modelName(m)}, {"provider", m.GetProvider()}, {"usable", usable(m)},
		{"context", strconv.FormatInt(m.GetContextTokens(), 10)}, {"answer", strconv.FormatInt(m.GetMaxOutputTokens(), 10)},
		{"thinking", strconv.FormatInt(m.GetThinkingTokens(), 10)}, {"price", price(m)},
		{"modes", strings.Join(m.GetModes(), " ")}, {"fallbacks", strings.Join(m.GetFallbacks(), " ")},
	}
	if m.GetSpec() != nil {
		rows = append(rows, []string{"target", m.GetSpec().GetTarget()}, []string{"description", m.GetSpec().GetDescription()}, []string{"version", version32(m.GetVersion())})
	}
	return whole(w, rows)
}

// getModelCommand shows a model.
type getModelCommand struct {
	Model string `arg:"" help:"The model, as provider:model, or tenant:NAME for an own entry."`
	modelOutput
	target
}

// Run shows a model.
func (c getModelCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.models.GetModel(ctx, &sessionv1.GetModelRequest{Name: "models/" + strings.TrimPrefix(c.Model, "models/")})
		if err != nil {
			return terminal.Explained(err)
		}
		return c.print(s.out, resp.GetModel())
	})
}

// addModelCommand creates an own entry.
type addModelCommand struct {
	Name            string   `arg:"" help:"The entry's name; agents name it as tenant:NAME."`
	Target          string   `arg:"" help:"The model that answers, as provider:model, perhaps with a mode."`
	Description     string   `help:"What the entry is for."`
	ContextTokens   int64    `placeholder:"N" help:"The longest conversation, in tokens."`
	MaxOutputTokens int64    `placeholder:"N" help:"The longest answer, in tokens."`
	ThinkingTokens  int64    `placeholder:"N" help:"The most thinking before an answer, in tokens."`
	Temperature     *float64 `placeholder:"X" help:"How much the model varies its answers, from 0 to 2."`
	TopP            *float64 `placeholder:"X" help:"The part of the likeliest tokens that the model chooses from, from 0 to 1."`
	modelOutput
	target
}

// Run creates an own entry.
func (c addModelCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.CreateModelRequest{ModelId: strings.TrimPrefix(c.Name, "tenant:"), RequestId: id.New(), Spec: &sessionv1.ModelSpec{
		Target: c.Target, Description: c.Description, ContextTokens: c.ContextTokens, MaxOutputTokens: c.MaxOutputTokens, ThinkingTokens: c.ThinkingTokens,
		Temperature: c.Temperature, TopP: c.TopP,
	}}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var m *sessionv1.Model
		err := retry(ctx, func() error {
			resp, err := b.models.CreateModel(ctx, r)
			m = resp.GetModel()
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		return c.print(s.out, m)
	})
}

// deleteModelCommand deletes an own entry.
type deleteModelCommand struct {
	Model string `arg:"" help:"The entry, as tenant:NAME."`
	JSON  bool   `name:"json" help:"Print the deleted model as JSON."`
	target
}

// Run deletes an own entry.
func (c deleteModelCommand) Run(ctx context.Context, s stdio) error {
	name := "models/tenant:" + strings.TrimPrefix(strings.TrimPrefix(c.Model, "models/"), "tenant:")
	r := &sessionv1.DeleteModelRequest{Name: name, RequestId: id.New()}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		err := retry(ctx, func() error {
			_, err := b.models.DeleteModel(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, []proto.Message{&sessionv1.Model{Name: name}})
		}
		return whole(s.out, [][]string{{modelName(&sessionv1.Model{Name: name}), "deleted"}})
	})
}
