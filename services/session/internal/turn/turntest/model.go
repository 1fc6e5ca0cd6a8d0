package turntest

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// Answers is a model that gives one answer after the other. An answer is a text, a
// *model.Response or an error.
type Answers struct {
	Answers  []any
	Requests []model.Request
}

// Stream gives the next answer.
func (a *Answers) Stream(_ context.Context, r model.Request, emit func(model.Delta) error) (*model.Response, error) {
	a.Requests = append(a.Requests, r)
	answer := a.Answers[0]
	a.Answers = a.Answers[1:]
	switch answer := answer.(type) {
	case error:
		return nil, answer
	case *model.Response:
		return answer, nil
	default:
		text := answer.(string)
		for _, d := range []model.Delta{{Kind: model.TextStart}, {Kind: model.TextDelta, Text: text}, {Kind: model.TextEnd}} {
			if err := emit(d); err != nil {
				return nil, err
			}
		}
		return &model.Response{
			Blocks: []*sessionv1.Block{state.TextBlock(text)}, StopReason: "end_turn", Usage: &sessionv1.Usage{InputTokens: 100, OutputTokens: 10},
		}, nil
	}
}

// Model makes a model that costs nothing ready for requests.
func Model(m model.Model) state.Resolved {
	return state.Resolved{
		Model: m, Name: "m", Provider: "p", MaxOutputTokens: 1000,
		Cost: func(*sessionv1.Usage) int64 { return 0 }, Dearest: func(int64) (float64, float64) { return 0, 0 },
	}
}
