package modelproxy

import (
	"encoding/json"

	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/anthropic"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
	"github.com/fairlead/fairlead/services/session/internal/modelproxy/dialog"
)

// An entry's settings hold where the client says nothing. Thinking is such a setting in a mode alone: elsewhere the
// client decides whether the model thinks.

// limited reports whether the entry's limits hold for a request that is passed on: the name stands for more than the
// model.
func (c *call) limited() bool { return c.entry.Own || c.entry.Mode() != "" }

// has reports whether the request has one of the members.
func (c *call) has(names ...string) bool {
	for _, n := range names {
		if raw := c.object.Raw(n); len(raw) > 0 && string(raw) != "null" {
			return true
		}
	}
	return false
}

// setUp gives a request that is translated the entry's settings.
func (c *call) setUp(r *model.Request, wish dialog.Thinking) {
	switch {
	case wish.On && wish.Tokens > 0:
		r.ThinkingTokens = min(wish.Tokens, c.entry.ThinkingTokens)
	case wish.On, c.entry.Mode() != "" && r.Wishes.Effort == "" && !c.has("thinking"):
		r.ThinkingTokens = c.entry.ThinkingTokens
	default:
		r.ThinkingTokens = 0
	}
	thinks := c.entry.Kind == catalog.KindAnthropic && r.ThinkingTokens > 0
	if r.Temperature == nil && r.TopP == nil && !thinks {
		r.Temperature, r.TopP = c.entry.Sampling()
	}
}

// applySettings gives a request that is passed on the entry's settings. most bounds its answer.
func (c *call) applySettings(most int64) {
	thinks := false
	switch c.route.Operation {
	case modelapi.Messages:
		thinks = c.think(most) || c.r.Header.Get("Anthropic-Version") == anthropic.Version2026
	case modelapi.ChatCompletions:
		if effort := c.entry.ReasoningEffort; effort != "" && !c.has("reasoning_effort") {
			c.object.Set("reasoning_effort", effort)
		}
	default:
		c.reason()
	}
	if thinks || c.has("temperature", "top_p", "top_k") {
		return
	}
	temperature, topP := c.entry.Sampling()
	if temperature != nil {
		c.object.Set("temperature", *temperature)
	}
	if topP != nil {
		c.object.Set("top_p", *topP)
	}
}

// think settles whether the model thinks, and how much, in Anthropic's API.
func (c *call) think(most int64) bool {
	if !c.has("thinking") {
		if c.entry.Mode() == "" {
			return false
		}
		t := anthropic.NewThinking(c.entry.ThinkingTokens, most, c.entry.Thinking == "adaptive")
		if t != nil {
			c.object.Set("thinking", t)
		}
		return t != nil
	}
	var t anthropic.Thinking
	if json.Unmarshal(c.object.Raw("thinking"), &t) != nil || t.Type != "enabled" {
		return t.Type != "disabled"
	}
	if limit := c.entry.ThinkingTokens; c.limited() && limit > 0 && limit < t.Budget {
		less := anthropic.NewThinking(limit, most, false)
		if less == nil { // the answer has no room for it
			less = &anthropic.Thinking{Type: "disabled"}
		}
		c.object.Set("thinking", less)
	}
	return true
}

// reason sets how much the model reasons in the Responses API.
func (c *call) reason() {
	if c.entry.ReasoningEffort == "" {
		return
	}
	fields := map[string]json.RawMessage{}
	if c.has("reasoning") && json.Unmarshal(c.object.Raw("reasoning"), &fields) != nil || len(fields["effort"]) > 0 {
		return // the provider says what is wrong
	}
	if effort, err := json.Marshal(c.entry.ReasoningEffort); err == nil {
		fields["effort"] = effort
		c.object.Set("reasoning", fields)
	}
}
