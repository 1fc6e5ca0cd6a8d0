package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fairlead/fairlead/services/session/internal/model"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// read reads a stream to its end. The answer is complete after a stop reason
// with all blocks closed, however the stream ends.
func (a *answer) read(ctx context.Context, body io.Reader) (*model.Response, error) {
	events := transport.NewEvents(body)
	for {
		ev, err := events.Next()
		var syntax *json.SyntaxError
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && a.stop != "" && a.open == nil:
			return a.response(), nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, a.watch.Fail(ctx, nil)
		case errors.As(err, &syntax):
			return nil, a.malformed("it is not JSON")
		case err != nil:
			return nil, a.watch.Fail(ctx, err)
		}
		done, err := a.handle(ev)
		if err != nil {
			return nil, err
		}
		if done {
			return a.response(), nil
		}
	}
}

// handle handles one event of the stream; done reports that the answer is complete.
func (a *answer) handle(ev transport.Event) (done bool, err error) {
	var e event
	if index, d, ok := plainDelta(ev.Data); ok && ev.JSON && ev.Name != "error" && ev.Name != "ping" {
		return false, a.delta(index, d)
	}
	switch {
	case ev.Name == "ping", string(ev.Data) == "[DONE]":
		return false, nil
	case ev.Name == "error", !ev.JSON:
		return false, a.watch.Told(transport.ReadError(ev.Data), 0)
	case json.Unmarshal(ev.Data, &e) != nil:
		return false, a.malformed("an event has another form")
	case e.Type == "error", e.Type == "":
		if told, ok := transport.FindError(ev.Data); ok {
			return false, a.watch.Told(told, 0)
		}
	case e.Type == "message": // instead of a stream
		return true, a.whole(ev.Data)
	}
	return a.event(e)
}

// event handles one event; done reports that the answer is complete.
func (a *answer) event(e event) (done bool, err error) {
	switch e.Type {
	case "message_start":
		a.id = e.Message.ID
		a.count(e.Message.Usage)
	case "content_block_start":
		return false, a.start(e.Index, e.ContentBlock)
	case "content_block_delta":
		return false, a.delta(e.Index, e.Delta)
	case "content_block_stop":
		return false, a.end(e.Index)
	case "message_delta":
		a.messageDelta(e)
	case "message_stop":
		if a.stop == "" || a.open != nil {
			return false, a.malformed("it ended without a stop reason or inside a block")
		}
		return true, nil
	}
	return false, nil // the API may add kinds of events at any time
}

// whole handles a whole message.
func (a *answer) whole(raw []byte) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil || m.StopReason == "" {
		return a.malformed("a message in place of a stream has another form")
	}
	a.id, a.stop = m.ID, stopReason(m.StopReason)
	a.count(m.Usage)
	for i, b := range m.Content {
		if err := a.start(transport.Count(i), b); err != nil {
			return err
		}
		if err := a.end(transport.Count(i)); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) malformed(what string) error {
	return &model.Error{Kind: model.Unavailable, Midway: true, Malformed: true, Message: fmt.Sprintf("the stream of the model provider %s is malformed: %s", a.provider, what)}
}
