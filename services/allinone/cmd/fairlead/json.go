package main

import (
	"bytes"
	"encoding/json"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// jsonLines shows events as one JSON object a line.
type jsonLines struct {
	w   io.Writer
	err error
}

// Event writes an event.
func (j *jsonLines) Event(e *sessionv1.Event) {
	if j.err == nil {
		j.err = writeJSON(j.w, e)
	}
}

// Err is the first error.
func (j *jsonLines) Err() error { return j.err }

// printJSON writes messages, one JSON object a line.
func printJSON[M proto.Message](w io.Writer, all []M) error {
	for _, m := range all {
		if err := writeJSON(w, m); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(w io.Writer, m proto.Message) error {
	data, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil { // protojson's spaces differ from build to build
		return err
	}
	line.WriteByte('\n')
	_, err = w.Write(line.Bytes())
	return err
}
