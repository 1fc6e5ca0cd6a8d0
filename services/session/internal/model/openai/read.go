package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// read reads a stream to its end. The answer is complete after a finish reason,
// however the stream ends; without one, after [DONE].
func (a *answer) read(ctx context.Context, body io.Reader) (*model.Response, error) {
	events := transport.NewEvents(body)
	for {
		ev, err := events.Next()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && a.finish != "":
			return a.end()
		case errors.Is(err, io.EOF) && a.message != nil && !a.streamed: // instead of a stream
			return a.done()
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, a.watch.Fail(ctx, nil)
		case malformed(err):
			return nil, a.malformed("it is not JSON")
		case err != nil:
			return nil, a.watch.Fail(ctx, err)
		case string(ev.Data) == "[DONE]":
			return a.done()
		}
		if err := a.event(ev); err != nil {
			return nil, err
		}
	}
}

func malformed(err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax)
}

// done ends an answer at [DONE]. Servers without finish reasons give no other
// sign of a complete answer, so its last call must be complete.
func (a *answer) done() (*model.Response, error) {
	if err := a.useMessage(); err != nil {
		return nil, err
	}
	switch {
	case a.finish != "":
	case a.text == nil && len(a.blocks) == 0 && len(a.calls) == 0:
		return nil, &model.Error{Kind: model.Unavailable, Midway: true, Message: fmt.Sprintf("the model provider %s gave no answer", a.provider)}
	case len(a.calls) > 0 && !a.calls[len(a.calls)-1].args.ended():
		return nil, a.malformed("it ended inside a tool call")
	}
	return a.end()
}

// event handles one event of the stream.
func (a *answer) event(ev transport.Event) error {
	if ev.Name == "error" || !ev.JSON {
		return a.watch.Told(transport.ReadError(ev.Data), 0)
	}
	var c chunk
	err := json.Unmarshal(ev.Data, &c)
	if err != nil || c.failed() {
		if told, ok := transport.FindError(ev.Data); ok {
			return a.watch.Told(told, 0)
		}
	}
	if err != nil {
		return a.malformed("a piece is not the JSON of a chunk")
	}
	return a.chunk(c)
}

// chunk handles one piece of the stream.
func (a *answer) chunk(c chunk) error {
	if c.ID != "" {
		a.id = string(c.ID)
	}
	a.usage.add(c.Usage)
	for _, ch := range c.Choices {
		if ch.Index != 0 { // we request one answer
			continue
		}
		a.usage.add(ch.Usage)
		if err := a.choice(ch); err != nil {
			return err
		}
	}
	return nil
}

// choice takes in a delta. A message beside deltas repeats what they bring, so it
// waits for the end.
func (a *answer) choice(ch choice) error {
	if ch.Message != nil {
		if a.message == nil {
			a.message = &whole{}
		}
		a.message.add(*ch.Message)
	}
	if ch.Delta != nil && !ch.Delta.empty() {
		a.streamed = true
		if err := a.delta(*ch.Delta); err != nil {
			return err
		}
	}
	if err := a.finishes(strings.ToLower(string(ch.FinishReason))); err != nil {
		return err
	}
	return a.pump()
}

// finishes records the finish reason. Some reasons are failures of the server.
func (a *answer) finishes(reason string) error {
	switch reason {
	case "":
		return nil
	case "error", "network_error", "abort", "aborted", "cancelled", "canceled", "timeout", "insufficient_system_resource":
		return &model.Error{Kind: model.Unavailable, Midway: true, Message: fmt.Sprintf("the model provider %s ended the answer early: its finish reason is %s", a.provider, reason)}
	}
	a.finish = reason
	a.watch.Complete()
	return nil
}

func (a *answer) malformed(what string) error {
	return &model.Error{Kind: model.Unavailable, Midway: true, Malformed: true, Message: fmt.Sprintf("the stream of the model provider %s is malformed: %s", a.provider, what)}
}
