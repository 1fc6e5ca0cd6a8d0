// Package config fills a struct from defaults, a YAML file, the environment and flags, each stronger than the one before.
//
// The struct is the documentation: a field's tags say its key and its help, its value before Load is its default.
//
//	type Config struct {
//		LeaseTTL time.Duration    `key:"lease-ttl" help:"how long …"`
//		Database config.Secret    `key:"database-url" env:"FAIRLEAD_DATABASE_URL" help:"…"`
//		Log      telemetry.Config `key:"log"`     // a section
//		Server   rpc.Config       `key:",inline"` // its keys are keys of this struct
//		Clock    func() time.Time                 // without a key: not part of the configuration
//	}
//
// Tags: key (the name; in a struct field, the name of a section; an embedded struct without one is inlined),
// help (one sentence), env (a name of its own instead of the derived one; "-" for none), flag (likewise).
// The key lease-ttl of the section session is --session.lease-ttl, PREFIX_SESSION_LEASE_TTL and session: {lease-ttl: …}.
//
// Load accepts what it understands and names everything else: unknown keys in the file, unknown names in the environment
// under our prefix, unknown flags, values of a wrong form and what the Validate methods say, all in one error.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
)

// Project is the prefix of all our names in the environment.
const Project = "FAIRLEAD_"

// ErrHelp is returned by Load after it has printed the usage for --help. program.Main then
// exits with code 0.
var ErrHelp = errors.New("config: help requested")

// Options say what Load reads.
type Options struct {
	// Name of the program, for messages.
	Name string
	// Prefix of names in the environment, "FAIRLEAD_SESSION_". Without one only fields with an env tag read the environment.
	Prefix string
	// FileFlag is the flag that names the YAML file; "config" if empty, and "-" for none.
	// Its name in the environment is FAIRLEAD_CONFIG.
	FileFlag string
	// File is read when neither the flag nor the environment names a file; empty for
	// none.
	File string
	// Args are the arguments after the program's name. Arguments that are not flags are a fault unless Rest
	// takes them.
	Args []string
	// Rest receives the arguments from the first one that is not a flag; nil refuses
	// them.
	Rest *[]string
	// Environ replaces os.Environ, for tests.
	Environ []string
	// IgnoreEnv are further names of ours that belong to other programs; one that ends in "_" stands for all
	// with this prefix.
	IgnoreEnv []string
	// Usage receives the output of --help; os.Stdout if nil.
	Usage io.Writer
}

// foreign are the names in the environment that belong to a service or to an interactive user. They are not a
// fault in the environment of another service.
var foreign = []string{
	"FAIRLEAD_SESSION_", "FAIRLEAD_TOOLS_", "FAIRLEAD_SANDBOX_", "FAIRLEAD_GATEWAY_",
	"FAIRLEAD_DATABASE_URL", "FAIRLEAD_INTERNAL_KEY", "FAIRLEAD_INTERNAL_PUBLIC_KEYS", "FAIRLEAD_MODEL", "FAIRLEAD_CONFIG", "FAIRLEAD_SERVER", "FAIRLEAD_ENVIRONMENT_KEY",
}

// Validator may be implemented by a struct of the configuration, or a pointer to it. Load calls every one,
// inner first, including those in maps and slices, and reports all faults together. Join several faults with
// errors.Join, and begin each with its key.
type Validator interface{ Validate() error }

// Load fills dst, a pointer to a struct that holds the defaults. The error names every fault, one a line.
// dst is unspecified after an error.
func Load(dst any, o Options) error {
	l := loader{Options: o, fields: fieldsOf(dst)}
	if l.FileFlag == "" {
		l.FileFlag = "config"
	}
	if l.Environ == nil {
		l.Environ = os.Environ()
	}
	flags := l.parseFlags()
	if l.help {
		l.usage()
		return ErrHelp
	}
	env := l.environ()
	l.applyFile(reflect.ValueOf(dst).Elem(), l.fileName(flags, env))
	l.applyEnv(env)
	l.applyFlags(flags)
	if len(l.faults) == l.unknown { // a value that could not be read would be reported twice
		for _, e := range flatten(Check(dst)) {
			l.fault("%s", e)
		}
	}
	if len(l.faults) == 0 {
		return nil
	}
	return &Error{Name: o.Name, Faults: l.faults}
}

// Error has every fault of a configuration.
type Error struct {
	Name   string
	Faults []string
}

// Error lists the faults, one a line.
func (e *Error) Error() string {
	name := e.Name
	if name == "" {
		name = "this program"
	}
	if len(e.Faults) == 1 {
		return "the configuration of " + name + " is wrong: " + e.Faults[0]
	}
	return fmt.Sprintf("the configuration of %s has %d faults:\n  - %s", name, len(e.Faults), strings.Join(e.Faults, "\n  - "))
}

type loader struct {
	Options
	fields  []field
	faults  []string
	unknown int // the faults that are names of no key
	help    bool
}

// noKey reports a name that is not one of a key.
func (l *loader) noKey(format string, args ...any) {
	before := len(l.faults)
	l.fault(format, args...)
	l.unknown += len(l.faults) - before
}

func (l *loader) fault(format string, args ...any) {
	f := fmt.Sprintf(format, args...)
	if !slices.Contains(l.faults, f) {
		l.faults = append(l.faults, f)
	}
}

// set sets the field to the value text of source (an env name or a flag).
func (l *loader) set(f field, source, text string) {
	if !f.scalar() {
		l.fault("%s (key %s): can only be set in the file", source, f.key())
		return
	}
	if err := setText(f.value, text); err != nil {
		shown := fmt.Sprintf(" %q", text)
		if f.secret {
			shown = ""
		}
		l.fault("%s (key %s): the value%s %s", source, f.key(), shown, err)
	}
}

func (l *loader) fileName(flags map[string][]string, env map[string]string) string {
	if l.FileFlag == "-" {
		return ""
	}
	if v := flags[l.FileFlag]; len(v) > 0 {
		return v[len(v)-1]
	}
	if v, ok := env[Project+"CONFIG"]; ok && v != "" {
		return v
	}
	return l.File
}

func (l *loader) applyFlags(flags map[string][]string) {
	for _, f := range l.fields {
		name := f.flagName()
		for i, v := range flags[name] {
			if f.value.Kind() == reflect.Slice && i > 0 { // a repeated flag adds to a list
				before := reflect.AppendSlice(reflect.Zero(f.value.Type()), f.value)
				l.set(f, "--"+name, v)
				f.value.Set(reflect.AppendSlice(before, f.value))
				continue
			}
			l.set(f, "--"+name, v)
		}
	}
}

// Check returns the faults of every Validate method below c, a pointer: inner ones first, with
// the names that Load uses.
func Check(c any) error {
	var faults []error
	walk(reflect.ValueOf(c).Elem(), "", func(path string, v reflect.Value) {
		val, ok := v.Interface().(Validator)
		if !ok && v.CanAddr() {
			val, ok = v.Addr().Interface().(Validator)
		}
		if !ok {
			return
		}
		for _, e := range flatten(val.Validate()) {
			faults = append(faults, fmt.Errorf("%s%w", path, e))
		}
	})
	return errors.Join(faults...)
}

// flatten splits errors of errors.Join, so that each fault is a line.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	j, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range j.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
