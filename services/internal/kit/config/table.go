package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Row is one key of a configuration, for documents.
type Row struct {
	Key     string // as in the file, sections joined by dots
	Flag    string // with its dashes; empty when only the file can set it
	Env     string // empty when the environment cannot set it
	Type    string // "text", "true or false", "duration", "bytes", "number", "list", "mapping"
	Default string // empty for secrets and for keys without a default
	Help    string
	Entry   []Row // the keys of one entry, for a mapping or a list of mappings; only Key, Type and Help are set
}

// Table returns the keys of dst, a pointer to a struct that holds the defaults, in the order of its fields.
func Table(dst any, o Options) []Row { return rows(fieldsOf(dst), o) }

func rows(fields []field, o Options) []Row {
	all := make([]Row, 0, len(fields))
	for _, f := range fields {
		r := Row{Key: f.key(), Type: typeName(f.value.Type()), Default: defaultText(f), Help: f.help, Entry: entry(f.value.Type(), "")}
		if f.scalar() {
			if name := f.flagName(); name != "-" {
				r.Flag = "--" + name
			}
			if name := f.envName(o.Prefix); name != "-" {
				r.Env = name
			}
		}
		all = append(all, r)
	}
	return all
}

// entry returns the keys of an entry of a mapping or list of structs, with those of the mappings and lists in
// it: `host`, `rules[].host`, `tenants.NAME.user.max-tokens`.
func entry(t reflect.Type, prefix string) []Row {
	if t.Kind() != reflect.Map && t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct || reflect.PointerTo(t.Elem()).Implements(reflect.TypeFor[textual]()) {
		return nil
	}
	return structRows(reflect.New(t.Elem()).Elem(), prefix)
}

func structRows(v reflect.Value, prefix string) []Row {
	var all []Row
	for _, m := range members(v) {
		switch key := prefix + m.name; {
		case m.value.Kind() == reflect.Struct && m.name == "":
			all = append(all, structRows(m.value, prefix)...)
		case m.value.Kind() == reflect.Struct:
			all = append(all, structRows(m.value, key+".")...)
		default:
			all = append(all, Row{Key: key, Type: typeName(m.value.Type()), Help: m.field.Tag.Get("help")})
			below := key + "[]."
			if m.value.Kind() == reflect.Map {
				below = key + ".NAME."
			}
			all = append(all, entry(m.value.Type(), below)...)
		}
	}
	return all
}

func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[Size]():
		return "bytes"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map || t.Kind() == reflect.Struct:
		return "mapping"
	case t.Kind() == reflect.String || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "text"
	default:
		return "number"
	}
}

func defaultText(f field) string {
	switch {
	case f.secret || f.value.IsZero() && f.value.Kind() != reflect.Bool && !isNumber(f.value):
		return ""
	case f.value.Kind() == reflect.Slice:
		parts := make([]string, f.value.Len())
		for i := range parts {
			parts[i] = fmt.Sprint(f.value.Index(i).Interface())
		}
		return strings.Join(parts, ",")
	case f.value.Kind() == reflect.Map:
		names := []string{}
		for _, k := range sortedKeys(f.value) {
			names = append(names, k.String())
		}
		return strings.Join(names, ", ")
	default:
		return fmt.Sprint(f.value.Interface())
	}
}

func isNumber(v reflect.Value) bool { return v.CanInt() || v.CanUint() || v.CanFloat() }
