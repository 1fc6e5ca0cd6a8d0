// Package splice changes single members of a JSON object, and leaves all its other bytes as they are.
package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Object is a JSON object, and the changes to it.
type Object struct {
	body    []byte
	members map[string]span
	first   int // where a member may be added: behind the brace
	edits   []edit
}

// span is where a member's value is.
type span struct{ from, to int }

type edit struct {
	span
	text []byte
}

var errForm = errors.New("the body is not a JSON object")

// Parse reads the members of an object. A name that occurs twice is an error: readers differ in which one
// they take.
func Parse(body []byte) (*Object, error) {
	o := &Object{body: body, members: map[string]span{}}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errForm
	}
	o.first = int(d.InputOffset())
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, malformed(err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, malformed(err)
		}
		if _, twice := o.members[name]; twice {
			return nil, fmt.Errorf("the body has the member %q twice", name)
		}
		to := int(d.InputOffset())
		o.members[name] = span{to - len(raw), to}
	}
	if _, err := d.Token(); err != nil {
		return nil, malformed(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body has more than one JSON value")
	}
	return o, nil
}

func malformed(err error) error {
	if err == nil {
		return errForm
	}
	return fmt.Errorf("the body is not JSON: %w", err)
}

// Raw returns a member's value as it was read; nil if there is none.
func (o *Object) Raw(name string) json.RawMessage {
	s, ok := o.members[name]
	if !ok {
		return nil
	}
	return o.body[s.from:s.to]
}

// Text returns a member that is a string; "" if it is none.
func (o *Object) Text(name string) (s string) {
	if json.Unmarshal(o.Raw(name), &s) != nil {
		return ""
	}
	return s
}

// Int returns a member that is a whole number; 0 if it is none.
func (o *Object) Int(name string) int64 {
	n, err := strconv.ParseInt(string(o.Raw(name)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// True reports whether a member is true.
func (o *Object) True(name string) bool { return string(o.Raw(name)) == "true" }

// Set gives a member another value, or adds it. A member is set at most once.
func (o *Object) Set(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil { // callers set strings and numbers
		return
	}
	if s, ok := o.members[name]; ok {
		o.edits = append(o.edits, edit{s, text})
		return
	}
	added := strconv.AppendQuote(nil, name)
	added = append(append(added, ':'), text...)
	if len(o.members) > 0 {
		added = append(added, ',')
	}
	o.edits = append(o.edits, edit{span{o.first, o.first}, added})
}

// Bytes returns the object with the changes.
func (o *Object) Bytes() []byte {
	if len(o.edits) == 0 {
		return o.body
	}
	slices.SortStableFunc(o.edits, func(a, b edit) int { return a.from - b.from })
	out := make([]byte, 0, len(o.body)+256)
	at := 0
	for _, e := range o.edits {
		out = append(append(out, o.body[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, o.body[at:]...)
}
