package client

import (
	"cmp"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Format returns the fields that both APIs have for the schema of an answer. They require a name.
func Format(f model.Format) map[string]any {
	fields := map[string]any{"name": cmp.Or(f.Name, "answer"), "schema": f.Schema}
	if f.Description != "" {
		fields["description"] = f.Description
	}
	if f.Strict {
		fields["strict"] = true
	}
	return fields
}
