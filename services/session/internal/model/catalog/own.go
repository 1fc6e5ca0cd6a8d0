package catalog

import (
	"fmt"
	"strconv"
	"strings"
)

// OwnEntry is a tenant's own entry: another name of a model, perhaps with narrower limits.
type OwnEntry struct {
	Target                                         string
	ContextTokens, MaxOutputTokens, ThinkingTokens int64
	Temperature, TopP                              *float64
}

// Fault is what is wrong with a field of an own entry.
type Fault struct{ Field, Text string } //nolint:errname // agents and models have faults

// Error describes the fault.
func (f *Fault) Error() string { return f.Field + ": " + f.Text }

// Narrow returns the model of an own entry. The error is a *Fault.
func (c *Catalog) Narrow(name string, o OwnEntry) (Entry, error) {
	if strings.HasPrefix(o.Target, Own+":") {
		return Entry{}, &Fault{"target", "an entry of a tenant cannot lead to another one; name a model of the server"}
	}
	e, err := c.Resolve(o.Target)
	if err != nil {
		return Entry{}, &Fault{"target", err.Error()}
	}
	for _, limit := range []struct {
		field   string
		most    *int64
		set     int64
		unknown bool // whether a limit of 0 is one that is not known
	}{
		{"context_tokens", &e.ContextTokens, o.ContextTokens, true},
		{"max_output_tokens", &e.MaxOutputTokens, o.MaxOutputTokens, false},
		{"thinking_tokens", &e.ThinkingTokens, o.ThinkingTokens, false},
	} {
		if limit.set > *limit.most && (*limit.most > 0 || !limit.unknown) {
			return Entry{}, &Fault{limit.field, fmt.Sprintf("%d is more than the %d of %s; an own entry only narrows", limit.set, *limit.most, e.Name)}
		}
		keep(limit.most, limit.set)
	}
	keep(&e.Temperature, decimal(o.Temperature))
	keep(&e.TopP, decimal(o.TopP))
	if e.Kind == KindAnthropic && e.sampled() && o.ThinkingTokens == 0 {
		e.ThinkingTokens, e.Thinking = 0, ""
	} else if e.Kind == KindAnthropic && e.ThinkingTokens >= e.MaxOutputTokens {
		e.ThinkingTokens = e.MaxOutputTokens - 1
	}
	if err := e.fits(c.providers[e.Provider]); err != nil {
		return Entry{}, &Fault{"temperature", err.Error()}
	}
	e.Name, e.Own = name, true
	return e, nil
}

func decimal(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'g', -1, 64)
}
