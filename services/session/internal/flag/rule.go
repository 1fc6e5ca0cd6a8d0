package flag

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/diegoholiveira/jsonlogic/v3"
	"github.com/twmb/murmur3"
)

// operators are those of JsonLogic that rules may have, and flagd's.
var operators = []string{
	"if", "==", "===", "!=", "!==", "!", "!!", "and", "or", "in", "<", "<=", ">", ">=", "var", "cat", "%",
	"fractional", "starts_with", "ends_with",
}

// The library keeps operators for the whole program; no other package uses it.
func init() { //nolint:gochecknoinits // there is no other place for them
	jsonlogic.AddOperator("fractional", fractional)
	jsonlogic.AddOperator("starts_with", func(values, _ any) any { return compare(values, strings.HasPrefix) })
	jsonlogic.AddOperator("ends_with", func(values, _ any) any { return compare(values, strings.HasSuffix) })
}

func compare(values any, holds func(string, string) bool) bool {
	all, _ := values.([]any)
	if len(all) != 2 {
		return false
	}
	text, ok := all[0].(string)
	part, too := all[1].(string)
	return ok && too && holds(text, part)
}

// fractional distributes subjects to variants as flagd does: by the hash of the flag's name and the targeting
// key, or of the text that comes first.
func fractional(values, data any) any {
	about, _ := data.(map[string]any)
	flagd, _ := about["$flagd"].(map[string]any)
	all, _ := values.([]any)
	key := fmt.Sprint(flagd["flagKey"], about["targetingKey"])
	if len(all) > 0 {
		if _, bucket := all[0].([]any); !bucket {
			if all[0] == nil {
				return nil
			}
			key, all = fmt.Sprint(all[0]), all[1:]
		}
	}
	var total uint64
	for _, b := range all {
		_, weight, _ := bucketOf(b)
		total += weight
	}
	at := uint64(murmur3.StringSum32(key)) * total >> 32
	for _, b := range all {
		variant, weight, _ := bucketOf(b)
		if at < weight {
			return variant
		}
		at -= weight
	}
	return nil
}

// maxWeight is flagd's.
const maxWeight = 1<<31 - 1

// bucketOf reads `[variant, weight]` or `[variant]`.
func bucketOf(b any) (variant string, weight uint64, err error) {
	list, _ := b.([]any)
	if len(list) == 0 || len(list) > 2 {
		return "", 0, errors.New("fractional: each share is [variant, weight]")
	}
	variant, ok := list[0].(string)
	if !ok {
		return "", 0, fmt.Errorf("fractional: %v is no variant", list[0])
	}
	if len(list) == 1 {
		return variant, 1, nil
	}
	n, ok := list[1].(float64)
	if !ok || n < 0 || n > maxWeight || n != float64(uint64(n)) {
		return "", 0, fmt.Errorf("fractional: the weight of %q is no whole number from 0 to %d", variant, maxWeight)
	}
	return variant, uint64(n), nil
}

// evaluate returns the variant that the flag's rule chooses; empty: the default one.
func (f *definition) evaluate(name string, about map[string]any) (string, error) {
	about["$flagd"] = map[string]any{"flagKey": name}
	result, err := jsonlogic.ApplyInterface(f.Rule, about) //nolint:staticcheck // the others parse the rule anew
	if err != nil {
		return "", err
	}
	var variant string
	switch r := result.(type) {
	case nil:
		return "", nil
	case string:
		variant = r
	case bool: // flagd's short form
		variant = strconv.FormatBool(r)
	default:
		return "", fmt.Errorf("the rule returns %v", result)
	}
	if !f.has(variant) {
		return "", fmt.Errorf("the rule returns %q, which is no variant", variant)
	}
	return variant, nil
}

// checkRule refuses rules that would not work for every subject.
func (f *definition) checkRule(name string) error {
	if rule, ok := f.Rule.(map[string]any); f.Rule == nil || ok && len(rule) == 0 {
		f.Rule = nil
		return nil
	}
	if err := checkOperators(f.Rule); err != nil {
		return err
	}
	if err := f.checkResults(f.Rule); err != nil {
		return err
	}
	if _, err := f.evaluate(name, map[string]any{"targetingKey": "s", "tenant": "t", "user": "u", "agent": "a", "session": "s", "runtime": "r"}); err != nil {
		return fmt.Errorf("it cannot be evaluated: %w", err)
	}
	return nil
}

func checkOperators(rule any) error {
	switch r := rule.(type) {
	case []any:
		for _, v := range r {
			if err := checkOperators(v); err != nil {
				return err
			}
		}
	case map[string]any:
		if len(r) != 1 {
			return errors.New("each operation is an object with one key, the operator")
		}
		for operator, arguments := range r {
			if !slices.Contains(operators, operator) {
				return fmt.Errorf("the operator %q is not supported; there are %s", operator, strings.Join(operators, " "))
			}
			return checkOperators(arguments)
		}
	}
	return nil
}

// checkResults checks the variants that a rule names where its result comes from.
func (f *definition) checkResults(rule any) error {
	if text, ok := rule.(string); ok && !f.has(text) {
		return fmt.Errorf("%q is no variant", text)
	}
	operation, _ := rule.(map[string]any)
	arguments, _ := operation["if"].([]any)
	for i, v := range arguments {
		if i%2 == 1 || i == len(arguments)-1 {
			if err := f.checkResults(v); err != nil {
				return err
			}
		}
	}
	if shares, ok := operation["fractional"]; ok {
		return f.checkShares(shares)
	}
	return nil
}

func (f *definition) checkShares(shares any) error {
	all, _ := shares.([]any)
	if len(all) > 0 {
		if _, bucket := all[0].([]any); !bucket {
			all = all[1:] // what is hashed
		}
	}
	var total uint64
	for _, b := range all {
		variant, weight, err := bucketOf(b)
		if err != nil {
			return err
		}
		if !f.has(variant) {
			return fmt.Errorf("fractional: %q is no variant", variant)
		}
		total += weight
	}
	if total == 0 || total > maxWeight {
		return fmt.Errorf("fractional: the weights add up to %d, not to something from 1 to %d", total, maxWeight)
	}
	return nil
}
