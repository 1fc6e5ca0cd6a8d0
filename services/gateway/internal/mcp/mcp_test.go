package mcp

import (
	"strings"
	"testing"
)

func TestWhatAnswersRepeatIsShort(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":#,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":#,"ID":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","i\u0064":#,"Id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":#,"method":"tools/list"} x`,
		`[{"jsonrpc":"2.0","id":#,"Id":1,"method":"tools/list"}] x`,
		`{"jsonrpc":"2.0","id":1,"method":#}`,
		`{"jsonrpc":#,"id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":#,"ProgressToken":1}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":#},"_Meta":{"progressToken":1}},"PARAMS":{}}`,
	} {
		for text, refused := range map[string]bool{strings.Repeat("x", 1000): false, strings.Repeat("x", 1100): true} {
			body := strings.ReplaceAll(message, "#", `"`+text+`"`)
			if err := checkBatch([]byte(body)); (err != nil) != refused {
				t.Errorf("%s with %d bytes: %v", message, len(text), err)
			}
		}
	}
	if err := checkBatch([]byte("[" + strings.Repeat("{},", mostBatch) + "{}] x")); err == nil {
		t.Error("a batch with more messages than it may have is taken")
	}
}
