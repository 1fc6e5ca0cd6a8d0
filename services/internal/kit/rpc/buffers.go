package rpc

import (
	"fmt"

	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
)

// Message buffers come in every power of two from 32 KiB to 1 MiB. gRPC's defaults lack the sizes in between:
// for a message of 33 KiB, either side clears 1 MiB.
var bufferExponents = []uint8{8, 12, 14, 15, 16, 17, 18, 19, 20}

// gRPC takes another pool only while programs initialize, and one pool for all connections.
func init() {
	pool, err := mem.NewBinaryTieredBufferPool(bufferExponents...)
	if err != nil { // the exponents are constants
		panic(fmt.Sprintf("rpc: buffers: %v", err))
	}
	experimental.SetDefaultBufferPool(pool)
}
