package attached

import (
	"context"
	"encoding/json"
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/turn/step"
)

// writer is a message that the process writes itself, as a model's answer.
type writer struct {
	hub   *Hub
	hold  *holding
	asked *asked
	said  *sessionv1.AttachRequest // the first piece

	resumePoint []byte // of the message, when it is whole
}

// Stream implements model.Model. A message that is broken off begins again, with what Compose returns then.
func (w *writer) Stream(ctx context.Context, _ model.Request, emit func(model.Delta) error) (*model.Response, error) {
	m := message{emit: emit}
	resp, fault, err := w.receive(ctx, &m)
	if err != nil {
		return nil, err // of emit: it is the session's
	}
	if fault != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		w.hold.failure = fault
		w.hub.drop(ctx, w.hold, fault)
		return nil, &step.LostError{Why: fault.Error()}
	}
	return resp, nil
}

// receive takes the pieces until the message ends.
func (w *writer) receive(ctx context.Context, m *message) (_ *model.Response, fault, _ error) {
	for said := w.said; ; {
		switch k := said.GetKind().(type) {
		case *sessionv1.AttachRequest_Delta:
			if fault := checkDelta(k.Delta); fault != nil {
				return nil, fault, nil
			}
			if err := m.add(k.Delta); err != nil {
				return nil, nil, err
			}
		case *sessionv1.AttachRequest_Message:
			if fault := checkMessage(k.Message, len(m.blocks)); fault != nil {
				return nil, fault, nil
			}
			w.resumePoint = k.Message.ResumePoint
			resp, err := m.end(k.Message)
			return resp, nil, err
		default:
			return nil, &faultError{"kind", "a message has begun, by delta; only delta and message may follow"}, nil
		}
		next, err := w.hub.hear(ctx, w.hold.p, w.asked)
		if err != nil {
			return nil, err, nil
		}
		said = next
	}
}

// checkDelta bounds a piece.
func checkDelta(d *sessionv1.RuntimeDelta) error {
	field, n := "delta.text", len(d.GetText())
	if d.GetThinking() != "" {
		field, n = "delta.thinking", len(d.GetThinking())
	}
	if n > maxDelta {
		return &faultError{field, fmt.Sprintf("it has %d bytes, and %d are allowed; send several pieces", n, maxDelta)}
	}
	return nil
}

// checkMessage checks the end of a message that has this many blocks.
func checkMessage(m *sessionv1.RuntimeMessage, blocks int) error {
	if blocks == 0 && len(m.Calls) == 0 {
		return &faultError{"message", "it has neither text nor calls; send end to end the turn without a message"}
	}
	for i, c := range m.Calls {
		if c.GetTool() == "" {
			return &faultError{fmt.Sprintf("message.calls[%d].tool", i), "it names no tool"}
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.GetArgumentsJson()), &object); err != nil || object == nil {
			return &faultError{fmt.Sprintf("message.calls[%d].arguments_json", i), "it is no JSON object"}
		}
	}
	return nil
}

// message puts the pieces together.
type message struct {
	emit   func(model.Delta) error
	blocks []*sessionv1.Block
	open   bool // the last block may grow
	kind   model.DeltaKind
}

// add adds a piece. A piece of the other kind begins another block.
func (m *message) add(d *sessionv1.RuntimeDelta) error {
	kind, text := model.TextStart, d.GetText()
	if _, ok := d.GetKind().(*sessionv1.RuntimeDelta_Thinking); ok {
		kind, text = model.ThinkingStart, d.GetThinking()
	}
	if text == "" {
		return nil
	}
	if m.open && m.kind != kind {
		if err := m.close(); err != nil {
			return err
		}
	}
	if !m.open {
		if err := m.begin(kind); err != nil {
			return err
		}
	}
	if kind == model.TextStart {
		m.last().GetContent().GetText().Text += text
	} else {
		m.last().GetThinking().Text += text
	}
	return m.emit(model.Delta{Kind: kind + 1, Block: len(m.blocks) - 1, Text: text})
}

func (m *message) last() *sessionv1.Block { return m.blocks[len(m.blocks)-1] }

func (m *message) begin(kind model.DeltaKind) error {
	b := state.TextBlock("")
	if kind == model.ThinkingStart {
		b = &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{}}}
	}
	m.blocks, m.open, m.kind = append(m.blocks, b), true, kind
	return m.emit(model.Delta{Kind: kind, Block: len(m.blocks) - 1})
}

func (m *message) close() error {
	if !m.open {
		return nil
	}
	m.open = false
	return m.emit(model.Delta{Kind: m.kind + 2, Block: len(m.blocks) - 1})
}

// end adds the calls.
func (m *message) end(r *sessionv1.RuntimeMessage) (*model.Response, error) {
	if err := m.close(); err != nil {
		return nil, err
	}
	resp := &model.Response{StopReason: "end_turn", Usage: r.Usage}
	for _, c := range r.Calls {
		resp.StopReason = "tool_use"
		m.blocks = append(m.blocks, &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{Tool: c.Tool, ArgumentsJson: c.ArgumentsJson}}})
		for _, d := range []model.Delta{{Kind: model.ToolUseStart, ToolName: c.Tool}, {Kind: model.ToolUseDelta, Text: c.ArgumentsJson}, {Kind: model.ToolUseEnd}} {
			d.Block = len(m.blocks) - 1
			if err := m.emit(d); err != nil {
				return nil, err
			}
		}
	}
	resp.Blocks = m.blocks
	return resp, nil
}
