package codec

import (
	"net/url"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// CheckQuery refuses a query with an unknown field, one that is repeated but no list, or a value of a wrong type. grpc-gateway,
// which reads the query later, ignores unknown fields and uses an arbitrary one of repeated values.
func CheckQuery(raw string, fields map[string]protoreflect.FieldDescriptor) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return problem.BadQuery(err)
	}
	seen := map[protoreflect.Name]bool{}
	for name, all := range values {
		f, ok := fields[name]
		switch {
		case !ok:
			return problem.BadParameter(name, "is not a parameter of this path")
		case len(all) != 1 && !f.IsList() || seen[f.Name()]:
			return problem.BadParameter(name, "is given more than once")
		}
		seen[f.Name()] = true
		for _, value := range all {
			if err := checkValue(name, f, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkValue(name string, f protoreflect.FieldDescriptor, value string) error {
	switch f.Kind() {
	case protoreflect.Int32Kind:
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			return problem.BadParameter(name, "is not a whole number of 32 bits: "+strconv.Quote(problem.Excerpt(value)))
		}
	case protoreflect.Int64Kind:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return problem.BadParameter(name, "is not a whole number of 64 bits: "+strconv.Quote(problem.Excerpt(value)))
		}
	case protoreflect.StringKind:
		if !utf8.ValidString(value) { // gRPC cannot transport it
			return problem.BadParameter(name, "is not UTF-8: "+strconv.QuoteToASCII(problem.Excerpt(value)))
		}
	case protoreflect.BoolKind:
		if value != "true" && value != "false" {
			return problem.BadParameter(name, "is neither true nor false: "+strconv.Quote(problem.Excerpt(value)))
		}
	}
	return nil
}
