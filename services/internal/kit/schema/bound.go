package schema

import (
	"fmt"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// fault describes a fault, with numbers in the form of JSON: a model copies a bound
// from here. The library formats them for a locale.
func fault(k jsonschema.ErrorKind, text string) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return bound("minimum", number(k.Got), number(k.Want))
	case *kind.Maximum:
		return bound("maximum", number(k.Got), number(k.Want))
	case *kind.ExclusiveMinimum:
		return bound("exclusiveMinimum", number(k.Got), number(k.Want))
	case *kind.ExclusiveMaximum:
		return bound("exclusiveMaximum", number(k.Got), number(k.Want))
	case *kind.MultipleOf:
		return bound("multipleOf", number(k.Got), number(k.Want))
	case *kind.MinLength:
		return bound("minLength", k.Got, k.Want)
	case *kind.MaxLength:
		return bound("maxLength", k.Got, k.Want)
	case *kind.MinItems:
		return bound("minItems", k.Got, k.Want)
	case *kind.MaxItems:
		return bound("maxItems", k.Got, k.Want)
	case *kind.MinProperties:
		return bound("minProperties", k.Got, k.Want)
	case *kind.MaxProperties:
		return bound("maxProperties", k.Got, k.Want)
	}
	return text
}

func bound(keyword string, got, want any) string {
	return fmt.Sprintf("%s: got %v, want %v", keyword, got, want)
}

// maxDigits is the length up to which a number is written without an exponent.
const maxDigits = 40

// number formats a number without separators: all its digits, or the first
// twenty.
func number(r *big.Rat) string {
	text := r.Num().String()
	if !r.IsInt() {
		digits, _ := r.FloatPrec()
		text = r.FloatString(digits)
	}
	if len(text) > maxDigits {
		return new(big.Float).SetRat(r).Text('g', 20)
	}
	return text
}
