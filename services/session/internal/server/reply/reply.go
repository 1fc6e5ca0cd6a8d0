// Package reply sends and receives what is longer than one message of gRPC.
package reply

import (
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fairlead/fairlead/services/internal/kit/id"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
)

// PieceBytes is the size of the part of a file in one message.
const PieceBytes = 256 << 10

// Pieces is a Writer that sends each part. The data is marshaled before send
// returns.
type Pieces func([]byte) error

func (p Pieces) Write(b []byte) (int, error) {
	for part := b; len(part) > 0; {
		n := min(len(part), PieceBytes)
		if err := p(part[:n]); err != nil {
			return 0, err
		}
		part = part[n:]
	}
	return len(b), nil
}

// upload is the request of a stream of which the first has a start, and the others data.
type upload[S any] interface {
	GetStart() *S
	GetData() []byte
}

// receiver is a stream of such requests.
type receiver[R any] interface{ Recv() (R, error) }

// Start receives the first request of an upload.
func Start[S any, R upload[S]](stream receiver[R]) (*S, error) {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if start := first.GetStart(); start != nil {
		return start, nil
	}
	return nil, refusal.Input("kind", "The first request has to be start.")
}

// Data receives the next data of an upload.
func Data[S any, R upload[S]](stream receiver[R]) ([]byte, error) {
	m, err := stream.Recv()
	if err == nil && m.GetStart() != nil {
		err = refusal.Input("kind", "Start is the first request, and only the first.")
	}
	return m.GetData(), err
}

// NameUpload returns the idempotency key of an upload, made if it is empty, and answers with it in the metadata.
func NameUpload(stream grpc.ServerStream, key string) (string, error) {
	if key == "" {
		key = id.New()
	}
	return key, stream.SetHeader(metadata.Pairs(rpc.IdempotencyKey, key))
}
