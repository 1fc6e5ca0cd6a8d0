package anthropic

import (
	"encoding/json"
	"testing"
)

// FuzzPlainDelta compares the quick reading of an event with that of encoding/json.
func FuzzPlainDelta(f *testing.F) {
	const begin = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`
	for _, s := range []string{
		begin + `"Hello"}}`, begin + `"a\nb\u00e9\ud800"} }`, begin + "\"\xff\"}}", begin + `"a","text":"b"}}`, begin + `"a","x":"\""}}`, begin + `""}}`, begin + `"a"},"index":1}`,
		`{"type":"content_block_delta","index":12,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
		`{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"a"}}`,
		`{"type":"content_block_delta","index":1.5,"delta":{"type":"signature_delta","signature":"a"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		index, got, ok := plainDelta(raw)
		if !ok || !json.Valid(raw) {
			return
		}
		var want event
		if err := json.Unmarshal(raw, &want); err != nil || want.Type != "content_block_delta" || want.Index != index || want.Delta != got {
			t.Errorf("%s is %d, %+v; encoding/json reads %+v, %v", raw, index, got, want, err)
		}
	})
}

func TestTheAPIsOwnFormIsReadQuickly(t *testing.T) {
	for _, end := range []string{"}}", "}        }"} {
		index, d, ok := plainDelta([]byte(`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a \"quoted\" word"` + end))
		if !ok || index != 3 || d.Text != `a "quoted" word` || d.Type != "text_delta" {
			t.Errorf("got %d, %+v, %v", index, d, ok)
		}
	}
}
