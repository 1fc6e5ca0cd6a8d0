package responses

import (
	"encoding/json"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// answer assembles the events of a stream.
type answer struct {
	provider, model string
	emit            func(model.Delta) error
	watch           *transport.Watch
	limits          transport.Limits
	sent            int // bytes of the request

	id      string
	stop    string
	usage   usage
	refused bool
	items   []*item // in the order in which they came
	active  int     // the item that is being emitted
	blocks  []*sessionv1.Block
	bytes   int // of the whole answer, for estimates
	err     error
}

// maxItems bounds the items of one answer.
const maxItems = 1000

// item returns the item with the server's index, or adds one. Some servers give one
// index to all items, and other ids with every event.
func (a *answer) item(index transport.Count, kind, id string) *item {
	for _, it := range slices.Backward(a.items) {
		if it.index != index || it.done && (it.Type != kind || id != "" && it.ID != "" && it.ID != id) {
			continue
		}
		if it.Type != kind && a.err == nil {
			a.err = a.malformed("two items have one index")
		}
		return it
	}
	if len(a.items) >= maxItems && a.err == nil {
		a.err = a.watch.Fault(model.Refused, "sent more than %d items in one answer", maxItems)
	}
	it := &item{index: index, outputItem: outputItem{Type: kind}}
	a.items = append(a.items, it)
	return it
}

// piece appends to a part of an item.
func (a *answer) piece(it *item, key partKey, more string) error {
	if more != "" && it.done {
		return a.malformed("an item grew after its end")
	}
	it.write(key, more)
	return a.pump()
}

// rest takes the whole text of a part at its end: servers may send it in pieces, or
// at once.
func (a *answer) rest(it *item, key partKey, whole string) error {
	p := it.part(key)
	more, grown := strings.CutPrefix(whole, p.String())
	switch {
	case whole == "", it.done:
	case grown:
		it.write(key, more)
	case key.kind == kindCall && !equalJSON(p.String(), whole):
		return a.malformed("the arguments of a tool call changed")
	}
	return a.pump() // a text stays as its pieces were, which the user has seen
}

// end ends an item, whose final form has what its pieces lack.
func (a *answer) end(it *item, o *outputItem) error {
	if it.done {
		return a.pump()
	}
	it.describe(o)
	for _, f := range o.final() {
		if err := a.rest(it, f.key, f.text); err != nil {
			return err
		}
	}
	for _, p := range o.Content {
		a.refused = a.refused || p.Refusal != ""
	}
	it.done = true
	return a.pump()
}

// pump emits the pieces of the active item, and of the next one once it has ended, so
// that blocks do not interleave.
func (a *answer) pump() error {
	for a.err == nil && a.active < len(a.items) {
		it := a.items[a.active]
		if err := a.grow(it); err != nil || !it.done {
			return err
		}
		if err := a.close(it); err != nil {
			return err
		}
		a.active++
	}
	return a.err
}

// starts is the kind of piece that starts a block of an item.
var starts = map[string]model.DeltaKind{kindMessage: model.TextStart, kindReasoning: model.ThinkingStart, kindCall: model.ToolUseStart}

// grow emits the text of an item that was not emitted yet.
func (a *answer) grow(it *item) error {
	start, wanted := starts[it.Type]
	if !wanted || it.Type == kindCall && it.Name == "" { // a kind of item that we did not request
		return nil
	}
	more := it.text.String()[it.sent:]
	if more == "" && it.Type != kindCall {
		return nil
	}
	if err := a.start(it, start); err != nil || more == "" {
		return err
	}
	it.sent += len(more)
	a.bytes += len(more)
	return a.emit(model.Delta{Kind: start + 1, Block: len(a.blocks), Text: more})
}

func (a *answer) start(it *item, start model.DeltaKind) error {
	if it.started {
		return nil
	}
	it.started = true
	d := model.Delta{Kind: start, Block: len(a.blocks)}
	if it.Type == kindCall {
		d.ToolName, d.ProviderCallID = it.Name, it.CallID
	}
	return a.emit(d)
}

// close ends the block of the active item.
func (a *answer) close(it *item) error {
	start := starts[it.Type]
	switch it.Type {
	case kindCall:
		if it.Name == "" {
			return a.malformed("a tool call has no name")
		}
	case kindReasoning:
		if a.reasoning(it).usable() { // even without a text
			if err := a.start(it, start); err != nil {
				return err
			}
		}
	}
	if !it.started {
		return nil
	}
	b := a.block(it)
	a.blocks = append(a.blocks, b)
	return a.emit(model.Delta{Kind: start + 2, Block: len(a.blocks) - 1, Data: b.GetProviderData()})
}

func (a *answer) reasoning(it *item) *reasoning {
	return &reasoning{ID: it.ID, Summary: it.of(kindSummary), Content: it.of(kindReasoning), Encrypted: it.Encrypted}
}

// block returns our block of an item.
func (a *answer) block(it *item) *sessionv1.Block {
	s := it.text.String()
	switch it.Type {
	case kindCall:
		if s == "" {
			s = "{}"
		}
		return &sessionv1.Block{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{ProviderCallId: it.CallID, Tool: it.Name, ArgumentsJson: s}}}
	case kindReasoning:
		b := &sessionv1.Block{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: s}}}
		if r := a.reasoning(it); r.usable() {
			b.ProviderData = a.keep(opaque{Reasoning: r})
		}
		return b
	}
	b := &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}}}
	if it.Phase != "" {
		b.ProviderData = a.keep(opaque{Phase: it.Phase})
	}
	return b
}

// keep returns the provider data for a block of this answer.
func (a *answer) keep(o opaque) *sessionv1.ProviderData {
	o.Model = a.model
	data, err := json.Marshal(o)
	if err != nil { // cannot happen: texts can always be marshaled
		return nil
	}
	return &sessionv1.ProviderData{Provider: a.provider, Data: data}
}

// finish ends the answer. The whole output has the ends of items that the stream did
// not end, and everything where nothing was streamed.
func (a *answer) finish(output []outputItem) error {
	streamed := len(a.items) > 0
	for i := range output[:min(len(output), maxItems+1)] {
		o := &output[i]
		at := slices.IndexFunc(a.items, func(it *item) bool { return it.index == transport.Count(i) && it.Type == o.Type })
		switch {
		case at >= 0:
			if err := a.end(a.items[at], o); err != nil {
				return err
			}
		case !streamed:
			if err := a.end(a.item(transport.Count(i), o.Type, o.ID), o); err != nil {
				return err
			}
		}
	}
	for _, it := range a.items {
		it.done = true
	}
	return a.pump()
}

// response returns the answer. An answer with calls ends with tool_use, unless its
// limit or a filter cut it.
func (a *answer) response() (*model.Response, error) {
	calls := slices.ContainsFunc(a.blocks, func(b *sessionv1.Block) bool { return b.GetToolUse() != nil })
	switch {
	case a.stop != "end_turn":
	case a.refused:
		a.stop = "refusal"
	case calls:
		a.stop = "tool_use"
	}
	input, cached := int64(max(0, a.usage.Input)), int64(max(0, a.usage.InputDetails.Cached))
	cached = min(cached, input)
	u := &sessionv1.Usage{
		InputTokens: input - cached, CacheReadTokens: cached,
		OutputTokens: int64(a.usage.Output), ThinkingTokens: int64(a.usage.OutputDetails.Reasoning),
	}
	warning := a.limits.Correct(u, a.sent, a.bytes)
	return &model.Response{Blocks: a.blocks, StopReason: a.stop, Usage: u, ID: a.id, Warning: warning}, nil
}
