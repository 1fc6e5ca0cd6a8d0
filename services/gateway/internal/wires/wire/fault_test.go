package wire_test

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestANameOfAnotherFormIsAnUnknownName(t *testing.T) {
	invalid := func(fields ...string) error {
		var all []apierr.Option
		for _, f := range fields {
			all = append(all, apierr.Field(f, "has another form"))
		}
		return apierr.New(codes.InvalidArgument, apierr.Domain, apierr.ReasonInvalidRequest, "the request is invalid", all...)
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the name":                 {invalid("name"), true},
		"the parent":               {invalid("parent"), true},
		"both":                     {invalid("name", "parent"), true},
		"another field":            {invalid("text"), false},
		"the name and a field":     {invalid("name", "text"), false},
		"the name of an agent":     {invalid("agent.name"), false},
		"no field":                 {invalid(), false},
		"a refusal of the gateway": {apierr.New(codes.InvalidArgument, "x", "BAD_FIELD", "x", apierr.Field("name", "x")), false},
		"another error":            {errors.New("x"), false},
		"no error":                 {nil, false},
	} {
		if got := wire.Misnamed(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
