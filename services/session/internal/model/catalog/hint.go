package catalog

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/config"
)

// keyPath returns where the configuration file has a key of ours.
func keyPath(section, key string) string {
	if section == "" {
		return key
	}
	return section + "." + key
}

// at begins a fault, which begins with a key, with the section of the key.
func (c Config) at(fault error) error {
	if c.Section == "" {
		return fault
	}
	return fmt.Errorf("%s.%w", c.Section, fault)
}

// hint returns the end of a sentence about an unknown model: the name that is near
// or else the provider's names, and how to add the model.
func (c *Catalog) hint(name string) string {
	near := config.Nearest(name, c.Names())
	if near == "" {
		near = "; there are " + strings.Join(c.siblings(name), ", ") + "."
	}
	indent, head := "", ""
	if c.config.Section != "" {
		indent, head = "  ", c.config.Section+":\n"
	}
	return fmt.Sprintf("%s To add one, list it in the configuration file, as in\n"+
		"%s%smodels:\n%s  %q: {context-tokens: 200000, max-output-tokens: 32000, input-price: 3, output-price: 15}",
		near, head, indent, indent, name)
}

// siblings returns the models of name's provider, or all models when it has none.
func (c *Catalog) siblings(name string) []string {
	provider, _, _ := strings.Cut(name, ":")
	var all []string
	for _, n := range c.Names() {
		if strings.HasPrefix(n, provider+":") {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return c.Names()
	}
	return all
}
