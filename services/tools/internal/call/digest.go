package call

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// Digest identifies a tool and the exact arguments: a person approves it, and a
// call id stands for it. The name's length comes first, so that two different
// pairs never hash the same text.
func Digest(name, arguments string) string {
	h := sha256.New()
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(name)))
	h.Write(length[:])
	h.Write([]byte(name))
	h.Write([]byte(arguments))
	return hex.EncodeToString(h.Sum(nil))
}

func encode(r *toolsv1.CallResult) ([]byte, error) {
	b, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	return b, nil
}

func decode(b []byte) (*toolsv1.CallResult, error) {
	r := &toolsv1.CallResult{}
	if err := proto.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("decode a recorded result: %w", err)
	}
	return r, nil
}
