package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// modeMark begins the mode in a model's name, as in `anthropic:claude-opus-5-5:mode=thinking`.
const modeMark = ":mode="

const (
	// maxAsked bounds the models that are remembered beside the tables.
	maxAsked = 1000
	// maxName bounds the name of a model, in bytes.
	maxName = 512
)

// Mode returns the mode in the name, or in that of an own entry's target; most often there is none.
func (e Entry) Mode() string { return e.mode }

// route leads a name without a provider to a provider or a model.
type route struct{ pattern, target string }

// builtinRoutes are the names that say which vendor's they are.
var builtinRoutes = map[string]string{"claude-*": KindAnthropic, "gpt-*": KindOpenAI}

// routes returns the routes, the most exact pattern first.
func (c Config) routes() []route {
	all := maps.Clone(builtinRoutes)
	maps.Copy(all, c.Routes)
	var out []route
	for pattern, target := range all {
		out = append(out, route{pattern, target})
	}
	slices.SortFunc(out, func(a, b route) int {
		literal := func(p string) int { return len(p) - 100*strings.Count(p, "*") }
		return cmp.Or(cmp.Compare(literal(b.pattern), literal(a.pattern)), strings.Compare(a.pattern, b.pattern))
	})
	return out
}

// Resolve finds a model by its name: `provider:model`, a name or pattern of
// `model-routes`, each perhaps with a mode. A model of a known provider that is in no
// table has conservative limits and no price. The error lists the existing models and
// says how to add one. A model without a key is found; its streams fail with an
// Authentication error that says what to set.
func (c *Catalog) Resolve(name string) (Entry, error) {
	if e, ok := c.entries[name]; ok {
		return e, nil
	}
	if len(name) > maxName {
		return Entry{}, fmt.Errorf("the name %.40q… of a model has %d bytes; it may have %d", name, len(name), maxName)
	}
	plain, mode, hasMode := strings.Cut(c.routed(name), modeMark)
	if !wellFormed(plain) {
		return Entry{}, fmt.Errorf("the model %q is not of the form provider:model, and no route of model-routes fits it; there are %s", name, strings.Join(c.Names(), ", "))
	}
	e, err := c.plain(plain)
	if err != nil || !hasMode {
		return e, err
	}
	return c.inMode(e, mode)
}

// Configured finds a model that the configuration names, as Resolve does, and lists it.
func (c *Catalog) Configured(name string) (Entry, error) {
	e, err := c.Resolve(name)
	if err != nil || !e.Unlisted {
		return e, err
	}
	plain, err := c.plain(e.Provider + ":" + e.ModelName)
	if err != nil {
		return Entry{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named[plain.Name] = plain
	return e, nil
}

// routed returns the name to which the routes lead.
func (c *Catalog) routed(name string) string {
	plain, mode, hasMode := strings.Cut(name, modeMark)
	if strings.Contains(plain, ":") {
		return name
	}
	for _, r := range c.routes {
		if ok, err := path.Match(r.pattern, plain); err != nil || !ok {
			continue
		}
		target := r.target
		if !strings.Contains(target, ":") {
			target += ":" + plain
		}
		if hasMode && !strings.Contains(target, modeMark) {
			target += modeMark + mode
		}
		return target
	}
	return name
}

// plain finds a model by `provider:model`.
func (c *Catalog) plain(name string) (Entry, error) {
	if e, ok := c.entries[name]; ok {
		return e, nil
	}
	providerName, modelName, _ := strings.Cut(name, ":")
	p := c.providers[providerName]
	if p == nil || p.Kind == KindScripted {
		return Entry{}, fmt.Errorf("the model %q is not known%s", name, c.hint(name))
	}
	return c.remember(name, func() (Entry, error) {
		e, err := c.config.entry(p, providerName, modelName, Limits{ContextTokens: fallbackContext})
		e.Unlisted = true
		return e, err
	})
}

func (c *Catalog) inMode(e Entry, mode string) (Entry, error) {
	l, ok := e.ofMode(e.Kind, mode)
	if !ok || e.Kind == KindScripted {
		return Entry{}, fmt.Errorf("models: %q: there is no mode %q; there are %s", e.Name, mode, strings.Join(e.ModeNames(), ", "))
	}
	p := c.providers[e.Provider]
	return c.remember(e.Name+modeMark+mode, func() (Entry, error) {
		if err := l.fits(p); err != nil {
			return Entry{}, fmt.Errorf("models: %q: modes.%s: %w", e.Name, mode, err)
		}
		var err error
		e.Name, e.Limits, e.mode = e.Name+modeMark+mode, l, mode
		e.Model, err = c.config.model(p, e.ModelName, l)
		return e, err
	})
}

// modes returns the modes of the model.
func (e Entry) modes() map[string]Mode {
	all := map[string]Mode{}
	if e.Kind != KindScripted {
		all["thinking"] = Mode{}
	}
	maps.Copy(all, e.Modes)
	return all
}

// ModeNames lists the modes of the model.
func (e Entry) ModeNames() []string { return slices.Sorted(maps.Keys(e.modes())) }

// remember returns what make makes, the same at every call: a model learns what its
// server takes.
func (c *Catalog) remember(name string, build func() (Entry, error)) (Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range []map[string]Entry{c.named, c.asked} {
		if e, ok := known[name]; ok {
			return e, nil
		}
	}
	e, err := build()
	if err != nil {
		return Entry{}, err
	}
	for other := range c.asked {
		if len(c.asked) < maxAsked {
			break
		}
		delete(c.asked, other)
	}
	c.asked[name] = e
	return e, nil
}

// Warning says what is odd about a model that is used; most often it is empty.
func (c *Catalog) Warning(e Entry) string {
	if !e.Unlisted {
		return ""
	}
	return fmt.Sprintf("The model %s is in no table: it has a context of %d tokens, answers of %d tokens, and no price, so a budget of costs refuses it%s",
		e.Name, e.ContextTokens, e.MaxOutputTokens, c.hint(strings.Split(e.Name, modeMark)[0]))
}
