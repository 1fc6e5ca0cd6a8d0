package rpc

import (
	"testing"

	"google.golang.org/grpc/mem"
)

func TestBuffersAreAtMostTwiceAsLongAsTheirMessages(t *testing.T) {
	for size := 16 << 10; size <= 1<<20; size += 1 << 10 {
		b := mem.DefaultBufferPool().Get(size)
		if cap(*b) > 2*size {
			t.Errorf("a message of %d bytes takes a buffer of %d", size, cap(*b))
		}
		mem.DefaultBufferPool().Put(b)
	}
}
