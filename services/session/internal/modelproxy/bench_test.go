package modelproxy

import (
	"strings"
	"testing"
)

// BenchmarkTap reads a streamed chat completion of 500 tokens, in which each chunk says that its usage is null.
func BenchmarkTap(b *testing.B) {
	const chunk = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"},\"finish_reason\":null}],\"usage\":null}\n\n"
	in := []byte(strings.Repeat(chunk, 500) + chatUsage + chatDone)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		t := &tap{stream: true}
		t.feed(in)
		if t.usage().GetOutputTokens() != 4 {
			b.Fatal("no usage")
		}
	}
}
