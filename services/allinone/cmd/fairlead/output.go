package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
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

// rowsOf returns the head of a table, which every row has, and a row for each of all.
func rowsOf[T any](all []T, row func(T) [][]string) [][]string {
	var none T
	rows := make([][]string, 1+len(all))
	for _, cell := range row(none) {
		rows[0] = append(rows[0], cell[0])
	}
	for i, x := range all {
		for _, cell := range row(x) {
			rows[1+i] = append(rows[1+i], cell[1])
		}
	}
	return rows
}

// columns prints rows as an aligned table. Cells are not trusted, and long ones are shortened.
func columns(w io.Writer, rows [][]string) error { return table(w, rows, 60) }

// whole is columns with every cell in full, for what a person copies or must read to its end.
func whole(w io.Writer, rows [][]string) error { return table(w, rows, 0) }

func table(w io.Writer, rows [][]string, width int) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = terminal.Line(cell, width); cells[i] == "" {
				cells[i] = "-" // an empty cell at the end of a row would break its column
			}
		}
		if _, err := fmt.Fprintln(aligned, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return aligned.Flush()
}

// bare returns the last part of a resource name.
func bare(name string) string { return name[strings.LastIndex(name, "/")+1:] }

func stamp(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format(time.DateTime)
}
