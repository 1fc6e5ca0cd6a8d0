package mount

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/variable"
)

func (v Variable) check() error {
	var faults []error
	if err := variable.Check(v.Name, string(v.Value)); err != nil {
		faults = append(faults, err)
	}
	if v.Value != "" && v.File != "" {
		faults = append(faults, fmt.Errorf("variable %s: value and file are both set", v.Name))
	}
	if err := audience(v.For).check(); err != nil {
		faults = append(faults, fmt.Errorf("variable %s: %w", v.Name, err))
	}
	if _, err := v.value(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// value reads the value. Errors never contain any of it.
func (v Variable) value() (string, error) {
	if v.File == "" {
		return string(v.Value), nil
	}
	raw, err := os.ReadFile(v.File)
	if err != nil {
		return "", fmt.Errorf("variable %s: %w", v.Name, err)
	}
	text := strings.TrimSuffix(string(raw), "\n")
	return text, variable.Check(v.Name, text)
}

// Environment implements box.Mounts. The narrower audience wins, and the later entry among equals.
func (s *Set) Environment(tenant, user string) ([]string, error) {
	var env []string
	for rank := range 3 {
		for _, v := range s.o.Variables {
			if v.rank(tenant, user) != rank {
				continue
			}
			value, err := v.value()
			if err != nil {
				return nil, err
			}
			env = append(env, v.Name+"="+value)
		}
	}
	return env, nil
}

// rank returns how narrow the audience is through which a user gets a variable; -1: the user does not get
// it.
func (v Variable) rank(tenant, user string) int {
	switch {
	case len(v.For) == 0:
		return 0
	case user == "":
	case slices.Contains(v.For, tenant+"/"+user):
		return 2
	case slices.Contains(v.For, tenant+"/*"):
		return 1
	}
	return -1
}

// Names returns the names of the variables that a user's commands get, without duplicates.
func (s *Set) Names(tenant, user string) []string {
	var names []string
	for _, v := range s.o.Variables {
		if v.rank(tenant, user) >= 0 {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
