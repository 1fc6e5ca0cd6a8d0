package plan

import (
	"cmp"
	"slices"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// CheckVariables refuses more variables than a user may have: the existing ones and
// another one.
func CheckVariables(all []store.Variable, another store.Variable) error {
	count, bytes := 1, len(another.Name)+len(another.Value)
	for _, v := range all {
		if v.Name != another.Name {
			count++
			bytes += len(v.Name) + len(v.Value)
		}
	}
	if count > store.MaxVariables || bytes > store.MaxVariableBytes {
		return store.ErrTooMany
	}
	return nil
}

// VariableOf finds a variable among a user's, which are sorted. A variable that
// no longer exists has no time.
func VariableOf(all []store.Variable, name string) store.Variable {
	i, ok := slices.BinarySearchFunc(all, name, func(v store.Variable, n string) int { return cmp.Compare(v.Name, n) })
	if !ok {
		return store.Variable{Name: name}
	}
	return all[i]
}
