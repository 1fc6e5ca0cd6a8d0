package schema

import (
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPatterns bounds the size of all patterns of a schema: seven bytes, `a{1000}`, need 100 KB when they are compiled.
	maxPatterns = 1 << 14
	// matchSize is how many bytes of a text, times the size of the pattern, count for one step of a check.
	matchSize = 2000
)

// pattern compiles a regular expression of a schema. JavaScript's expressions can
// look ahead and Go's cannot: such a pattern is only for the model and is not
// checked. Neither is a pattern with which those of the schema would be too large.
func (s *Schema) pattern(text string) (jsonschema.Regexp, error) {
	if s.patterns += len(text); s.patterns > maxPatterns {
		return unchecked(text), nil
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return unchecked(text), nil //nolint:nilerr // see above
	}
	size := sizeOf(tree)
	if s.patterns += size; s.patterns > maxPatterns {
		return unchecked(text), nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return unchecked(text), nil //nolint:nilerr // see above
	}
	return &counted{re, s, size}, nil
}

// sizeOf returns the size of an expression with its repetitions written out.
func sizeOf(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/16 // a class of letters has hundreds of ranges
	if re.Op == syntax.OpLiteral {
		size = max(1, len(re.Rune))
	}
	for _, sub := range re.Sub {
		size += sizeOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return size
}

// counted is a pattern whose matches count as steps of the check.
type counted struct {
	*regexp.Regexp
	schema *Schema
	size   int
}

// MatchString reports whether a text matches. Once there are too many steps, it matches.
func (c *counted) MatchString(text string) bool {
	c.schema.steps += 1 + len(text)*c.size/matchSize
	return c.schema.steps > maxSteps || c.Regexp.MatchString(text)
}

// unchecked is a pattern that matches everything.
type unchecked string

func (unchecked) MatchString(string) bool { return true }
func (u unchecked) String() string        { return string(u) }
