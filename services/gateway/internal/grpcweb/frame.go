package grpcweb

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// A frame is a byte of flags, the length in four bytes, and that many bytes.
const (
	frameHeader    = 5
	compressedFlag = 0x01
	trailerFlag    = 0x80
)

// appendFrame appends a frame. As text, each frame is base64 of its own, so that it can be read when it arrives.
func appendFrame(dst []byte, flag byte, data []byte, text bool) []byte {
	head := [frameHeader]byte{flag}
	binary.BigEndian.PutUint32(head[1:], uint32(len(data))) // messages have at most 16 MiB
	if !text {
		return append(append(dst, head[:]...), data...)
	}
	return base64.StdEncoding.AppendEncode(dst, slices.Concat(head[:], data))
}

// oneMessage returns the message of a body with exactly one frame of a message.
func oneMessage(body []byte) ([]byte, error) {
	var message []byte
	found := false
	for len(body) > 0 {
		if len(body) < frameHeader || uint64(len(body)-frameHeader) < uint64(binary.BigEndian.Uint32(body[1:])) {
			return nil, problem.BodyMalformed("", "it ends in the middle of a frame")
		}
		flag, size := body[0], int(binary.BigEndian.Uint32(body[1:]))
		data := body[frameHeader : frameHeader+size]
		body = body[frameHeader+size:]
		switch {
		case flag&compressedFlag != 0:
			return nil, problem.BodyMalformed("", "a frame is compressed; send it as it is")
		case flag == trailerFlag:
		case flag != 0:
			return nil, problem.BodyMalformed("", fmt.Sprintf("a frame has the unknown flags %#x", flag))
		case found:
			return nil, problem.BodyMalformed("", "it has more than one message")
		default:
			message, found = data, true
		}
	}
	if !found {
		return nil, problem.BodyMalformed("", "it has no message")
	}
	return message, nil
}

// decodeText decodes base64 that may be several texts, one behind the other.
func decodeText(text []byte) ([]byte, error) {
	out := make([]byte, 0, base64.StdEncoding.DecodedLen(len(text)))
	for len(text) > 0 {
		end := len(text)
		if i := slices.Index(text, '='); i >= 0 {
			end = i + 1
			if end < len(text) && text[end] == '=' {
				end++
			}
		}
		var err error
		if out, err = base64.StdEncoding.AppendDecode(out, text[:end]); err != nil {
			return nil, problem.BodyMalformed("", "it is not base64: "+err.Error())
		}
		text = text[end:]
	}
	return out, nil
}

// trailers returns a status as the lines of a trailer frame.
func trailers(st *status.Status) []byte {
	var b strings.Builder
	b.WriteString("grpc-status: " + strconv.Itoa(int(st.Code())) + "\r\n")
	if m := st.Message(); m != "" {
		b.WriteString("grpc-message: " + percent(m) + "\r\n")
	}
	if len(st.Proto().GetDetails()) > 0 {
		if data, err := proto.Marshal(st.Proto()); err == nil { // a status that was received can be sent
			b.WriteString("grpc-status-details-bin: " + base64.RawStdEncoding.EncodeToString(data) + "\r\n")
		}
	}
	return []byte(b.String())
}

// percent encodes a message for a header: bytes that are not printable ASCII, and '%', as %XX.
func percent(s string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(s))
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}
