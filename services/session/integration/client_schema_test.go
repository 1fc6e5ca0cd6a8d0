package integration

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
	"github.com/fairlead/fairlead/services/session/modeltest"
)

func TestASchemaOfAClientToolThatAProviderWouldRefuseIsMendedOrRefused(t *testing.T) {
	t.Parallel()
	wires(t, func(t *testing.T, play func(...modeltest.Step) (*modeltest.Server, func(*session.Config))) {
		wire, change := play(modeltest.Step{Text: []string{"done"}})
		f := start(t, "fallback: {steps: [{text: [unused]}]}", change)
		s := f.session(t.Context(), t)
		send := func(schema string) error {
			_, err := f.CreateTurn(t.Context(), &sessionv1.CreateTurnRequest{Parent: s, Text: "go", ClientTools: []*sessionv1.ClientTool{{Name: "good"}, {Name: "mine", InputSchemaJson: schema}}})
			return err
		}
		for _, bad := range []string{`{"type":"wrong"}`, `{"type":"array"}`, `{"properties":[]}`, `[]`, `{`} {
			err := send(bad)
			violations, _ := apierr.Detail[*errdetails.BadRequest](err)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "mine") || violations.GetFieldViolations()[0].GetField() != "client_tools[1].input_schema_json" {
				t.Errorf("%s: %v", bad, err)
			}
		}
		if got := len(f.log(t.Context(), t, s)); got != 1 || f.states(t.Context(), t, s) != "" {
			t.Errorf("what was refused has left %d events, and the turns %s", got, f.states(t.Context(), t, s))
		}
		good := []string{``, `{}`, `{"properties":{}}`, `{"type":["object","null"]}`, `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`}
		for _, schema := range good {
			if err := send(schema); err != nil {
				t.Errorf("%s: %v", schema, err)
			}
		}
		f.stillAnswers(t, s, wire)
		if got := f.states(t.Context(), t, s); got != strings.Repeat("COMPLETE ", len(good))+"COMPLETE" {
			t.Errorf("the turns are %s", got)
		}
	})
}
