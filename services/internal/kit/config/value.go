package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// Secret is a text that prints as "[redacted]" in fmt, slog and JSON. Reveal returns it.
type Secret string

const redacted = "[redacted]"

// Reveal returns the secret itself; pass it on, never print it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret, and shows only whether it is set.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// Format hides the secret from every verb of fmt.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = f.Write([]byte(text))
}

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the secret from JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Size is a number of bytes, written plainly (4096) or with a unit (16MiB, 1.5GB).
type Size int64

var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// String formats the size with the largest binary unit that keeps it whole.
func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if n := Size(units[i].bytes); s != 0 && s%n == 0 {
			return strconv.FormatInt(int64(s/n), 10) + units[i].name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// UnmarshalText reads the output of String, and also decimal units and fractions.
func (s *Size) UnmarshalText(text []byte) error {
	in, factor := strings.TrimSpace(string(text)), 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(in, u.name); ok {
			in, factor = strings.TrimSpace(n), u.bytes
			break
		}
	}
	if n, err := strconv.ParseInt(in, 10, 64); err == nil && factor == 1 {
		*s = Size(n)
		return nil
	}
	n, err := strconv.ParseFloat(in, 64)
	if bytes := n * factor; err == nil && math.Abs(bytes) < 1<<62 && bytes == math.Trunc(bytes) {
		*s = Size(bytes)
		return nil
	}
	return errors.New("is not a number of bytes such as 4096, 16MiB or 2GB")
}

// JSON is the text of a JSON object, without white space. In the file it is a mapping, whose numbers keep
// every digit, or a text with the object.
type JSON string

// UnmarshalText reads the text of an object; empty text means no object.
func (j *JSON) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*j = ""
		return nil
	}
	if _, err := jsontext.Object(string(text)); err != nil {
		return fmt.Errorf("is %w", err)
	}
	compact, err := jsontext.Compact(string(text))
	*j = JSON(compact)
	return err
}

// textual is implemented by types of the configuration that parse themselves.
type textual interface{ UnmarshalText(text []byte) error }

// setText sets v to the parsed text. Its error continues the sentence "the value
// …".
func setText(v reflect.Value, text string) error {
	if t, ok := v.Addr().Interface().(textual); ok {
		return t.UnmarshalText([]byte(text))
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("is not a duration such as 500ms, 30s or 1h30m")
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		return setBool(v, text)
	case reflect.Slice:
		return setList(v, text)
	default:
		return setNumber(v, text)
	}
	return nil
}

func setBool(v reflect.Value, text string) error {
	switch text {
	case "true", "1":
		v.SetBool(true)
	case "false", "0":
		v.SetBool(false)
	default:
		return errors.New("is neither true nor false")
	}
	return nil
}

// setList reads a comma-separated list; the empty text is the empty list.
func setList(v reflect.Value, text string) error {
	list := reflect.MakeSlice(v.Type(), 0, 0)
	if text != "" {
		for part := range strings.SplitSeq(text, ",") {
			e := reflect.New(v.Type().Elem()).Elem()
			e.SetString(strings.TrimSpace(part))
			list = reflect.Append(list, e)
		}
	}
	v.Set(list)
	return nil
}

func setNumber(v reflect.Value, text string) error {
	bits := 0
	if v.CanInt() || v.CanUint() || v.CanFloat() {
		bits = v.Type().Bits()
	}
	switch {
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return fmt.Errorf("is not a whole number of %d bits", bits)
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return fmt.Errorf("is not a whole number from 0 on of %d bits", bits)
		}
		v.SetUint(n)
	case v.CanFloat():
		n, err := strconv.ParseFloat(text, bits)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return errors.New("is not a number")
		}
		v.SetFloat(n)
	default:
		panic(fmt.Sprintf("config: a field of type %s cannot be configured", v.Type()))
	}
	return nil
}
