package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// call is a tool call that is being streamed or held back.
type call struct {
	index    transport.Count // the server's; -1 when it sends none
	id, name string
	args     arguments
	again    bytes.Buffer    // arguments that follow complete ones: repeats of them, or those of other calls
	againID  string          // the id that came with them
	extra    json.RawMessage // what the server wants back beside the call
	sent     int             // bytes of args that were emitted
	started  bool
	twin     bool // it has the id and the name of an earlier call, and another index
}

// maxCalls bounds the calls of one answer.
const maxCalls = 1000

// addCallPiece appends a piece to its call. It ignores an id that comes after the call
// was announced.
func (a *answer) addCallPiece(p *piece) error {
	c := a.find(p)
	if len(a.calls) > maxCalls {
		return a.tooManyCalls()
	}
	if c.id == "" && !c.started {
		c.id = string(p.ID)
	}
	if c.name == "" {
		c.name = string(p.Function.Name)
	}
	if e := string(bytes.TrimSpace(p.Extra)); e != "" && e != "null" {
		c.extra = p.Extra
	}
	args := string(p.Function.Arguments)
	object := strings.HasPrefix(strings.TrimSpace(args), "{")
	switch {
	case c.again.Len() > 0, object && c.repeatedBy(p):
		c.again.WriteString(args)
		c.againID = cmp.Or(c.againID, string(p.ID))
		return nil
	case object && c.args.bare():
		if c.sent > 0 {
			return a.malformed("the arguments of a tool call changed")
		}
		c.args.replace()
	}
	c.args.WriteString(args)
	return nil
}

// repeatedBy reports whether a piece of the call begins its complete arguments
// again. A piece without id and name does so only with equal arguments: other
// arguments are a fault of the model, which it gets to see.
func (c *call) repeatedBy(p *piece) bool {
	if !c.args.whole() || c.args.bare() {
		return false
	}
	return p.ID != "" || p.Function.Name != "" || c.args.equal(p.canonical())
}

// splitRepeats makes a call of its own of each repetition that has other arguments: some servers
// give one id to several calls, or send an id late. The model sees arguments that are not complete.
func (a *answer) splitRepeats() error {
	for _, c := range slices.Clone(a.calls) {
		known := map[string]bool{"{}": true, c.args.canonical(): true}
		values, rest := objects(c.again.Bytes())
		if rest = bytes.TrimSpace(rest); bytes.HasPrefix(bytes.TrimSpace(c.args.Bytes()), rest) {
			rest = nil // the repetition of the call broke off
		}
		if len(rest) > 0 {
			values = append(values, string(rest))
		}
		for _, v := range values {
			if known[v] {
				continue
			}
			known[v] = true
			other := &call{index: c.index, id: cmp.Or(c.againID, c.id), name: c.name}
			other.args.WriteString(v)
			a.calls = append(a.calls, other)
		}
		if len(a.calls) > maxCalls {
			return a.tooManyCalls()
		}
	}
	return nil
}

func (a *answer) tooManyCalls() error {
	return &model.Error{Kind: model.Refused, Midway: true, Message: fmt.Sprintf("the model provider %s sent more than %d tool calls in one answer", a.provider, maxCalls)}
}

// find returns the call of a piece: the one with its id, otherwise with its index,
// otherwise the last one, unless the piece begins another.
func (a *answer) find(p *piece) *call {
	if c := a.findID(p); c != nil {
		return c
	}
	if p.Index != nil {
		if c := a.last(func(c *call) bool { return c.index == *p.Index && !c.other(p) }); c != nil {
			return c
		}
		return a.add(*p.Index)
	}
	if c := a.last(func(c *call) bool { return (c.id == "") != (p.ID == "") && c.repeats(p) }); c != nil {
		return c
	}
	if n := len(a.calls); n > 0 {
		last := a.calls[n-1]
		newID := p.ID != "" && last.id != "" && last.id != string(p.ID)
		open := p.Function.Name == "" || !last.args.whole() || last.id != "" && last.args.bare()
		if !newID && !last.other(p) && open {
			return last
		}
	}
	return a.add(-1)
}

// findID returns the call with the id of a piece, which has the same name unless
// the server gives one id to all its calls. Complete arguments under another
// index may be another call, too.
func (a *answer) findID(p *piece) *call {
	name := string(p.Function.Name)
	same := func(c *call) bool {
		return p.ID != "" && c.id == string(p.ID) && (name == "" || c.name == "" || c.name == name)
	}
	if p.Index != nil {
		if c := a.last(func(c *call) bool { return same(c) && c.index == *p.Index }); c != nil {
			return c
		}
	}
	c := a.last(same)
	if c == nil || p.Index == nil || c.index < 0 || name == "" || !c.args.whole() || c.args.bare() {
		return c
	}
	c = a.add(*p.Index)
	c.twin = true
	return c
}

