package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// field is one key of the configuration.
type field struct {
	path   []string // the names of the sections, then its own
	help   string
	env    string // the name of its own, if any; "-" for none
	flag   string // likewise
	secret bool
	value  reflect.Value
}

func (f field) key() string { return strings.Join(f.path, ".") }

func (f field) flagName() string {
	if f.flag != "" {
		return f.flag
	}
	return f.key()
}

func (f field) envName(prefix string) string {
	if f.env != "" || prefix == "" {
		return f.env
	}
	return prefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(f.key()))
}

// scalar reports whether a text can be the field's value, as the environment and flags require.
func (f field) scalar() bool {
	t := f.value.Type()
	return t.Kind() != reflect.Map && t.Kind() != reflect.Struct && (t.Kind() != reflect.Slice || t.Elem().Kind() == reflect.String)
}

// fieldsOf lists the keys of dst, which must be a pointer to a struct. It panics on a struct with faulty
// tags: that is a programming error, found by its first test.
func fieldsOf(dst any) []field {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: %T is not a pointer to a struct", dst))
	}
	fields := collect(v.Elem(), nil)
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.key()] {
			panic(fmt.Sprintf("config: %T has the key %s twice", dst, f.key()))
		}
		seen[f.key()] = true
	}
	return fields
}

func collect(v reflect.Value, path []string) []field {
	var all []field
	for _, m := range members(v) {
		at := path
		if m.name != "" {
			at = append(slices.Clone(path), m.name)
		}
		if m.value.Kind() == reflect.Struct {
			all = append(all, collect(m.value, at)...)
			continue
		}
		if !supported(m.value.Type()) {
			panic(fmt.Sprintf("config: %s.%s: a %s cannot be configured", v.Type(), m.field.Name, m.value.Type()))
		}
		tag := m.field.Tag
		all = append(all, field{
			path: at, help: tag.Get("help"), env: tag.Get("env"), flag: tag.Get("flag"), value: m.value,
			secret: tag.Get("secret") == "true" || m.value.Type() == reflect.TypeFor[Secret](),
		})
	}
	return all
}

// supported reports whether setText, or the file, can set a value of type t.
func supported(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr, reflect.Complex64, reflect.Complex128, reflect.Array, reflect.Pointer:
		return reflect.PointerTo(t).Implements(reflect.TypeFor[textual]())
	case reflect.Map:
		return t.Key().Kind() == reflect.String
	default:
		return true
	}
}

// member is a field of a Go struct that belongs to the configuration; its name is empty when it is inlined.
type member struct {
	name  string
	field reflect.StructField
	value reflect.Value
}

func members(v reflect.Value) []member {
	var all []member
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		tag, tagged := sf.Tag.Lookup("key")
		switch {
		case tag == "-" || (!sf.IsExported() && !sf.Anonymous):
		case !sf.IsExported() && sf.Type.Kind() == reflect.Struct: // reflection cannot call its Validate
			panic(fmt.Sprintf("config: the embedded type %s of %s must be exported", sf.Type, v.Type()))
		case tag == ",inline" || (sf.Anonymous && !tagged && sf.Type.Kind() == reflect.Struct):
			all = append(all, member{field: sf, value: v.Field(i)})
		case tag != "":
			all = append(all, member{name: tag, field: sf, value: v.Field(i)})
		}
	}
	return all
}

// walk calls visit for every struct of the configuration below v, inner ones first, with its path and a
// separator.
func walk(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for _, m := range members(v) {
			at := path
			if m.name != "" {
				at += m.name + "."
			}
			walk(m.value, at, visit)
		}
		visit(path, v)
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			entry := reflect.New(v.Type().Elem()).Elem() // values in a map are not addressable, so their pointer methods cannot be called
			entry.Set(v.MapIndex(k))
			walk(entry, path+k.String()+".", visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i), visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, visit)
		}
	default:
	}
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
