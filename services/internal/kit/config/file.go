package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

func (l *loader) applyFile(dst reflect.Value, name string) {
	if name == "" {
		return
	}
	root, err := parse(name)
	if err != nil {
		l.fault("the file %s cannot be read: %v", name, err)
		return
	}
	if root != nil {
		l.structure(source{name}, "", dst, entries(root))
	}
}

// parse reads the file's mapping; nil for an empty file. It decodes all of it first, to find names that occur
// twice and values that contain themselves.
func parse(name string) (*yaml.Node, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		if bytes.Contains(text, []byte("\n\t")) {
			return nil, fmt.Errorf("%w; indent with spaces, for YAML takes no tabs there", err)
		}
		return nil, err
	}
	var document, second yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := documents.Decode(&second); err == nil {
		return nil, fmt.Errorf("a second document begins in line %d, and would be ignored: remove the --- to make them one", second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nil
	}
	return resolve(document.Content[0]), nil
}

// resolve follows an alias to its target.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// entries returns the values of a mapping by name, including those that `<<`
// merges.
func entries(mapping *yaml.Node) map[string]*yaml.Node {
	all := map[string]*yaml.Node{}
	for _, p := range jsontext.Pairs(mapping) {
		all[p.Name] = resolve(p.Value)
	}
	return all
}

// source is the file being read, for messages.
type source struct{ name string }

func (f source) at(path string) string { return f.name + ": " + path }

// structure sets the members of a struct. Keys of m that no member has are faults.
func (l *loader) structure(f source, path string, dst reflect.Value, m map[string]*yaml.Node) {
	known := map[string]bool{}
	l.membersFrom(f, path, dst, m, known)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !known[k] {
			l.noKey("%s is not a key of the configuration%s", f.at(path+k), l.meant(path, k, slices.Sorted(maps.Keys(known))))
		}
	}
}

func (l *loader) membersFrom(f source, path string, dst reflect.Value, m map[string]*yaml.Node, known map[string]bool) {
	for _, mem := range members(dst) {
		if mem.name == "" {
			l.membersFrom(f, path, mem.value, m, known)
			continue
		}
		known[mem.name] = true
		if raw, ok := m[mem.name]; ok {
			secret := mem.field.Tag.Get("secret") == "true"
			l.assign(f, path+mem.name, mem.value, raw, secret)
		}
	}
}

// assign sets v to a value of the file.
func (l *loader) assign(f source, path string, v reflect.Value, raw *yaml.Node, secret bool) {
	if raw.ShortTag() == "!!null" {
		if v.Kind() != reflect.Struct { // an empty section means nothing; an empty value is ambiguous
			l.fault("%s has no value: remove the key, or write \"\" for an empty text", f.at(path))
		}
		return
	}
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		l.assign(f, path, p.Elem(), raw, secret)
		v.Set(p)
		return
	}
	if v.Type() == reflect.TypeFor[JSON]() && raw.Kind == yaml.MappingNode {
		l.object(f, path, v, raw)
		return
	}
	if _, ok := v.Addr().Interface().(textual); ok {
		l.leaf(f, path, v, raw, secret)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if m, ok := l.mapping(f, path, raw); ok {
			l.structure(f, path+".", v, m)
		}
	case reflect.Map:
		l.mapFrom(f, path, v, raw, secret)
	case reflect.Slice:
		l.sliceFrom(f, path, v, raw, secret)
	default:
		l.leaf(f, path, v, raw, secret)
	}
}

// object converts a mapping of the file into the text of a JSON object.
func (l *loader) object(f source, path string, v reflect.Value, raw *yaml.Node) {
	text, err := jsontext.FromYAML(raw, nil)
	if err == nil {
		err = setText(v, text)
	}
	if err != nil {
		l.fault("%s: %v", f.at(path), err)
	}
}

func (l *loader) mapping(f source, path string, raw *yaml.Node) (map[string]*yaml.Node, bool) {
	if raw.Kind != yaml.MappingNode {
		l.fault("%s is %s and should be a mapping of keys to values", f.at(path), describe(raw))
		return nil, false
	}
	return entries(raw), true
}

// mapFrom adds the entries of the file to those in v. An entry in both starts from the one in v.
func (l *loader) mapFrom(f source, path string, v reflect.Value, raw *yaml.Node, secret bool) {
	m, ok := l.mapping(f, path, raw)
	if !ok {
		return
	}
	merged := reflect.MakeMap(v.Type())
	for _, k := range v.MapKeys() {
		merged.SetMapIndex(k, v.MapIndex(k))
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		key := reflect.ValueOf(k).Convert(v.Type().Key())
		e := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(key); old.IsValid() {
			e.Set(old)
		}
		l.assign(f, path+"."+k, e, m[k], secret)
		merged.SetMapIndex(key, e)
	}
	v.Set(merged)
}

// sliceFrom replaces a list.
func (l *loader) sliceFrom(f source, path string, v reflect.Value, raw *yaml.Node, secret bool) {
	if raw.Kind != yaml.SequenceNode {
		l.fault("%s is %s and should be a list", f.at(path), describe(raw))
		return
	}
	s := reflect.MakeSlice(v.Type(), len(raw.Content), len(raw.Content))
	for i, e := range raw.Content {
		l.assign(f, path+"["+strconv.Itoa(i)+"]", s.Index(i), resolve(e), secret)
	}
	v.Set(s)
}

// leaf sets a single value. A number or a boolean in place of a text is a fault: YAML has parsed it already,
// and its notation (010, 1e3, yes) is lost.
func (l *loader) leaf(f source, path string, v reflect.Value, raw *yaml.Node, secret bool) {
	text, ok := scalarText(v, raw)
	if !ok {
		l.fault("%s is %s and should be %s", f.at(path), describe(raw), wanted(v))
		return
	}
	if err := setText(v, text); err != nil {
		shown := fmt.Sprintf(" %q", text)
		if secret || v.Type() == reflect.TypeFor[Secret]() {
			shown = ""
		}
		l.fault("%s: the value%s %s", f.at(path), shown, err)
	}
}

// scalarText returns raw in the form of setText, if its kind fits v.
func scalarText(v reflect.Value, n *yaml.Node) (string, bool) {
	_, custom := v.Addr().Interface().(textual)
	duration := v.Type() == reflect.TypeFor[time.Duration]()
	switch r := plain(n).(type) {
	case string:
		return r, custom || duration || v.Kind() == reflect.String
	case bool:
		return strconv.FormatBool(r), v.Kind() == reflect.Bool
	case int, int64, uint64:
		text := fmt.Sprint(r)
		if duration {
			return text, text == "0"
		}
		return text, custom || v.CanInt() || v.CanUint() || v.CanFloat()
	case float64:
		return strconv.FormatFloat(r, 'g', -1, 64), v.CanFloat()
	}
	return "", false
}

// plain returns the value of a scalar as YAML reads it.
func plain(n *yaml.Node) any {
	var value any
	if n.Kind != yaml.ScalarNode || n.Decode(&value) != nil {
		return nil
	}
	return value
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
	}
	switch r := plain(n).(type) {
	case nil:
		return "empty"
	case bool:
		return "a truth value"
	case string:
		return "a text"
	case int, int64, uint64, float64:
		return "a number"
	default:
		return strings.TrimPrefix(fmt.Sprintf("a %T", r), "a time.")
	}
}

func wanted(v reflect.Value) string {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return "a duration with a unit, such as 30s"
	case v.Type() == reflect.TypeFor[Size]():
		return "a number of bytes such as 16MiB"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.Kind() == reflect.String:
		return "a text (quote it)"
	default:
		return "a number"
	}
}
