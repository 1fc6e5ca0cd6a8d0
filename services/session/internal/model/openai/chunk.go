package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// chunk is a piece of a stream, or a whole answer that a server sends instead. It
// accepts the variants of compatible servers.
type chunk struct {
	ID      text            `json:"id"`
	Object  text            `json:"object"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        transport.Count `json:"index"`
	Delta        *message        `json:"delta"`
	Message      *message        `json:"message"` // of a whole answer, or the answer so far
	FinishReason text            `json:"finish_reason"`
	Usage        json.RawMessage `json:"usage"` // some servers put it here
}

type message struct {
	Content          content           `json:"content"`
	Refusal          text              `json:"refusal"`
	ReasoningContent text              `json:"reasoning_content"`
	Reasoning        text              `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []piece           `json:"tool_calls"`
}

// piece is a piece of a tool call, or a whole one.
type piece struct {
	Index    *transport.Count `json:"index"`
	ID       text             `json:"id"`
	Function struct {
		Name      text `json:"name"`
		Arguments text `json:"arguments"` // an object at some servers
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`

	read bool
	same string // what canonical returned
}

// canonical returns the arguments in canonical form; empty if they are not one
// JSON object.
func (p *piece) canonical() string {
	if !p.read {
		p.read, p.same = true, canonical([]byte(p.Function.Arguments))
	}
	return p.same
}

// text is a string. Other values are their JSON; null and booleans are empty.
type text string

// UnmarshalJSON reads any value.
func (t *text) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null", "false", "true":
		return nil
	}
	if b[0] == '"' {
		if plain := b[1 : len(b)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) { // most are
			*t = text(plain)
			return nil
		}
		return json.Unmarshal(b, (*string)(t))
	}
	*t = text(bytes.ToValidUTF8(b, []byte("\ufffd")))
	return nil
}

// content is a string, or parts of text and thinking.
type content struct{ text, thinking string }

// UnmarshalJSON reads both forms.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		var t text
		err := t.UnmarshalJSON(b)
		c.text = string(t)
		return err
	}
	var parts []struct {
		Text     text    `json:"text"`
		Thinking content `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text += string(p.Text)
		c.thinking += p.Thinking.text
	}
	return nil
}

// usage counts tokens. Servers send it once, or send the sum so far repeatedly.
type usage struct {
	Prompt        transport.Count `json:"prompt_tokens"`
	Completion    transport.Count `json:"completion_tokens"`
	Total         transport.Count `json:"total_tokens"`
	PromptDetails struct {
		Cached transport.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning transport.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cached   transport.Count `json:"cached_tokens"`
	CacheHit transport.Count `json:"prompt_cache_hit_tokens"`
}

// add merges a later usage.
func (u *usage) add(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var v usage
	_ = json.Unmarshal(raw, &v) // a value of another form counts as absent
	u.Prompt.Later(v.Prompt)
	u.Completion.Later(v.Completion)
	u.Total.Later(v.Total)
	u.Cached.Later(max(v.Cached, v.CacheHit, v.PromptDetails.Cached))
	u.CompletionDetails.Reasoning.Later(v.CompletionDetails.Reasoning)
}

// failed reports whether a chunk may be an error.
func (c *chunk) failed() bool {
	e := string(bytes.TrimSpace(c.Error))
	return e != "" && e != "null" || strings.EqualFold(string(c.Object), "error") || c.Choices == nil && len(c.Usage) == 0
}
