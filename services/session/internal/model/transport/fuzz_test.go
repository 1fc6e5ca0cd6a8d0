package transport

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// FuzzEvents checks that a stream reads the same however it is cut, and that no
// event is blank, nor longer than all that came.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"event: a\ndata: {\"x\":1}\n\ndata: [DONE]\n\n", "\ufeffdata:{\rdata:}\r\rid:1", "{\"a\":1}\n{\"b\":2}{", "<html>\ndata: {}", "plain\r\ntext", "event: error\n\n: c\ndata: é\xff\n\n",
		"data: {\n\ndata: }\n\n{\"error\":1}\nretry", "[1,2", "\n\r\n\r",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		at, err := list(bytes.NewReader(stream))
		cut, cutErr := list(iotest.OneByteReader(bytes.NewReader(stream)))
		if !slices.Equal(at, cut) || (err == nil) != (cutErr == nil) || errors.Is(err, io.EOF) != errors.Is(cutErr, io.EOF) {
			t.Errorf("at once %q, %v; in bytes %q, %v", at, err, cut, cutErr)
		}
		all := 0
		for _, e := range at {
			name, data, _ := strings.Cut(e, " ")
			if all += len(data); strings.TrimSpace(data) == "" && name != "error" {
				t.Errorf("a blank event among %q", at)
			}
		}
		if all > len(stream) {
			t.Errorf("%d bytes came and %d were given", len(stream), all)
		}
	})
}

// FuzzReadError checks that whatever a server tells becomes a message for people,
// without the key.
func FuzzReadError(f *testing.F) {
	const key = "abcd-efgh-0123456789"
	for _, s := range []string{
		`{"error":{"message":"M ` + key + `","code":401,"metadata":{"raw":"{\"error\":\"x\"}"}}}`, `[{"error":["a",{"detail":[{"loc":["b",0],"msg":"m"}]}]}]`,
		"<html><title>&lt;" + key, `"text"`, "plain", `{"code":"4040","type":"error"}`, `{"errors":{"message":{"message":{"message":{}}}}}`,
	} {
		f.Add([]byte(s), 400)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		_, w := Begin(t.Context(), "fuzz", key, 0)
		defer w.End()
		e := w.Told(ReadError(body), status)
		if strings.Contains(e.Message, key) || !utf8.ValidString(e.Message) || utf8.RuneCountInString(e.Message) > 500 || strings.ContainsAny(e.Message, "\r\n") {
			t.Errorf("the message is %q", e.Message)
		}
	})
}
