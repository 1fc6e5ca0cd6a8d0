package itemlimit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fairlead/fairlead/services/internal/kit/itemlimit"
)

// tree is message Tree {name_text, leaves (at most 3 Leaves), named_leaves (a map of at most 2), child (a Tree), trees
// (any number), words (at most 2)}, where Leaf {words (at most 2)}.
var tree = describe()

func describe() protoreflect.MessageDescriptor {
	const repeated, single = descriptorpb.FieldDescriptorProto_LABEL_REPEATED, descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	field := func(name string, number int32, label descriptorpb.FieldDescriptorProto_Label, typ string, rules *validate.FieldRules) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Label: label.Enum(), Options: &descriptorpb.FieldOptions{}}
		if f.Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(); typ != "" {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), &typ
		}
		if rules != nil {
			proto.SetExtension(f.Options, validate.E_Field, rules)
		}
		return f
	}
	most := func(n uint64) *validate.FieldRules {
		return validate.FieldRules_builder{Repeated: validate.RepeatedRules_builder{MaxItems: &n}.Build()}.Build()
	}
	pairs := func(n uint64) *validate.FieldRules {
		return validate.FieldRules_builder{Map: validate.MapRules_builder{MaxPairs: &n}.Build()}.Build()
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("tree.proto"), Package: proto.String("tree"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("Leaf"), Field: []*descriptorpb.FieldDescriptorProto{field("words", 1, repeated, "", most(2))}},
			{
				Name: proto.String("Tree"),
				Field: []*descriptorpb.FieldDescriptorProto{
					field("name_text", 1, single, "", nil), field("leaves", 2, repeated, ".tree.Leaf", most(3)),
					field("named_leaves", 3, repeated, ".tree.Tree.NamedLeavesEntry", pairs(2)),
					field("child", 4, single, ".tree.Tree", nil), field("trees", 5, repeated, ".tree.Tree", nil), field("words", 6, repeated, "", most(2)),
				},
				NestedType: []*descriptorpb.DescriptorProto{{
					Name: proto.String("NamedLeavesEntry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
					Field: []*descriptorpb.FieldDescriptorProto{field("key", 1, single, "", nil), field("value", 2, single, ".tree.Leaf", nil)},
				}},
			},
		},
	}, nil)
	if err != nil {
		panic(err)
	}
	return file.Messages().ByName("Tree")
}

// cases are requests, and the lists that are too long.
var cases = []struct{ json, cut, long string }{
	{`{}`, `{}`, ``},
	{`{"nameText":"a","leaves":[{},{},{}],"words":["a","b"]}`, `{"nameText":"a","leaves":[{},{},{}],"words":["a","b"]}`, ``},
	{`{"leaves":[{},{},{},{}]}`, `{"leaves":[{},{},{},{}]}`, `leaves: must have at most 3 items`},
	{`{"leaves":[{},{},{},{},{},{}],"nameText":"a"}`, `{"leaves":[{},{},{},{}],"nameText":"a"}`, `leaves: must have at most 3 items`},
	{`{"leaves" : [ {} , {} , {} , {} , {} ] }`, `{"leaves" : [ {} , {} , {} , {}] }`, `leaves: must have at most 3 items`},
	{`{"le\u0061ves":[{},{},{},{},{},{}]}`, `{"le\u0061ves":[{},{},{},{}]}`, `leaves: must have at most 3 items`},
	{`{"words":["]","\"]","a","b","c"]}`, `{"words":["]","\"]","a"]}`, `words: must have at most 2 items`},
	{`{"namedLeaves":{"a":{},"b":{},"c":{},"d":{},"e":{}}}`, `{"namedLeaves":{"a":{},"b":{},"c":{}}}`, `named_leaves: must have at most 2 entries`},
	{`{"named_leaves":{"a":{"words":["1","2","3","4"]}}}`, `{"named_leaves":{"a":{"words":["1","2","3"]}}}`, `named_leaves["a"].words: must have at most 2 items`},
	{`{"leaves":[{},{"words":["1","2","3","4"]}]}`, `{"leaves":[{},{"words":["1","2","3"]}]}`, `leaves[1].words: must have at most 2 items`},
	{`{"leaves":[{},{"words":["1","2","3","4"]},{},{},{"words":["1","2","3","4"]}]}`, `{"leaves":[{},{"words":["1","2","3"]},{},{}]}`, `leaves: must have at most 3 items`},
	{`{"trees":[{},{},{},{},{"child":{"leaves":[{},{},{},{},{}]}}]}`, `{"trees":[{},{},{},{},{"child":{"leaves":[{},{},{},{}]}}]}`, `trees[4].child.leaves: must have at most 3 items`},
	{`{"leaves":null,"words":null,"child":null}`, `{"leaves":null,"words":null,"child":null}`, ``},
	{
		`{"words":["1","2","3","4"],"leaves":[{},{},{},{},{}]}`, `{"words":["1","2","3"],"leaves":[{},{},{},{}]}`,
		"leaves: must have at most 3 items\nwords: must have at most 2 items",
	},
}

// long returns the lists of a message that are too long.
func long(m proto.Message) string {
	var all []string
	for _, v := range itemlimit.Check(m.ProtoReflect(), 10) {
		all = append(all, v.Path+": "+v.Text)
	}
	return strings.Join(all, "\n")
}

