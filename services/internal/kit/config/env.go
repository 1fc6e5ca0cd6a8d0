package config

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
)

// environ returns the environment and reports unknown names of ours.
func (l *loader) environ() map[string]string {
	env := make(map[string]string, len(l.Environ))
	for _, e := range l.Environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		}
	}
	known := map[string]bool{}
	for _, f := range l.fields {
		known[f.envName(l.Prefix)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(name, Project) && !known[name] && !l.leftToOthers(name) {
			l.noKey("%s in the environment is not a name that %s knows%s", name, l.Name, nearest(name, slices.Sorted(maps.Keys(known))))
		}
	}
	return env
}

// leftToOthers reports whether name belongs to other programs. No name under the program's own prefix
// does.
func (l *loader) leftToOthers(name string) bool {
	if name == Project+"CONFIG" {
		return true
	}
	for _, other := range slices.Concat(l.IgnoreEnv, foreign) {
		if l.Prefix != "" && strings.HasPrefix(other, l.Prefix) && slices.Contains(foreign, other) && strings.HasSuffix(other, "_") {
			continue
		}
		if name == other || (strings.HasSuffix(other, "_") && strings.HasPrefix(name, other)) {
			return true
		}
	}
	return false
}

func (l *loader) applyEnv(env map[string]string) {
	for _, f := range l.fields {
		name := f.envName(l.Prefix)
		if v, ok := env[name]; ok && name != "" && name != "-" {
			l.set(f, name, v)
		}
	}
}

// text is the raw value of a flag: every use of the flag, in order.
type text struct {
	values map[string][]string
	name   string
	bool   bool
}

func (t text) String() string     { return "" }
func (t text) IsBoolFlag() bool   { return t.bool }
func (t text) Set(v string) error { t.values[t.name] = append(t.values[t.name], v); return nil }

// parseFlags returns the values of every given flag, and reports unknown flags and stray arguments.
func (l *loader) parseFlags() map[string][]string {
	values := map[string][]string{}
	set := flag.NewFlagSet(l.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.BoolFunc("help", "", func(string) error { l.help = true; return nil })
	if l.FileFlag != "-" {
		set.Var(text{values: values, name: l.FileFlag}, l.FileFlag, "")
	}
	names := []string{"help", l.FileFlag}
	for _, f := range l.fields {
		name := f.flagName()
		if name != "-" && set.Lookup(name) == nil {
			set.Var(text{values, name, f.value.Kind() == reflect.Bool}, name, "")
			names = append(names, name)
		}
	}
	rest := l.Args
	for { // Parse stops at the first fault; continue behind it to find the others
		before := rest
		err := set.Parse(rest)
		rest = set.Args()
		if err == nil {
			break
		}
		if len(rest) == len(before) { // Parse does not consume an argument that is no flag at all ("-=x")
			rest = rest[1:]
		}
		given, _, _ := strings.Cut(strings.TrimLeft(before[len(before)-len(rest)-1], "-"), "=")
		l.fault("--%s: %s%s", given, flagFault(set, given), l.nearestFlag(set, given, names))
	}
	if l.Rest != nil {
		*l.Rest = rest
	} else if len(rest) > 0 {
		l.fault("the argument %q is no flag and %s takes no other; write --name=value", rest[0], l.Name)
	}
	return values
}

func flagFault(set *flag.FlagSet, name string) string {
	if set.Lookup(name) != nil {
		return "the flag needs a value"
	}
	return "there is no such flag"
}

func (l *loader) nearestFlag(set *flag.FlagSet, name string, names []string) string {
	if set.Lookup(name) != nil {
		return ""
	}
	return l.meant("", name, names)
}

// meant proposes the key that an unknown one at path is meant to be: at the top,
// the same key below a section comes before a similar key.
func (l *loader) meant(path, name string, known []string) string {
	var below []string
	for _, f := range l.fields {
		if path == "" && len(f.path) > 1 && strings.HasPrefix(f.key()+".", f.path[0]+"."+name+".") {
			below = append(below, f.path[0]+"."+name)
		}
	}
	if below = slices.Compact(below); len(below) > 0 {
		return "; did you mean " + strings.Join(below, " or ") + "?"
	}
	return nearest(name, known)
}

// Nearest returns a hint at the known name that is closest to a mistyped one, as the
// end of a sentence; "" if none is close.
func Nearest(name string, known []string) string { return nearest(name, known) }

// nearest returns a hint at the known name that is closest to a mistyped one.
func nearest(name string, known []string) string {
	best, at := "", max(2, len(name)/4)+1
	for _, k := range known {
		if d := distance(name, k); k != "" && k != "-" && d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance returns the number of single-character edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

func (l *loader) usage() {
	w := l.Usage
	if w == nil {
		w = os.Stdout
	}
	_, _ = fmt.Fprintf(w, "Usage of %s:\n", l.Name)
	if l.FileFlag != "-" {
		_, _ = fmt.Fprintf(w, "  --%s FILE\n      YAML file with the keys below (environment: %sCONFIG)\n", l.FileFlag, Project)
	}
	for _, r := range rows(l.fields, l.Options) {
		if r.Flag == "" && r.Env == "" {
			continue
		}
		name := r.Flag
		if name == "" {
			name = "(no flag) " + r.Key
		}
		_, _ = fmt.Fprintf(w, "  %s", name)
		if r.Default != "" {
			_, _ = fmt.Fprintf(w, " (default %s)", r.Default)
		}
		_, _ = fmt.Fprintf(w, "\n      %s", r.Help)
		if r.Env != "" {
			_, _ = fmt.Fprintf(w, " (environment: %s)", r.Env)
		}
		_, _ = fmt.Fprintln(w)
	}
}
