package stream

import (
	"context"
	"errors"
	"testing"
)

func TestAStreamThatEndsWithItsContextBringsNoFirstMessage(t *testing.T) {
	gone := errors.New("the client has gone")
	for range 50 { // the channel's end and the context's are there at the same time, and either may be seen first
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		in := make(chan received)
		close(in)
		s := &source{in: in}
		if err := s.await(ctx); err == nil || s.first != nil {
			t.Fatalf("error %v, first message %v", err, s.first)
		}
	}
}