func TestListsAreCutBeforeTheyAreRead(t *testing.T) {
	for _, c := range cases {
		if got := string(itemlimit.CutJSON([]byte(c.json), tree)); got != c.cut {
			t.Errorf("%s became %s, want %s", c.json, got, c.cut)
		}
		whole, short := dynamicpb.NewMessage(tree), dynamicpb.NewMessage(tree)
		if err := protojson.Unmarshal([]byte(c.json), whole); err != nil {
			t.Fatal(err)
		}
		if got := long(whole); got != c.long {
			t.Errorf("%s: %s, want %s", c.json, got, c.long)
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		cut := itemlimit.CutWire(data, tree)
		if err := proto.Unmarshal(cut, short); err != nil {
			t.Fatal(err)
		}
		if got := long(short); got != c.long {
			t.Errorf("%s, cut on the wire: %s, want %s", c.json, got, c.long)
		}
		if c.long == "" && !bytes.Equal(cut, data) || len(cut) > len(data) {
			t.Errorf("%s: %d bytes became %d", c.json, len(data), len(cut))
		}
	}
}

func TestFaultyEncodingsAreLeftToTheParser(t *testing.T) {
	for _, text := range []string{
		``, `{`, `[`, `"`, `{"`, `{"leaves"`, `{"leaves":`, `{"leaves":[`, `{"leaves":[{`, `{"leaves":[,,,,,,`, `{"leaves":[}}}}`, `{"leaves":{]}`, `{"leaves":[{},{},{},{},{},{}`,
		`{"leaves":[{}{}{}{}{}{}]}`, `{"leaves":[1,2,3,4,5:]}`, `{"namedLeaves":{"a":{},"b":{},"c":{},"d"`, `{"namedLeaves":{,,,,,}}`, `{"x":1"leaves":[]}`, `\`, `{"a\`, `{"child":{"child":[{"leaves":[`,
		`nul`, `{"words":[nul,tru,"`, `{"leaves":[{},{},{},{},{}],`,
	} {
		m := dynamicpb.NewMessage(tree)
		if err := protojson.Unmarshal([]byte(text), m); err == nil {
			t.Fatalf("%s is valid", text)
		}
		if err := protojson.Unmarshal(itemlimit.CutJSON([]byte(text), tree), m); err == nil {
			t.Errorf("%s became valid", text)
		}
		for i := range len(text) {
			itemlimit.CutWire([]byte(text)[i:], tree)
		}
	}
	deep := strings.Repeat(`{"child":`, 1_000_000)
	itemlimit.CutJSON([]byte(deep), tree)
	var wire []byte
	for range 2000 {
		wire = protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), wire)
	}
	if got := itemlimit.CutWire(wire, tree); !bytes.Equal(got, wire) {
		t.Errorf("%d bytes became %d", len(wire), len(got))
	}
}

func TestPartsOfAMessageAreCountedTogether(t *testing.T) {
	leaf := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), nil)
	part := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), leaf) // child {leaves: one}
	m := dynamicpb.NewMessage(tree)
	if err := proto.Unmarshal(itemlimit.CutWire(bytes.Repeat(part, 1000), tree), m); err != nil {
		t.Fatal(err)
	}
	child := m.Get(tree.Fields().ByName("child")).Message()
	if n := child.Get(tree.Fields().ByName("leaves")).List().Len(); n != 4 {
		t.Errorf("%d leaves, want 4", n)
	}
	if diff := cmp.Diff("child.leaves: must have at most 3 items", long(m)); diff != "" {
		t.Error(diff)
	}
}

func TestTheWorkOfCuttingDoesNotGrowWithTheItems(t *testing.T) {
	jsonOf := func(n int) []byte { return fmt.Appendf(nil, `{"leaves":[{}%s]}`, strings.Repeat(",{}", n-1)) }
	wireOf := func(n int) []byte { return bytes.Repeat([]byte{0x12, 0}, n) }
	nested := func(n int) []byte {
		return fmt.Appendf(nil, `{"leaves":[{}%s]}`, strings.Repeat(`,{"words":["1","2","3","4"]}`, n-1))
	}
	for name, cut := range map[string]func(n int) int{
		"JSON":        func(n int) int { return len(itemlimit.CutJSON(jsonOf(n), tree)) },
		"wire":        func(n int) int { return len(itemlimit.CutWire(wireOf(n), tree)) },
		"nested JSON": func(n int) int { return len(itemlimit.CutJSON(nested(n), tree)) },
	} {
		if got, more := cut(1000), cut(100_000); got != more || got > 200 {
			t.Errorf("%s: 1,000 items become %d bytes, 100,000 become %d", name, got, more)
		}
	}
	data, wire := jsonOf(100_000), wireOf(100_000)
	if n := testing.AllocsPerRun(5, func() { itemlimit.CutJSON(data, tree) }); n > 20 {
		t.Errorf("cutting JSON makes %v allocations", n)
	}
	if n := testing.AllocsPerRun(5, func() { itemlimit.CutWire(wire, tree) }); n > 20 {
		t.Errorf("cutting the wire form makes %v allocations", n)
	}
}

// FuzzCutting checks that cutting changes no message within its limits, and makes none of another.
func FuzzCutting(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.json))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before, after := dynamicpb.NewMessage(tree), dynamicpb.NewMessage(tree)
		cut := itemlimit.CutJSON(data, tree)
		if protojson.Unmarshal(data, before) != nil {
			return
		}
		if err := protojson.Unmarshal(cut, after); err != nil {
			t.Fatalf("%s became %s: %v", data, cut, err)
		}
		if b, a := long(before), long(after); (b == "") != (a == "") || b == "" && !bytes.Equal(data, cut) {
			t.Fatalf("%s became %s: %s, and then %s", data, cut, b, a)
		}
	})
}
