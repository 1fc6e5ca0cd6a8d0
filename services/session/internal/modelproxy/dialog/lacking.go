package dialog

import (
	"bytes"
	"encoding/json"
)

// Lacking is a field of one API that has no place in the others.
type Lacking struct {
	Field string
	Value json.RawMessage
	// What the field asks for.
	What string
	// Same is the value that asks for nothing, as JSON; most often it is empty.
	Same string
}

// Refused returns the error of the first field that asks for something. The field is a part of at, unless at is empty.
func Refused(at string, fields ...Lacking) error {
	for _, f := range fields {
		if !f.asks() {
			continue
		}
		if at != "" {
			f.Field = at + "." + f.Field
		}
		return Unable(f.Field, f.What)
	}
	return nil
}

func (f Lacking) asks() bool {
	if len(f.Value) == 0 {
		return false
	}
	switch v := plain(f.Value); string(v) {
	case `null`, `false`, `""`, `[]`, `{}`:
		return false
	default:
		return f.Same == "" || !bytes.Equal(v, plain(json.RawMessage(f.Same)))
	}
}

// plain returns a value in the form that equal values share.
func plain(raw json.RawMessage) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	return JSON(v)
}
