package guardrail

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Default is the profile of models that name none.
const Default = "default"

// Ways in which a rule ends a turn.
const (
	EndFailed  = "failed"
	EndPartial = "partial"
)

// Config is one profile of guardrails. Missing rules are those of the profile
// `default`; 0 switches a rule off.
type Config struct {
	MaxToolFailures *int   `key:"max-tool-failures" help:"the most consecutive tool calls that may fail; 0: no limit"`
	ToolFailuresEnd string `key:"tool-failures-end" help:"how the turn then ends: failed or partial"`
	MaxRepeats      *int   `key:"max-repeated-calls" help:"how often the same call, or the same round of up to four calls, may be made in a row; 0: no limit"`
	RepeatsEnd      string `key:"repeated-calls-end" help:"how the turn then ends: failed or partial"`
	MaxSilent       *int   `key:"max-silent-steps" help:"the most consecutive steps without text for the user; 0: no limit"`
	SilentEnd       string `key:"silent-steps-end" help:"how the turn then ends: failed or partial"`
	MaxTodo         *int   `key:"max-todo-steps" help:"the most consecutive steps that only change the to-do list; 0: no limit"`
	TodoEnd         string `key:"todo-steps-end" help:"how the turn then ends: failed or partial"`
}

// Defaults returns the default profiles.
func Defaults() map[string]Config {
	n := func(n int) *int { return &n }
	return map[string]Config{Default: {
		MaxToolFailures: n(10), ToolFailuresEnd: EndFailed, MaxRepeats: n(10), RepeatsEnd: EndFailed,
		MaxSilent: n(50), SilentEnd: EndPartial, MaxTodo: n(5), TodoEnd: EndPartial,
	}}
}

// Profiles has the rules of each profile, by name.
type Profiles map[string]Rules

// New reads the configured profiles. It reports every fault at once.
func New(configured map[string]Config) (Profiles, error) {
	base := Defaults()[Default].over(configured[Default])
	profiles := Profiles{Default: base.rules()}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		c := base.over(configured[name])
		faults = append(faults, c.check("guardrails."+name))
		profiles[name] = c.rules()
	}
	return profiles, errors.Join(faults...)
}

// Get returns a profile; "" means the default one.
func (p Profiles) Get(name string) (Rules, error) {
	if name == "" {
		name = Default
	}
	r, ok := p[name]
	if !ok {
		return Rules{}, fmt.Errorf("there is no profile of guardrails %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(p)), ", "))
	}
	return r, nil
}

// over returns the profile with the values that are set in set.
func (c Config) over(set Config) Config {
	for _, n := range []struct{ dst, from **int }{
		{&c.MaxToolFailures, &set.MaxToolFailures}, {&c.MaxRepeats, &set.MaxRepeats}, {&c.MaxSilent, &set.MaxSilent}, {&c.MaxTodo, &set.MaxTodo},
	} {
		if *n.from != nil {
			*n.dst = *n.from
		}
	}
	for _, s := range []struct{ dst, from *string }{
		{&c.ToolFailuresEnd, &set.ToolFailuresEnd}, {&c.RepeatsEnd, &set.RepeatsEnd}, {&c.SilentEnd, &set.SilentEnd}, {&c.TodoEnd, &set.TodoEnd},
	} {
		if *s.from != "" {
			*s.dst = *s.from
		}
	}
	return c
}

func (c Config) check(path string) error {
	var faults []error
	for _, r := range []struct {
		key, endKey, end string
		most             int
	}{
		{"max-tool-failures", "tool-failures-end", c.ToolFailuresEnd, *c.MaxToolFailures},
		{"max-repeated-calls", "repeated-calls-end", c.RepeatsEnd, *c.MaxRepeats},
		{"max-silent-steps", "silent-steps-end", c.SilentEnd, *c.MaxSilent},
		{"max-todo-steps", "todo-steps-end", c.TodoEnd, *c.MaxTodo},
	} {
		if r.most < 0 || r.most > maxMost {
			faults = append(faults, fmt.Errorf("%s.%s: %d is not between 0 and %d", path, r.key, r.most, maxMost))
		}
		if r.end != EndFailed && r.end != EndPartial {
			faults = append(faults, fmt.Errorf("%s.%s: %q is not failed or partial", path, r.endKey, r.end))
		}
	}
	return errors.Join(faults...)
}

func (c Config) rules() Rules {
	return Rules{
		Failures: Rule{*c.MaxToolFailures, c.ToolFailuresEnd == EndPartial},
		Repeats:  Rule{*c.MaxRepeats, c.RepeatsEnd == EndPartial},
		Silent:   Rule{*c.MaxSilent, c.SilentEnd == EndPartial},
		Todo:     Rule{*c.MaxTodo, c.TodoEnd == EndPartial},
	}
}
