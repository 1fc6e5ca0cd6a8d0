package openai

import (
	"bytes"
	"encoding/json"
)

// arguments are the JSON of a tool call, piece by piece.
type arguments struct {
	bytes.Buffer
	checked int // the length for which valid holds
	valid   bool
	same    string // the canonical form; empty until it is asked for
}

// ended reports whether the arguments may be complete: they are empty or JSON.
func (a *arguments) ended() bool {
	b := bytes.TrimSpace(a.Bytes())
	return len(b) == 0 || json.Valid(b)
}

// whole reports whether the arguments are complete: a JSON object cannot grow.
func (a *arguments) whole() bool {
	if a.checked != a.Len() {
		b := bytes.TrimSpace(a.Bytes())
		a.checked, a.valid, a.same = a.Len(), len(b) > 1 && b[len(b)-1] == '}' && json.Valid(b), ""
	}
	return a.valid
}

// bare reports whether the arguments are an empty object. Some servers announce a
// call with one and send its arguments later.
func (a *arguments) bare() bool { return a.whole() && a.canonical() == "{}" }

// vague reports whether the arguments tell nothing yet: they are the beginning of
// any object.
func (a *arguments) vague() bool {
	const short = 32
	return a.Len() < short && len(bytes.Trim(a.Bytes(), " \t\r\n{}")) == 0
}

// equal reports whether the arguments are complete and mean the same as others in
// canonical form.
func (a *arguments) equal(others string) bool {
	return others != "" && a.whole() && a.canonical() == others
}

func (a *arguments) canonical() string {
	if a.same == "" {
		a.same = canonical(a.Bytes())
	}
	return a.same
}

// replace starts the arguments anew.
func (a *arguments) replace() { *a = arguments{} }

// canonical writes a JSON object without spaces and with sorted keys. It is empty
// for anything else.
func canonical(b []byte) string {
	values, rest := objects(b)
	if len(bytes.TrimSpace(rest)) > 0 || len(values) != 1 {
		return ""
	}
	return values[0]
}

// objects reads JSON objects that follow each other, in canonical form. rest is what follows them.
func objects(b []byte) (all []string, rest []byte) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for {
		read := d.InputOffset()
		var v map[string]any
		if d.Decode(&v) != nil {
			return all, b[read:]
		}
		written, err := json.Marshal(v)
		if err != nil {
			return all, b[read:]
		}
		all = append(all, string(written))
	}
}
