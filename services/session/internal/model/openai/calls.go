package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/wire"
)

// call is a tool call that is being streamed or held back.
type call struct {
	index    wire.Count // the server's; -1 when it sends none
	id, name string
	args     bytes.Buffer
	extra    json.RawMessage // what the server wants back beside the call
	sent     int             // bytes of args that were emitted
	started  bool
	checked  int // the length of args for which valid holds
	valid    bool
}

// maxCalls bounds the calls of one answer.
const maxCalls = 1000

// take appends a piece. An id that comes after the call was announced is too
// late to be told.
func (c *call) take(p piece) {
	if c.id == "" && !c.started {
		c.id = string(p.ID)
	}
	if c.name == "" {
		c.name = string(p.Function.Name)
	}
	if e := string(bytes.TrimSpace(p.Extra)); e != "" && e != "null" {
		c.extra = p.Extra
	}
	c.args.WriteString(string(p.Function.Arguments))
}

// ended reports whether the arguments may be complete: there are none, or they
// are JSON.
func (c *call) ended() bool {
	b := bytes.TrimSpace(c.args.Bytes())
	return len(b) == 0 || json.Valid(b)
}

// whole says whether the arguments are complete: a JSON object cannot grow.
func (c *call) whole() bool {
	if c.checked != c.args.Len() {
		b := bytes.TrimSpace(c.args.Bytes())
		c.checked, c.valid = c.args.Len(), len(b) > 1 && b[len(b)-1] == '}' && json.Valid(b)
	}
	return c.valid
}

// find gives the call that a piece belongs to: by index, else by id, else the
// last one, unless the piece has the name of a new one.
func (a *answer) find(p piece) *call {
	same := func(match func(*call) bool) *call {
		for _, c := range slices.Backward(a.calls) {
			if match(c) && !c.other(p) {
				return c
			}
		}
		return nil
	}
	byID := func(c *call) bool { return p.ID != "" && c.id == string(p.ID) }
	if p.Index != nil {
		if c := same(func(c *call) bool { return c.index == *p.Index }); c != nil {
			return c
		}
		if c := same(byID); c != nil && p.Function.Name == "" { // a server that numbers the pieces
			return c
		}
		return a.add(*p.Index)
	}
	if c := same(byID); c != nil {
		return c
	}
	if n := len(a.calls); n > 0 {
		last := a.calls[n-1]
		newID := p.ID != "" && last.id != "" && last.id != string(p.ID)
		if !newID && !last.other(p) && (p.Function.Name == "" || !last.whole()) {
			return last
		}
	}
	return a.add(-1)
}

// other reports whether a piece with the index or the id of c belongs to another
// call all the same, as from servers that number all their calls 0: it has a name,
// and another id or name, or c is complete and the piece has arguments.
func (c *call) other(p piece) bool {
	name := string(p.Function.Name)
	if name == "" || c.name == "" {
		return false
	}
	return p.ID != "" && c.id != "" && string(p.ID) != c.id || name != c.name ||
		c.whole() && strings.TrimSpace(string(p.Function.Arguments)) != ""
}

func (a *answer) add(index wire.Count) *call {
	c := &call{index: index}
	a.calls = append(a.calls, c)
	return c
}

// pump emits what has come of the calls: all of the first that is not complete,
// nothing yet of those after it, so that blocks do not interleave.
func (a *answer) pump() error {
	for a.active < len(a.calls) {
		c := a.calls[a.active]
		if c.name == "" {
			return nil
		}
		if err := a.forward(c); err != nil {
			return err
		}
		if a.active+1 == len(a.calls) || !c.whole() {
			return nil
		}
		if err := a.closeCall(c); err != nil {
			return err
		}
	}
	return nil
}

// forward emits the start of a call and the arguments that were not emitted yet.
func (a *answer) forward(c *call) error {
	if !c.started {
		if err := a.closeText(); err != nil {
			return err
		}
		c.started = true
		if err := a.emit(model.Delta{Kind: model.ToolUseStart, Block: len(a.blocks), ToolName: c.name, ProviderCallID: c.id}); err != nil {
			return err
		}
	}
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

// closeCalls emits all that was held back, at the end of the stream.
func (a *answer) closeCalls() error {
	for a.active < len(a.calls) {
		c := a.calls[a.active]
		if c.name == "" {
			return a.malformed("a tool call has no name")
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
