package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"regexp"
	"strconv"
)

// The SDK reads a number of an envelope (an id, a progress token) as a float64, and an id as an integer, so it sends
// another number back. Such a number is a text to the SDK: mark stands before its digits. No client and no tool can know
// the mark, because it is made at random and never leaves the process.
var (
	mark   = "number " + rand.Text() + " "
	marked = regexp.MustCompile(`"` + mark + `([-+.0-9eE]+)"`)
)

// numeric finds envelopes that may have a number which the SDK changes. It saves the others from being read twice.
var numeric = regexp.MustCompile(`"(?:id|requestId|progressToken)"\s*:\s*-?(?:0|[0-9]{16}|[0-9]+[.eE])`)

// keepDigits returns a message, or a batch, with marks for the numbers that the SDK would change. What is no message is
// returned as it is: the SDK refuses it.
func keepDigits(body []byte) []byte {
	if !numeric.Match(body) {
		return body
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) != nil {
			return body
		}
		for i, m := range batch {
			batch[i] = within(m, "id", "params")
		}
		return marshaled(batch, body)
	}
	return within(body, "id", "params")
}

// inner are the members below a member, of which the last is a number, and the others have members.
var inner = map[string][]string{"params": {"requestId", "_meta"}, "_meta": {"progressToken"}}

// within marks the numbers of an object's members.
func within(text json.RawMessage, members ...string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return text
	}
	changed := false
	for _, name := range members {
		old, ok := object[name]
		if !ok {
			continue
		}
		next := marking(old)
		if below := inner[name]; below != nil {
			next = within(old, below...)
		}
		changed = changed || !bytes.Equal(old, next)
		object[name] = next
	}
	if !changed {
		return text
	}
	return marshaled(object, text)
}

// marshaled returns the JSON of a value, or a text if there is none.
func marshaled(value any, otherwise []byte) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		return otherwise
	}
	return b
}

// exact is the largest number up to which a float64 has every integer.
const exact = 1 << 53

// marking returns a number that the SDK would change as a text; other values as they are.
func marking(value json.RawMessage) json.RawMessage {
	text := string(bytes.TrimSpace(value))
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return value
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && -exact < n && n < exact && strconv.FormatInt(n, 10) == text {
		return value
	}
	return json.RawMessage(strconv.Quote(mark + text))
}

// digits puts the numbers of marks back.
func digits(answer []byte) []byte {
	if !bytes.Contains(answer, []byte(mark)) {
		return answer
	}
	return marked.ReplaceAll(answer, []byte("$1"))
}
