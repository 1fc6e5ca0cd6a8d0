package responses

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// read reads a stream to its end. The answer is complete only with the event that
// has the whole response.
func (a *answer) read(ctx context.Context, body io.Reader) (*model.Response, error) {
	events := transport.NewEvents(body)
	for {
		ev, err := events.Next()
		var syntax *json.SyntaxError
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
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
			return a.response()
		}
	}
}

// handle handles one event of the stream; done reports that the answer is complete.
func (a *answer) handle(ev transport.Event) (done bool, err error) {
	var e event
	switch {
	case string(ev.Data) == "[DONE]":
		return false, nil
	case ev.Name == reportedFailure, !ev.JSON:
		return false, a.watch.Told(transport.ReadError(ev.Data), 0)
	case json.Unmarshal(ev.Data, &e) != nil:
		if told, ok := transport.FindError(ev.Data); ok {
			return false, a.watch.Told(told, 0)
		}
		return false, a.malformed("an event has another form")
	case e.Type == reportedFailure:
		return false, a.watch.Told(transport.ReadError(ev.Data), 0)
	case e.Type == "":
		return a.untyped(ev.Data)
	case e.Response != nil:
		return a.whole(e.Type, e.Response)
	}
	return false, a.event(e)
}

// untyped handles an object in place of events: an error or a whole response.
func (a *answer) untyped(raw []byte) (done bool, err error) {
	var r wholeMessage
	if json.Unmarshal(raw, &r) == nil && r.Object == "response" {
		return a.whole("response."+r.Status, &r)
	}
	if told, ok := transport.FindError(raw); ok {
		return false, a.watch.Told(told, 0)
	}
	return false, a.malformed("an event has no type")
}

// whole handles an event with the whole response.
func (a *answer) whole(kind string, r *wholeMessage) (done bool, err error) {
	if r.ID != "" {
		a.id = r.ID
	}
	switch kind {
	case failed, cancelled:
		return false, a.failed(r)
	case completed:
		a.stop = "end_turn"
	case incomplete:
		a.stop = "max_tokens"
		if r.Incomplete.Reason == "content_filter" {
			a.stop = "refusal"
		}
	default:
		return false, nil
	}
	a.usage = r.Usage
	return true, a.finish(r.Output)
}

func (a *answer) failed(r *wholeMessage) error {
	said, err := json.Marshal(map[string]json.RawMessage{"error": r.Error})
	if told, ok := transport.FindError(said); err == nil && ok {
		return a.watch.Told(told, 0)
	}
	return a.watch.Fault(model.Unavailable, "ended the answer early and gives no reason")
}

// event handles a piece of the output.
func (a *answer) event(e event) error {
	switch e.Type {
	case itemAdded:
		if e.Item != nil {
			a.item(e.Index, e.Item.Type, e.Item.ID).describe(e.Item)
		}
		return a.pump()
	case itemDone:
		if e.Item != nil {
			return a.end(a.item(e.Index, e.Item.Type, e.Item.ID), e.Item)
		}
	case textDelta, textDone:
		return a.part(e, kindMessage, partKey{kindMessage, e.Part}, e.Text)
	case refusalDelta, refusalDone:
		a.refused = true
		return a.part(e, kindMessage, partKey{kindMessage, e.Part}, e.Refusal)
	case argumentsDelta, argumentsDone:
		return a.part(e, kindCall, partKey{kindCall, 0}, e.Arguments)
	case summaryDelta, summaryDone:
		return a.part(e, kindReasoning, partKey{kindSummary, e.Summary}, e.Text)
	case thoughtDelta, thoughtDone:
		return a.part(e, kindReasoning, partKey{kindReasoning, e.Part}, e.Text)
	}
	return nil // the API may add kinds of events at any time
}

// part takes a piece of a part, or at its end the whole.
func (a *answer) part(e event, kind string, key partKey, whole string) error {
	it := a.item(e.Index, kind, e.ItemID)
	if strings.HasSuffix(e.Type, ".done") {
		return a.rest(it, key, whole)
	}
	return a.piece(it, key, e.Delta)
}

func (a *answer) malformed(what string) error {
	return a.watch.Malformed(what)
}
