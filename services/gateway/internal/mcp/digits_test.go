package mcp

import (
	"strings"
	"testing"
)

func TestNumbersOfAnEnvelopeKeepEveryDigit(t *testing.T) {
	for number, changes := range map[string]bool{
		"0": false, "1": false, "-7": false, "9007199254740991": false, "-9007199254740991": false,
		"9007199254740992": true, "9007199254740993": true, "12345678901234567890123": true, "-9223372036854775809": true,
		"1.5": true, "1.0": true, "1e3": true, "1E+3": true, "-0": true, "-1.25e-7": true,
		`"x"`: false, `"9007199254740993"`: false, `""`: false, "null": false, "true": false, "{}": false,
	} {
		for _, envelope := range []string{
			`{"id":#,"jsonrpc":"2.0","method":"tools/list"}`,
			`[{"id":#,"jsonrpc":"2.0","method":"tools/list"}]`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#}}`,
			`{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"progressToken":#},"name":"Bash"}}`,
		} {
			body := strings.ReplaceAll(envelope, "#", number)
			kept := string(keepDigits([]byte(body)))
			if (kept != body) != changes || changes && !strings.Contains(kept, `"`+mark+number+`"`) {
				t.Errorf("%s becomes %s", body, kept)
			}
			if back := string(digits([]byte(kept))); back != body {
				t.Errorf("%s comes back as %s", body, back)
			}
		}
	}
}

func TestOnlyNumbersOfAnEnvelopeAreMarked(t *testing.T) {
	for _, body := range []string{
		`{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"name":"T","arguments":{"id":9007199254740993,"progressToken":1.5}}}`,
		`{"id":1,"jsonrpc":"2.0","result":{"id":9007199254740993}}`,
		`{"id":9007199254740993`, `"id":1.5`, `[1.5,{"id":`, ``, `[]`, `null`,
	} {
		if got := string(keepDigits([]byte(body))); got != body {
			t.Errorf("%s becomes %s", body, got)
		}
	}
}
