package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deeply arguments may be nested.
const maxDepth = 64

// Arguments are a call's arguments: one JSON object.
type Arguments struct {
	// Raw is the text, as it is decoded by the tool.
	Raw json.RawMessage
	// Value is the same, decoded.
	Value map[string]any
}

// String returns the string under a name; empty when there is none.
func (a Arguments) String(name string) string {
	s, _ := a.Value[name].(string)
	return s
}

// ParseArguments reads arguments as a model wrote them: one JSON object, in
// which no name occurs twice, for two readers could take different ones, and a
// person would approve another call than the one that runs. Nothing at all is an
// empty object. The error is written for the model.
func ParseArguments(text string) (Arguments, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	if !utf8.ValidString(text) {
		return Arguments{}, errors.New("the arguments are not valid UTF-8")
	}
	if err := checkTokens(text); err != nil {
		return Arguments{}, fmt.Errorf("the arguments are not valid JSON: %w. Send one JSON object", err)
	}
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return Arguments{}, fmt.Errorf("the arguments are not a JSON object: %s", clip(err.Error(), 300))
	}
	if value == nil {
		return Arguments{}, errors.New("the arguments are not a JSON object: got null")
	}
	return Arguments{Raw: json.RawMessage(text), Value: value}, nil
}

// checkTokens walks the whole text: well-formed, one value, not too deep, no
// name twice in one object.
func checkTokens(text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var stack []scope
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return endOf(stack)
		}
		if err != nil {
			return fmt.Errorf("%s (byte %d)", clip(err.Error(), 200), dec.InputOffset())
		}
		if stack, err = step(stack, tok); err != nil {
			return err
		}
		if len(stack) == 0 {
			return trailing(text, dec.InputOffset())
		}
	}
}

// scope is an object or array that is open.
type scope struct {
	names map[string]bool // nil in an array
	key   bool            // the next token is a name
}

func step(stack []scope, tok json.Token) ([]scope, error) {
	top := len(stack) - 1
	if d, ok := tok.(json.Delim); ok {
		switch d {
		case '{', '[':
			if len(stack) == maxDepth {
				return nil, fmt.Errorf("nested more than %d deep", maxDepth)
			}
			if top >= 0 && stack[top].names != nil {
				stack[top].key = true
			}
			next := scope{}
			if d == '{' {
				next = scope{names: map[string]bool{}, key: true}
			}
			return append(stack, next), nil
		default:
			return stack[:top], nil
		}
	}
	if top < 0 || stack[top].names == nil {
		return stack, nil
	}
	if !stack[top].key {
		stack[top].key = true
		return stack, nil
	}
	name, _ := tok.(string)
	if stack[top].names[name] {
		return nil, fmt.Errorf("the name %q occurs twice in one object", clip(name, 100))
	}
	stack[top].names[name] = true
	stack[top].key = false
	return stack, nil
}

func endOf(stack []scope) error {
	if len(stack) > 0 {
		return errors.New("unexpected end: an object or array is not closed")
	}
	return errors.New("unexpected end")
}

func trailing(text string, offset int64) error {
	if rest := bytes.TrimSpace([]byte(text[offset:])); len(rest) > 0 {
		return fmt.Errorf("something follows the first value (byte %d)", offset)
	}
	return nil
}

// clip cuts a text for a message, on a character's border.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
