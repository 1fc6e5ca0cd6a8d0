package responses

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// Kinds of items and of their parts.
const (
	kindMessage   = "message"
	kindCall      = "function_call"
	kindReasoning = "reasoning"
	kindSummary   = "summary"
)

// item is an item of the output that is being streamed or held back.
type item struct {
	index transport.Count // the server's
	outputItem
	parts   []*part
	last    *part           // the one that grew last
	text    strings.Builder // of all parts, with a blank line between two
	sent    int             // bytes of its text that were emitted
	started bool
	done    bool
}

// partKey names a part of an item.
type partKey struct {
	kind  string
	index transport.Count
}

// part is a part of an item, piece by piece.
type part struct {
	key partKey
	strings.Builder
}

// maxParts bounds the parts of one item: each is looked for from the first.
const maxParts = 1000

// part returns the part with the key. Parts beyond the bound are all one.
func (it *item) part(key partKey) *part {
	for _, p := range it.parts {
		if p.key == key {
			return p
		}
	}
	if len(it.parts) >= maxParts {
		return it.parts[maxParts-1]
	}
	p := &part{key: key}
	it.parts = append(it.parts, p)
	return p
}

// describe takes what an item has beside its parts.
func (it *item) describe(o *outputItem) {
	keep := func(dst *string, s string) {
		if s != "" {
			*dst = s
		}
	}
	keep(&it.ID, o.ID)
	if !it.started { // otherwise a call was announced with them
		keep(&it.CallID, o.CallID)
		keep(&it.Name, o.Name)
	}
	keep(&it.Phase, o.Phase)
	keep(&it.Encrypted, o.Encrypted)
}

// write appends to a part.
func (it *item) write(key partKey, more string) {
	if more == "" {
		return
	}
	p := it.part(key)
	if it.last != nil && it.last != p {
		it.text.WriteString("\n\n")
	}
	it.last = p
	p.WriteString(more)
	it.text.WriteString(more)
}

// of returns the texts of the parts of a kind.
func (it *item) of(kind string) (texts []string) {
	for _, p := range it.parts {
		if p.key.kind == kind && p.Len() > 0 {
			texts = append(texts, p.String())
		}
	}
	return texts
}

// finalPart is a part of a finished item.
type finalPart struct {
	key  partKey
	text string
}

// final returns the parts of a finished item.
func (o *outputItem) final() (out []finalPart) {
	switch o.Type {
	case kindCall:
		out = append(out, finalPart{partKey{kindCall, 0}, o.Arguments})
	case kindMessage, kindReasoning:
		for i, p := range o.Summary {
			out = append(out, finalPart{partKey{kindSummary, transport.Count(i)}, p.Text})
		}
		for i, p := range o.Content {
			out = append(out, finalPart{partKey{o.Type, transport.Count(i)}, p.Text + p.Refusal})
		}
	}
	return out
}

// equalJSON reports whether two texts are the same JSON value.
func equalJSON(a, b string) bool {
	read := func(s string) (v any, ok bool) {
		d := json.NewDecoder(bytes.NewReader([]byte(s)))
		d.UseNumber()
		return v, d.Decode(&v) == nil && !d.More()
	}
	x, okX := read(a)
	y, okY := read(b)
	return okX && okY && reflect.DeepEqual(x, y)
}
