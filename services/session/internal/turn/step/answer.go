package step

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/store"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

var errAnswerTooLong = errors.New("the answer is longer than the limit")

// partialAnswer turns the pieces of a model's answer into events, and keeps
// enough to leave a well-formed transcript when the answer is cut off.
type partialAnswer struct {
	sc       state.Scope
	step     int32
	maxBytes int64
	bytes    int64
	calls    int // tool uses begun
	callID   string
	tool     string
	args     []byte
	held     []*sessionv1.Event // the start of a text, until its first delta comes
	open     *sessionv1.Event   // ends the open block
	begun    []*sessionv1.ToolCallStarted
	texts    []*strings.Builder
	one      [1]model.Delta  // what visible most often returns
	header   *verdict.Filter // of the first text while it comes; nil: nothing is held back
}

func newAnswer(sc state.Scope, maxBytes int64) *partialAnswer {
	return &partialAnswer{sc: sc, step: sc.Active.Step(), maxBytes: maxBytes}
}

// add appends the event of one piece. The start of a text is appended with the
// piece after it: a commit of its own would delay the first token.
//
// Once a piece counts for the transcript, the end of ctx no longer keeps it out of the log: both
// must have what people saw.
func (a *partialAnswer) add(ctx context.Context, d model.Delta) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.bytes += int64(len(d.Text)); a.bytes > a.maxBytes {
		return errAnswerTooLong
	}
	var write store.Write
	for _, d := range a.visible(d) {
		e, err := a.event(d)
		if err != nil {
			return err
		}
		write.Events = append(write.Events, a.sc.Event(a.step, e))
	}
	if len(write.Events) == 0 {
		return nil
	}
	write.Events = append(a.held, write.Events...)
	if a.held = nil; d.Kind == model.TextStart {
		a.held = write.Events
		return nil
	}
	return a.sc.Append(write) // the end of ctx must not keep it out
}

// visible returns what people see of a piece: everything except the header of
// the first text. It holds text back as long as that may be a header.
func (a *partialAnswer) visible(d model.Delta) []model.Delta {
	switch {
	case d.Kind == model.TextStart && a.sc.Spec.Heads() && len(a.texts) == 0:
		a.header = &verdict.Filter{}
	case d.Kind == model.TextDelta && a.header != nil:
		if d.Text = a.header.Add(d.Text); d.Text == "" {
			return nil
		}
	case d.Kind == model.TextEnd && a.header != nil:
		rest := a.header.Close()
		a.header = nil
		if rest != "" {
			return []model.Delta{{Kind: model.TextDelta, Block: d.Block, Text: rest}, d}
		}
	}
	return append(a.one[:0], d)
}

func (a *partialAnswer) event(d model.Delta) (*sessionv1.Event, error) {
	block := int32(d.Block)
	switch d.Kind {
	case model.TextStart:
		a.texts = append(a.texts, &strings.Builder{})
		a.open = &sessionv1.Event{Body: &sessionv1.Event_TextFinished{TextFinished: &sessionv1.TextFinished{Block: block}}}
		return &sessionv1.Event{Body: &sessionv1.Event_TextStarted{TextStarted: &sessionv1.TextStarted{Block: block}}}, nil
	case model.TextDelta:
		if len(a.texts) > 0 {
			a.texts[len(a.texts)-1].WriteString(d.Text)
		}
		return textDelta(block, d.Text), nil
	case model.ThinkingStart:
		a.open = &sessionv1.Event{Body: &sessionv1.Event_ThinkingFinished{ThinkingFinished: &sessionv1.ThinkingFinished{Block: block}}}
		return &sessionv1.Event{Body: &sessionv1.Event_ThinkingStarted{ThinkingStarted: &sessionv1.ThinkingStarted{Block: block}}}, nil
	case model.ThinkingDelta:
		return &sessionv1.Event{Body: &sessionv1.Event_ThinkingDelta{ThinkingDelta: &sessionv1.ThinkingDelta{Block: block, Text: d.Text}}}, nil
	case model.TextEnd, model.ThinkingEnd:
		e := a.open
		a.open = nil
		if e == nil {
			return nil, fmt.Errorf("the model ended block %d, which it had not begun", d.Block)
		}
		return e, nil
	default:
		return a.toolEvent(d, block)
	}
}

// textDelta returns the most frequent event, in one allocation.
func textDelta(block int32, text string) *sessionv1.Event {
	e := &struct {
		sessionv1.Event
		body  sessionv1.Event_TextDelta
		delta sessionv1.TextDelta
	}{}
	e.delta.Block, e.delta.Text = block, text
	e.body.TextDelta = &e.delta
	e.Body = &e.body
	return &e.Event
}

func (a *partialAnswer) toolEvent(d model.Delta, block int32) (*sessionv1.Event, error) {
	switch d.Kind {
	case model.ToolUseStart:
		a.callID, a.tool, a.args = state.CallID(a.sc.Active.ID, a.step, a.calls), d.ToolName, nil
		a.calls++
		started := &sessionv1.ToolCallStarted{Block: block, CallId: a.callID, Tool: a.tool}
		a.begun = append(a.begun, started)
		return &sessionv1.Event{Body: &sessionv1.Event_ToolCallStarted{ToolCallStarted: started}}, nil
	case model.ToolUseDelta:
		a.args = append(a.args, d.Text...)
		return &sessionv1.Event{Body: &sessionv1.Event_ToolCallArgumentsDelta{ToolCallArgumentsDelta: &sessionv1.ToolCallArgumentsDelta{CallId: a.callID, Json: d.Text}}}, nil
	case model.ToolUseEnd:
		return &sessionv1.Event{Body: &sessionv1.Event_ToolCallArguments{ToolCallArguments: &sessionv1.ToolCallArguments{CallId: a.callID, Tool: a.tool, ArgumentsJson: schema.Plain(string(a.args))}}}, nil
	default:
		return nil, fmt.Errorf("the model sent a piece of the unknown kind %d", d.Kind)
	}
}

// close returns the events that end the open blocks.
func (a *partialAnswer) close() []*sessionv1.Event {
	events := a.held
	if a.open != nil {
		events = append(events, a.sc.Event(a.step, a.open))
	}
	for _, c := range a.begun {
		events = append(events, a.sc.FinishedCall(c.Tool, state.TextResult(c.CallId, sessionv1.ToolOutcome_TOOL_OUTCOME_INTERRUPTED,
			"The answer was cut off before the call began."), 0))
	}
	return events
}

// keep returns the write that keeps the text of an answer that was cut off, so that the transcript
// is well-formed and has what people saw.
func (a *partialAnswer) keep() store.Write {
	write := store.Write{Events: a.close()}
	if blocks := a.text(); len(blocks) > 0 {
		a.sc.AddMessage(&write, a.sc.NewMessage(sessionv1.Role_ROLE_ASSISTANT, a.step, blocks))
	}
	return write
}

// text returns the text of the answer so far.
func (a *partialAnswer) text() []*sessionv1.Block {
	var blocks []*sessionv1.Block
	for _, t := range a.texts {
		if t.Len() > 0 {
			blocks = append(blocks, state.TextBlock(t.String()))
		}
	}
	return blocks
}
