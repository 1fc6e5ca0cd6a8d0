package toolset

import "testing"

func TestASchemaGoesToTheModelAsItWasWritten(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"every digit, in its order": {
			`{ "type": "object",  "properties": {"z": {"minimum": 9007199254740993, "multipleOf": 0.10}, "a": {"const": 1e400, "enum": [-0, 1.0]}} }`,
			`{"type":"object","properties":{"z":{"minimum":9007199254740993,"multipleOf":0.10},"a":{"const":1e400,"enum":[-0,1.0]}}}`,
		},
		"characters of HTML":  {`{"description":"a < b && c > d"}`, `{"type":"object","description":"a < b && c > d"}`},
		"no schema":           {"", `{"type":"object"}`},
		"white space in text": {`{"description":"a  b"}`, `{"type":"object","description":"a  b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tools, err := appendTool(nil, "T", "", c.schema)
			if err != nil || string(tools[0].InputSchema) != c.want {
				t.Errorf("got %s (%v)\nwant %s", tools, err, c.want)
			}
		})
	}
}
