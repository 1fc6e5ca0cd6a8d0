package codec

import (
	"bytes"
	"fmt"
	"io"
	"reflect"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// ContentType is the media type of bodies in both directions.
const ContentType = "application/json"

// Marshaler reads and writes bodies for grpc-gateway. It decodes only a Body, or what Body.Buffer
// returned.
type Marshaler struct{}

var _ runtime.Marshaler = Marshaler{}

// ContentType implements runtime.Marshaler.
func (Marshaler) ContentType(any) string { return ContentType }

// Marshal implements runtime.Marshaler.
func (Marshaler) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	b, err := jsontext.AppendMessage(nil, m)
	return append(b, '\n'), err
}

// Unmarshal implements runtime.Marshaler.
func (Marshaler) Unmarshal(data []byte, v any) error {
	m, err := message(v)
	if err != nil {
		return err
	}
	return Unmarshal(data, m)
}

// NewDecoder implements runtime.Marshaler.
func (Marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		// The pointer is set only if there is a body: `{"session": …}` stays nil without one.
		m, err := message(v)
		if err != nil {
			return err
		}
		switch b := r.(type) {
		case *Body:
			err = b.Decode(m)
		case Buffered:
			err = decodeBuffer(b, m)
		case *bytes.Reader: // grpc-gateway's copy of a Buffered
			err = decodeBuffer(b, m)
		default:
			err = fmt.Errorf("%T is not a body with a limit", r)
		}
		if err != nil {
			return err
		}
		if p := reflect.ValueOf(v); p.Elem().Kind() == reflect.Pointer {
			p.Elem().Set(reflect.ValueOf(m))
		}
		return nil
	})
}

// decodeBuffer reads what Body.Buffer returned.
func decodeBuffer(r io.Reader, m proto.Message) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return io.EOF
	}
	return Unmarshal(data, m)
}

// NewEncoder implements runtime.Marshaler.
func (j Marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		b, err := j.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
}

// message returns the message to fill: grpc-gateway passes a *Request, or a pointer to a field of type
// *Message.
func message(v any) (proto.Message, error) {
	if m, ok := v.(proto.Message); ok {
		return m, nil
	}
	p := reflect.TypeOf(v)
	if p == nil || p.Kind() != reflect.Pointer || p.Elem().Kind() != reflect.Pointer {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	m, ok := reflect.New(p.Elem().Elem()).Interface().(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	return m, nil
}
