package submit

import (
	"fmt"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/verdict"
)

// checkClientTools refuses names that are taken and schemas that are not valid for
// a tool.
func checkClientTools(spec agent.Spec, r *sessionv1.CreateTurnRequest) error {
	taken := map[string]bool{}
	for _, name := range spec.Tools {
		taken[name] = true
	}
	if spec.Finishes() {
		taken[verdict.Tool] = true
	}
	for i, t := range r.ClientTools {
		if taken[t.Name] {
			return refusal.ToolNameTaken(i, t.Name)
		}
		taken[t.Name] = true
		if err := checkSchema(i, t); err != nil {
			return err
		}
	}
	return nil
}

// checkSchema refuses a schema that is invalid or not of an object: a provider would refuse the whole request
// because of it. Empty text means no schema.
func checkSchema(i int, t *sessionv1.ClientTool) error {
	if t.InputSchemaJson == "" {
		return nil
	}
	if _, err := schema.Object(t.InputSchemaJson); err != nil {
		field := fmt.Sprintf("client_tools[%d].input_schema_json", i)
		return refusal.Field(field, "is "+err.Error(), fmt.Sprintf("The input schema of the tool %s is %v. Send the JSON Schema of an object as text.", t.Name, err))
	}
	return nil
}
