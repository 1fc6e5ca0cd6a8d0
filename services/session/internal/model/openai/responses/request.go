package responses

import (
	"fmt"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// minOutput is the least limit that the API accepts.
const minOutput = 16

// write returns the whole request. Tools and messages are not left to the SDK: for
// ten thousand messages its reflection takes many times as long as this code.
func (m *Model) write(r model.Request, f form) (*input, error) {
	if len(r.Wishes.StopSequences) > 0 {
		return nil, errStop
	}
	c := wire.NewConversation(r, m.own(r.Model, f))
	head, err := m.head(r, c, f).MarshalJSON()
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

// head returns the request without its tools and messages.
func (m *Model) head(r model.Request, c *wire.Conversation, f form) sdk.ResponseNewParams {
	limit := max(m.cfg.MaxOutputTokens, 1)
	if r.MaxOutputTokens > 0 {
		limit = min(r.MaxOutputTokens, limit)
	}
	p := sdk.ResponseNewParams{Model: r.Model, Store: param.NewOpt(false), MaxOutputTokens: param.NewOpt(max(limit, minOutput))}
	if r.Temperature != nil {
		p.Temperature = param.NewOpt(*r.Temperature)
	}
	if r.TopP != nil {
		p.TopP = param.NewOpt(*r.TopP)
	}
	if r.Temperature != nil {
		p.Temperature = param.NewOpt(*r.Temperature)
	}
	if r.TopP != nil {
		p.TopP = param.NewOpt(*r.TopP)
	}
	p.SetExtraFields(m.extra(r))
	if c.System != "" {
		p.Instructions = param.NewOpt(c.System)
	}
	if f&noEncrypted == 0 {
		p.Include = []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}
	}
	effort := m.effort(r)
	p.Reasoning.Effort = shared.ReasoningEffort(effort)
	thinks := r.ThinkingTokens > 0 || effort != "" && effort != "none"
	if thinks && f&noSummary == 0 {
		p.Reasoning.Summary = shared.ReasoningSummaryAuto
	}
	return p
}
