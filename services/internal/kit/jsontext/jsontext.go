// Package jsontext reads JSON that is stored as text: arguments, results and schemas. Text keeps every digit,
// the order of names and repeated names; Go's plain values keep none of these. It also writes messages as one
// line of JSON.
package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxDepth bounds the nesting of objects and arrays.
	MaxDepth = 128
	// maxDigits and maxExponent bound one number, because a schema compares numbers exactly: 1e999999 alone
	// would take a second.
	maxDigits   = 1000
	maxExponent = 1000
)

// errLimit begins the errors about valid JSON beyond a limit.
var errLimit = errors.New("not usable")

// Object reads the text of one JSON object; its numbers are json.Number, with every digit. A name that occurs
// twice in an object is an error: two readers could use different values. The error completes the sentence
// "the text is …".
func Object(text string) (map[string]any, error) {
	if err := check(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", clip(err.Error(), 200))
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object but " + kind(value))
	}
	return object, nil
}

// Compact returns the text without white space between its values, otherwise
// unchanged.
func Compact(text string) (string, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return "", fmt.Errorf("not valid JSON: %s", clip(err.Error(), 200))
	}
	return b.String(), nil
}

func kind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case []any:
		return "an array"
	case string:
		return "a string"
	case bool:
		return "a truth value"
	default:
		return "a number"
	}
}

// check checks the whole text: well-formed, one value, not too deep, no name twice in one
// object.
func check(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("not valid UTF-8")
	}
	err := walk(text)
	if err == nil || errors.Is(err, errLimit) {
		return err
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

func walk(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var stack []scope
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return endOf(stack)
		}
		if err != nil {
			return fmt.Errorf("%s (byte %d)", clip(err.Error(), 200), d.InputOffset())
		}
		if stack, err = step(stack, tok); err != nil {
			return err
		}
		if len(stack) == 0 {
			return trailing(text, d.InputOffset())
		}
	}
}

// scope is an open object or array.
type scope struct {
	names map[string]bool // nil in an array
	key   bool            // the next token is a name
}

func step(stack []scope, tok json.Token) ([]scope, error) {
	top := len(stack) - 1
	if d, ok := tok.(json.Delim); ok {
		return delimit(stack, d)
	}
	if n, ok := tok.(json.Number); ok {
		if err := checkNumber(string(n)); err != nil {
			return nil, err
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

// delimit opens or closes an object or array.
func delimit(stack []scope, d json.Delim) ([]scope, error) {
	top := len(stack) - 1
	if d == '}' || d == ']' {
		return stack[:top], nil
	}
	if len(stack) == MaxDepth {
		return nil, fmt.Errorf("%w: nested more than %d deep", errLimit, MaxDepth)
	}
	if top >= 0 && stack[top].names != nil {
		stack[top].key = true
	}
	next := scope{}
	if d == '{' {
		next = scope{names: map[string]bool{}, key: true}
	}
	return append(stack, next), nil
}

func checkNumber(n string) error {
	if len(n) > maxDigits {
		return fmt.Errorf("%w: the number %s has more than %d characters", errLimit, clip(n, 20), maxDigits)
	}
	at := strings.IndexAny(n, "eE")
	if at < 0 {
		return nil
	}
	exponent, err := strconv.Atoi(n[at+1:])
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return fmt.Errorf("%w: the exponent of the number %s is beyond %d", errLimit, clip(n, 40), maxExponent)
	}
	return nil
}

func endOf(stack []scope) error {
	if len(stack) > 0 {
		return errors.New("unexpected end: an object or array is not closed")
	}
	return errors.New("unexpected end")
}

func trailing(text string, offset int64) error {
	if strings.TrimSpace(text[offset:]) != "" {
		return fmt.Errorf("something follows the first value (byte %d)", offset)
	}
	return nil
}

// clip shortens a text for a message, at a character boundary.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
