package openai

import (
	"encoding/json"
	"fmt"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// chunk is a piece of a stream. The SDK's own type lacks fields that compatible
// servers send.
type chunk struct {
	ID      string        `json:"id"`
	Choices []choice      `json:"choices"`
	Usage   *sdk.Usage    `json:"usage"`
	Error   *sdk.APIError `json:"error"`
}

type choice struct {
	Index int `json:"index"`
	Delta struct {
		Content          string  `json:"content"`
		Refusal          string  `json:"refusal"`
		ReasoningContent string  `json:"reasoning_content"`
		Reasoning        string  `json:"reasoning"`
		ToolCalls        []piece `json:"tool_calls"`
	} `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

// piece is a piece of a tool call, or a whole one.
type piece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// toldError is an error that the stream told instead of going on.
type toldError struct{ api *sdk.APIError }

func (e *toldError) Error() string { return e.api.Error() }

// chunk takes one piece of the stream in.
func (a *answer) chunk(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return a.malformed("a piece is not the JSON of a chunk")
	}
	if c.Error != nil {
		return &toldError{c.Error}
	}
	if c.ID != "" {
		a.id = c.ID
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 { // We ask for one answer.
			continue
		}
		if err := a.choice(ch); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) choice(ch choice) error {
	d := ch.Delta
	thought := d.ReasoningContent
	if thought == "" {
		thought = d.Reasoning
	}
	if err := a.say(model.ThinkingStart, thought); err != nil {
		return err
	}
	if err := a.say(model.TextStart, d.Content); err != nil {
		return err
	}
	if d.Refusal != "" {
		a.refused = true
		if err := a.say(model.TextStart, d.Refusal); err != nil {
			return err
		}
	}
	for _, p := range d.ToolCalls {
		a.find(p).take(p)
	}
	if ch.FinishReason != "" {
		a.finish = ch.FinishReason
	}
	return a.pump()
}

func (a *answer) malformed(what string) error {
	return &model.Error{Kind: model.Unavailable, Midway: true, Message: fmt.Sprintf("the stream of the model provider %s is malformed: %s", a.provider, what)}
}
