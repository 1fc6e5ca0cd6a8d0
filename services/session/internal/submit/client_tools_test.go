package submit

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/agent"
)

func TestASchemaOfAClientToolIsTheTextOfAnObject(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"none":                   {"", ""},
		"an object":              {`{"type":"object","properties":{"n":{"maximum":123456789012345678901234567890}}}`, ""},
		"half an object":         {`{"type":`, "not valid JSON"},
		"an array":               {`[]`, "not a JSON object but an array"},
		"null":                   {`null`, "not a JSON object but null"},
		"a name twice":           {`{"type":"object","type":"array"}`, `the name "type" occurs twice`},
		"two objects":            {`{}{}`, "something follows"},
		"words":                  {`an object`, "not valid JSON"},
		"an endless exponent":    {`{"minimum":1e999999999}`, "is beyond 1000"},
		"nothing said":           {`{}`, ""},
		"properties alone":       {`{"properties":{}}`, ""},
		"alternatives":           {`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, ""},
		"a wrong type":           {`{"type":"wrong"}`, "not valid"},
		"an array's":             {`{"type":"array"}`, "not that of an object"},
		"an object with a comma": {`{"a":1,}`, "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkClientTools(agent.Spec{}, &sessionv1.CreateTurnRequest{ClientTools: []*sessionv1.ClientTool{{Name: "good"}, {Name: "mine", InputSchemaJson: c.schema}}})
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			bad, ok := apierr.Detail[*errdetails.BadRequest](err)
			if apierr.Code(err) != codes.InvalidArgument || !ok || bad.GetFieldViolations()[0].GetField() != "client_tools[1].input_schema_json" ||
				!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "mine") {
				t.Errorf("got %v", err)
			}
		})
	}
}
