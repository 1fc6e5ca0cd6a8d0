package jsontext_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// splitters are the characters at which Python's str.splitlines, and readers built on it, end a line.
const splitters = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

func TestAMessageIsOneLineForEveryReader(t *testing.T) {
	text := "a" + strings.Join(strings.Split(splitters, ""), "b") + `\u2028 "\ é` + "\u2027\u202a\u0084\u0086"
	tree, err := structpb.NewStruct(map[string]any{"name" + splitters: []any{text, map[string]any{"x": text}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []proto.Message{wrapperspb.String(text), tree, wrapperspb.String(""), &structpb.Struct{}} {
		line, err := jsontext.AppendMessage([]byte("before\u2028:"), m)
		if err != nil {
			t.Fatal(err)
		}
		got, untouched := strings.CutPrefix(string(line), "before\u2028:")
		if !untouched || strings.ContainsAny(got, splitters) {
			t.Errorf("%q", got)
		}
		back := m.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal([]byte(got), back); err != nil || !proto.Equal(m, back) {
			t.Errorf("%q is read as %v, %v", line, back, err)
		}
	}
}

func TestALineOfWhatIsNoJSONIsAnError(t *testing.T) {
	if got, err := jsontext.AppendLine([]byte("kept"), []byte(`{"a":`)); err == nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
}
