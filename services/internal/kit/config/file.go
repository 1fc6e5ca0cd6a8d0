package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// noDelimiter keeps koanf from taking keys apart: names of agents and providers may hold any character but this one.
const noDelimiter = "\x00"

func (l *loader) applyFile(dst reflect.Value, name string) {
	if name == "" {
		return
	}
	k := koanf.New(noDelimiter)
	if err := k.Load(file.Provider(name), yaml.Parser()); err != nil {
		l.fault("the file %s cannot be read: %v", name, err)
		return
	}
	l.fromFile(source{name}, dst, k.Raw())
}

// source is the file being read, for messages.
type source struct{ name string }

func (f source) at(path string) string { return f.name + ": " + path }

// fromFile sets the struct dst from the mapping of the file.
func (l *loader) fromFile(f source, dst reflect.Value, m map[string]any) { l.structure(f, "", dst, m) }

// structure sets the members of a struct. Keys of m that no member has are faults.
func (l *loader) structure(f source, path string, dst reflect.Value, m map[string]any) {
	known := map[string]bool{}
	l.membersFrom(f, path, dst, m, known)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !known[k] {
			l.fault("%s is not a key of the configuration%s", f.at(path+k), nearest(k, slices.Sorted(maps.Keys(known))))
		}
	}
}

func (l *loader) membersFrom(f source, path string, dst reflect.Value, m map[string]any, known map[string]bool) {
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

// assign sets v to a value as the YAML parser gives it.
func (l *loader) assign(f source, path string, v reflect.Value, raw any, secret bool) {
	if raw == nil {
		if v.Kind() != reflect.Struct { // An empty section says nothing; an empty value might mean anything.
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
	case reflect.Interface:
		v.Set(reflect.ValueOf(raw))
	default:
		l.leaf(f, path, v, raw, secret)
	}
}

func (l *loader) mapping(f source, path string, raw any) (map[string]any, bool) {
	m, ok := raw.(map[string]any)
	if !ok {
		l.fault("%s is %s and should be a mapping of keys to values", f.at(path), describe(raw))
	}
	return m, ok
}

// mapFrom adds the entries of the file to those that v already holds; an entry named in both starts from the one in v.
func (l *loader) mapFrom(f source, path string, v reflect.Value, raw any, secret bool) {
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
func (l *loader) sliceFrom(f source, path string, v reflect.Value, raw any, secret bool) {
	list, ok := raw.([]any)
	if !ok {
		l.fault("%s is %s and should be a list", f.at(path), describe(raw))
		return
	}
	s := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, e := range list {
		l.assign(f, path+"["+strconv.Itoa(i)+"]", s.Index(i), e, secret)
	}
	v.Set(s)
}

// leaf sets a single value. A number or a truth value where a text is due is a fault: YAML has read it already, and what
// it was written like (010, 1e3, yes) is lost.
func (l *loader) leaf(f source, path string, v reflect.Value, raw any, secret bool) {
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

// scalarText returns raw as setText takes it, when its kind fits v.
func scalarText(v reflect.Value, raw any) (string, bool) {
	_, custom := v.Addr().Interface().(textual)
	duration := v.Type() == reflect.TypeFor[time.Duration]()
	switch r := raw.(type) {
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

func describe(raw any) string {
	switch r := raw.(type) {
	case nil:
		return "empty"
	case map[string]any, map[any]any:
		return "a mapping"
	case []any:
		return "a list"
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
