package dialog

import (
	"bytes"
	"encoding/json"
)

// Quote appends a JSON string. Unlike json.Marshal it leaves <, > and & as they are: models write much code.
func Quote(b []byte, s string) []byte { return append(b, JSON(s)...) }

// JSON returns a value as JSON in one line. The values of the wires cannot fail.
func JSON(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { //nolint:errchkjson // it is checked
		return []byte("null")
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Event appends a server-sent event with a name.
func Event(b []byte, name string, data []byte) []byte {
	b = append(append(b, "event: "...), name...)
	return append(append(append(b, "\ndata: "...), data...), "\n\n"...)
}

// Data appends a server-sent event without a name.
func Data(b, data []byte) []byte {
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

// Object returns arguments as the JSON object that they should be; `{}` for none. What is no object is wrapped, so that
// the client sees it.
func Object(arguments string) json.RawMessage {
	var o map[string]json.RawMessage
	raw := json.RawMessage(arguments)
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return json.RawMessage("{}")
	case json.Unmarshal(raw, &o) == nil && o != nil:
		return raw
	}
	return JSON(map[string]string{"_invalid_arguments": arguments})
}
