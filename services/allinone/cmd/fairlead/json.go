package main

import (
	"io"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
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

// Err returns the first error.
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
	line, err := jsontext.AppendMessage(nil, m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
