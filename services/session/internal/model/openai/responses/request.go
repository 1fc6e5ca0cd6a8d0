package responses

import (
	"cmp"
	"encoding/json"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/openai/client"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
)

// minOutput is the least limit that the API accepts.
const minOutput = 16

// write returns the whole request. Tools and messages are not left to encoding/json: for
// ten thousand messages its reflection takes many times as long as this code.
func (m *Model) write(r model.Request, f form) (*input, error) {
	if len(r.Wishes.StopSequences) > 0 {
		return nil, errStop
	}
	c := prompt.New(r, m.own(r.Model, f))
	head, err := json.Marshal(m.head(r, c, f))
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	in := &input{conversation: c, buf: make([]byte, 0, len(head)+c.Size())}
	in.buf = append(in.buf, head[:len(head)-1]...)
	if err := in.tools(r.Tools); err != nil {
		return nil, err
	}
	in.buf = append(in.buf, `,"input":[`...)
	start := c.LoopStart()
	for i, msg := range c.Messages {
		if msg.Role != sessionv1.Role_ROLE_ASSISTANT {
			in.user(msg.Blocks)
			continue
		}
		in.assistant(msg.Blocks, m.cfg.Replay == ReplayAll || i >= start)
	}
	in.buf = append(in.buf, "]}"...)
	return in, nil
}

// head is a request in the API's form, without its tools and messages.
type head struct {
	Model           string    `json:"model"`
	Store           bool      `json:"store"`
	Stream          bool      `json:"stream"`
	MaxOutputTokens int64     `json:"max_output_tokens"`
	Temperature     *float64  `json:"temperature,omitempty"`
	TopP            *float64  `json:"top_p,omitempty"`
	Instructions    string    `json:"instructions,omitempty"`
	Include         []string  `json:"include,omitempty"`
	Reasoning       *thinking `json:"reasoning,omitempty"`
	wishes
}

type thinking struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

func (m *Model) head(r model.Request, c *prompt.Conversation, f form) head {
	limit := max(m.cfg.MaxOutputTokens, 1)
	if r.MaxOutputTokens > 0 {
		limit = min(r.MaxOutputTokens, limit)
	}
	h := head{Model: r.Model, Stream: true, MaxOutputTokens: max(limit, minOutput), Temperature: r.Temperature, TopP: r.TopP, Instructions: c.System, wishes: wishesOf(r)}
	if f&noEncrypted == 0 {
		h.Include = []string{"reasoning.encrypted_content"}
	}
	effort := cmp.Or(m.cfg.ReasoningEffort, client.Effort(r.Wishes.Effort))
	thinks := r.ThinkingTokens > 0 || effort != "" && effort != "none"
	if effort != "" {
		h.Reasoning = &thinking{Effort: effort}
	}
	if thinks && f&noSummary == 0 {
		h.Reasoning = &thinking{Effort: effort, Summary: "auto"}
	}
	return h
}
