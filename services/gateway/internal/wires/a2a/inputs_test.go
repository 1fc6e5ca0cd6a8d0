package a2a

import (
	"encoding/json"
	"testing"
)

// Some clients write the members of a part that are not set as null.
func TestANullIsDataAlone(t *testing.T) {
	for text, want := range map[string]string{
		`{"text":"hello","data":null}`: "hello", `{"data":null}`: "null", `{"data":{"a":1}}`: `{"a":1}`, `{"text":"hello","data":1}`: "",
	} {
		var p part
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		got, err := p.content("part")
		if (err != nil) != (want == "") || got.GetText().GetText() != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
