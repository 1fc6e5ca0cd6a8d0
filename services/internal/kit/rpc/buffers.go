package rpc

import (
	"fmt"

	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
)

// Buffers of messages come in every power of two from 32 KiB to 1 MiB. Of those in between gRPC has none by default:
// a message of 33 KiB has 1 MiB cleared for it, on either side.
var bufferExponents = []uint8{8, 12, 14, 15, 16, 17, 18, 19, 20}

// gRPC takes another pool only while programs initialize, and for its codec only one for all connections.
func init() {
	pool, err := mem.NewBinaryTieredBufferPool(bufferExponents...)
	if err != nil { // the exponents are constants
		panic(fmt.Sprintf("rpc: buffers: %v", err))
	}
	experimental.SetDefaultBufferPool(pool)
}
