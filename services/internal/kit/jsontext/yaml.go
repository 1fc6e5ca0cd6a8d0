package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// FromYAML converts a YAML value into JSON text: names keep their order and numbers their digits. mapString,
// unless it is nil, changes every string value. The error names the line.
//
// The caller must have decoded the whole document before, so that YAML's own checks have found names that
// occur twice and values that contain themselves.
func FromYAML(n *yaml.Node, mapString func(string) string) (string, error) {
	if mapString == nil {
		mapString = func(s string) string { return s }
	}
	w := yamlWriter{mapString: mapString}
	if err := w.value(n); err != nil {
		return "", err
	}
	return w.String(), nil
}

type yamlWriter struct {
	bytes.Buffer
	mapString func(string) string
}

func (w *yamlWriter) value(n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return w.value(n.Content[0])
	case yaml.AliasNode:
		return w.value(n.Alias)
	case yaml.MappingNode:
		return w.object(n)
	case yaml.SequenceNode:
		return w.array(n)
	default:
		return w.scalar(n)
	}
}

func (w *yamlWriter) object(n *yaml.Node) error {
	w.WriteByte('{')
	for i, p := range Pairs(n) {
		if i > 0 {
			w.WriteByte(',')
		}
		w.text(p.Name)
		w.WriteByte(':')
		if err := w.value(p.Value); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func (w *yamlWriter) array(n *yaml.Node) error {
	w.WriteByte('[')
	for i, e := range n.Content {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := w.value(e); err != nil {
			return err
		}
	}
	w.WriteByte(']')
	return nil
}

// text writes a JSON string, without the escapes that only HTML needs.
func (w *yamlWriter) text(s string) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) //nolint:errchkjson // a string and a buffer cannot fail
	w.Truncate(w.Len() - 1)
}

const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle

func (w *yamlWriter) scalar(n *yaml.Node) error {
	if n.Style&quoted == 0 && isNumber(n.Value) { // also a number that is too large for YAML's own types, such as 1e400
		w.WriteString(n.Value)
		return nil
	}
	switch n.ShortTag() {
	case "!!null":
		w.WriteString("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return err
		}
		fmt.Fprint(w, b)
	case "!!int", "!!float":
		number, ok := plainNumber(n.Value)
		if !ok {
			return fmt.Errorf("line %d: JSON has no number %s", n.Line, clip(n.Value, 40))
		}
		w.WriteString(number)
	default:
		w.text(w.mapString(n.Value))
	}
	return nil
}

func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

var decimal = regexp.MustCompile(`^([-+]?)0*([0-9]*)(\.?)([0-9]*)([eE].*)?$`)

// plainNumber converts a number of YAML, such as 0x1F, 1_000, .5 or +1, into JSON.
func plainNumber(s string) (string, bool) {
	s = strings.ReplaceAll(s, "_", "")
	if n, ok := new(big.Int).SetString(s, 0); ok {
		return n.String(), true
	}
	parts := decimal.FindStringSubmatch(s)
	if parts == nil {
		return "", false
	}
	sign, whole, point, fraction, exponent := strings.TrimPrefix(parts[1], "+"), parts[2], parts[3], parts[4], parts[5]
	if whole == "" {
		whole = "0"
	}
	if point != "" && fraction == "" {
		fraction = "0"
	}
	s = sign + whole + point + fraction + exponent
	return s, isNumber(s)
}

// Pair is a name of a mapping and its value.
type Pair struct {
	Name  string
	Value *yaml.Node
}

// Pairs lists a mapping in its order. The entries that `<<` merges come last and replace
// none.
func Pairs(n *yaml.Node) []Pair {
	var own, merged []Pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, mergedPairs(value)...)
			continue
		}
		own = append(own, Pair{Name: nameOf(key), Value: value})
	}
	for _, p := range merged {
		if !slices.ContainsFunc(own, func(o Pair) bool { return o.Name == p.Name }) {
			own = append(own, p)
		}
	}
	return own
}

func mergedPairs(n *yaml.Node) []Pair {
	switch n.Kind {
	case yaml.AliasNode:
		return mergedPairs(n.Alias)
	case yaml.MappingNode:
		return Pairs(n)
	default:
		var all []Pair
		for _, e := range n.Content {
			all = append(all, mergedPairs(e)...)
		}
		return all
	}
}

func nameOf(key *yaml.Node) string {
	if key.Kind == yaml.AliasNode {
		return key.Alias.Value
	}
	return key.Value
}
