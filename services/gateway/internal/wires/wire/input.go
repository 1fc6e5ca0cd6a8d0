package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/services/gateway/internal/codec"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// Decode reads the body of a request, within its limits, and its JSON into to. Numbers of values without a type of
// their own are json.Number, with every digit. Unknown fields are ignored; a field of the wrong kind is named.
func (s *Server) Decode(w http.ResponseWriter, r *http.Request, to any) error {
	if err := codec.CheckContentEncoding(r.Header); err != nil {
		return err
	}
	if err := codec.CheckContentType(r.Header, codec.ContentType); err != nil {
		return err
	}
	data, err := codec.NewBody(w, r, s.MaxBody, s.BodyTimeout).Bytes()
	if err != nil {
		return err
	}
	return DecodeJSON(data, to)
}

// DecodeJSON is Decode for JSON that has been read.
func DecodeJSON(data []byte, to any) error {
	if !utf8.Valid(data) {
		return problem.BodyMalformed("", "it is not UTF-8")
	}
	if err := codec.CheckValues(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(to)
	if err == nil {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return problem.BodyMalformed("", fmt.Sprintf("there is more after the JSON value, at byte %d", d.InputOffset()))
		}
		return nil
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return problem.BodyMalformed(wrong.Field, fmt.Sprintf("%s is a JSON %s, which it cannot be", wrong.Field, wrong.Value))
	case wrong != nil:
		return problem.BodyMalformed("", fmt.Sprintf("it is a JSON %s; send a JSON object", wrong.Value))
	case errors.Is(err, io.EOF):
		return problem.BodyMalformed("", "it is empty; send a JSON object")
	case strings.HasPrefix(err.Error(), "json: invalid number literal"): // Go has no type for it
		return problem.BodyMalformed("", "it has a text that is no number where a number has to be")
	default:
		return problem.BodyMalformed("", "it is not the JSON of a request: "+err.Error())
	}
}

// Limits of the lists in requests. Those of content and tools are the contract's.
const (
	MostContent  = 64
	MostTools    = 64
	MostEvents   = 100
	MostMessages = 10_000
	// MostID is the length of an id of JSON-RPC or AG-UI in bytes: each message of a streamed answer may have it.
	MostID = 1024
)

// TooMany returns the error for a list of a body with more items than it may have; nil if it has no more. Decoders judge
// a list before its items.
func TooMany(field string, n, most int) error {
	if n <= most {
		return nil
	}
	return problem.BodyMalformed(field, fmt.Sprintf("%s has %d items; send at most %d", field, n, most))
}

// RequestID returns the idempotency key of what a request asks for, from ids of the client's own: the same for the
// same ids.
func RequestID(ids ...string) string {
	h := sha256.New()
	for _, id := range ids {
		_, _ = fmt.Fprintf(h, "%d:%s", len(id), id) // it never fails
	}
	return "wire-" + hex.EncodeToString(h.Sum(nil))
}

// LastPart returns the id at the end of a resource's name.
func LastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