// last returns the last call that matches, or nil.
func (a *answer) last(match func(*call) bool) *call {
	for _, c := range slices.Backward(a.calls) {
		if match(c) {
			return c
		}
	}
	return nil
}

// repeats reports whether a piece has the name and the complete arguments of the call.
func (c *call) repeats(p *piece) bool {
	return c.name == string(p.Function.Name) && c.args.equal(p.canonical())
}

// other reports whether a piece with the index of c still belongs to another
// call, as from servers that number all their calls 0. It does if it has
// another id or name, or if c has no id and complete arguments and the piece
// has different ones.
func (c *call) other(p *piece) bool {
	name := string(p.Function.Name)
	if name == "" || c.name == "" {
		return false
	}
	if p.ID != "" && c.id != "" && string(p.ID) != c.id || name != c.name {
		return true
	}
	more := strings.TrimSpace(string(p.Function.Arguments)) != ""
	return c.id == "" && more && c.args.whole() && !c.args.bare() && !c.args.equal(p.canonical())
}

func (a *answer) add(index transport.Count) *call {
	c := &call{index: index}
	a.calls = append(a.calls, c)
	return c
}

// pump emits the pieces of the calls: all of the first call that is not
// complete, none of the calls after it, so that blocks do not interleave. It
// holds back pieces that may still be replaced or dropped.
func (a *answer) pump() error {
	for a.active < len(a.calls) {
		c := a.calls[a.active]
		whole := c.args.whole() && !c.args.bare()
		if c.name == "" || c.twin && !whole {
			return nil
		}
		if a.dropTwin(c) {
			continue
		}
		if err := a.start(c); err != nil {
			return err
		}
		if c.args.vague() {
			return nil
		}
		if err := a.forward(c); err != nil {
			return err
		}
		if a.active+1 == len(a.calls) || !whole {
			return nil
		}
		if err := a.closeCall(c); err != nil {
			return err
		}
	}
	return nil
}

// dropTwin drops the active call if an earlier one with its id and name has equal
// arguments, or if it has no arguments of its own.
func (a *answer) dropTwin(c *call) bool {
	if !c.twin {
		return false
	}
	drop := len(bytes.TrimSpace(c.args.Bytes())) == 0
	for _, earlier := range a.calls[:a.active] {
		drop = drop || earlier.id == c.id && earlier.name == c.name && c.args.whole() && earlier.args.equal(c.args.canonical())
	}
	if drop {
		a.calls = slices.Delete(a.calls, a.active, a.active+1)
	}
	return drop
}

// start announces a call.
func (a *answer) start(c *call) error {
	if c.started {
		return nil
	}
	if err := a.closeText(); err != nil {
		return err
	}
	c.started = true
	return a.emit(model.Delta{Kind: model.ToolUseStart, Block: len(a.blocks), ToolName: c.name, ProviderCallID: c.id})
}

// forward emits the arguments that were not emitted yet.
func (a *answer) forward(c *call) error {
	more := string(c.args.Bytes()[c.sent:])
	if more == "" {
		return nil
	}
	c.sent += len(more)
	return a.emit(model.Delta{Kind: model.ToolUseDelta, Block: len(a.blocks), Text: more})
}

// closeCall ends the block of the active call.
func (a *answer) closeCall(c *call) error {
	a.active++
	args := c.args.String()
	if args == "" {
		args = "{}"
	}
	a.blocks = append(a.blocks, a.toolUse(c, args))
	return a.emit(model.Delta{Kind: model.ToolUseEnd, Block: len(a.blocks) - 1})
}

// closeCalls emits everything that was held back, at the end of the stream.
func (a *answer) closeCalls() error {
	if err := a.splitRepeats(); err != nil {
		return err
	}
	for a.active < len(a.calls) {
		c := a.calls[a.active]
		if c.name == "" {
			return a.malformed("a tool call has no name")
		}
		if a.dropTwin(c) {
			continue
		}
		if err := a.start(c); err != nil {
			return err
		}
		if err := a.forward(c); err != nil {
			return err
		}
		if err := a.closeCall(c); err != nil {
			return err
		}
	}
	return nil
}
