package plan

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func textBlock(s string) *sessionv1.Block {
	text := &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
	return &sessionv1.Block{Kind: &sessionv1.Block_Content{Content: text}}
}

// bodies are bodies of messages, good and bad.
func bodies(t testing.TB) (all [][]byte) {
	t.Helper()
	image := &commonv1.Content{Kind: &commonv1.Content_Image{Image: &commonv1.Media{MediaType: "image/png", Data: []byte{0, 255}}}}
	for _, m := range []*sessionv1.Message{
		{},
		{Name: "sessions/s/messages/m", Parent: "sessions/s/messages/l", Role: sessionv1.Role_ROLE_USER, Turn: "t", Step: -3, Blocks: []*sessionv1.Block{textBlock("hello")}},
		{Role: 77, CreateTime: &timestamppb.Timestamp{Seconds: -1, Nanos: 5}, Blocks: []*sessionv1.Block{textBlock(""), textBlock("日本"), {}}},
		{Name: "n", Compaction: &sessionv1.Compaction{KeptFrom: "x"}, Blocks: []*sessionv1.Block{textBlock("summary")}},
		{Name: "n", Blocks: []*sessionv1.Block{
			{Kind: &sessionv1.Block_Content{Content: image}}, {Kind: &sessionv1.Block_Content{Content: &commonv1.Content{}}},
			{Kind: &sessionv1.Block_ToolUse{ToolUse: &sessionv1.ToolUse{CallId: "c", ArgumentsJson: "{}"}}},
			{Kind: &sessionv1.Block_Thinking{Thinking: &sessionv1.Thinking{Text: "hm"}}, ProviderData: &sessionv1.ProviderData{Provider: "p"}},
			{Kind: textBlock("with data").Kind, ProviderData: &sessionv1.ProviderData{Provider: "p"}},
			{Kind: &sessionv1.Block_ToolResult{ToolResult: &sessionv1.ToolResult{CallId: "c", Content: []*commonv1.Content{image}}}},
		}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	plain := all[1]
	twice := protowire.AppendTag(bytes.Clone(plain), 1, protowire.BytesType)
	return append(all,
		plain[:len(plain)-1], // cut off
		protowire.AppendString(twice, "another name"),
		protowire.AppendString(twice, "\xff is no UTF-8"),
		protowire.AppendVarint(protowire.AppendTag(bytes.Clone(plain), 99, protowire.VarintType), 5), // of a newer version
		protowire.AppendVarint(protowire.AppendTag(bytes.Clone(plain), 1, protowire.VarintType), 5),  // of the wrong kind
		[]byte{0x22, 0x80}, []byte{0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	)
}

// decodesLikeProto compares the decoder with proto.Unmarshal.
func decodesLikeProto(t *testing.T, body []byte) {
	t.Helper()
	want := &sessionv1.Message{}
	bad := proto.Unmarshal(body, want)
	b := batch{buf: slices.Concat(body, body), ends: []int{len(body), 2 * len(body)}}
	b.decode()
	if bad != nil {
		if b.err == nil {
			t.Errorf("a body that proto refuses (%v) is taken", bad)
		}
		return
	}
	if b.err != nil {
		t.Fatal(b.err)
	}
	for i := range b.messages {
		if diff := cmp.Diff(want, &b.messages[i], protocmp.Transform()); diff != "" {
			t.Errorf("message %d of two equal ones: proto's (-) and ours (+):\n%s", i, diff)
		}
	}
}

func TestABatchDecodesLikeProto(t *testing.T) {
	for i, body := range bodies(t) {
		t.Run(fmt.Sprintf("body %d", i), func(t *testing.T) { decodesLikeProto(t, body) })
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range bodies(f) {
		f.Add(b)
	}
	f.Fuzz(decodesLikeProto)
}
