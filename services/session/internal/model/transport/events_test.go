package transport

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// list reads all events of a stream and writes them down as name and data.
func list(r io.Reader) (all []string, err error) {
	events := NewEvents(r)
	for {
		ev, err := events.Next()
		if err != nil {
			return all, err
		}
		all = append(all, ev.Name+" "+string(ev.Data))
	}
}

func TestEvents(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []string
		err          error
	}{
		{"events", "event: a\ndata: {\"x\":1}\n\ndata: [DONE]\n\n", []string{`a {"x":1}`, " [DONE]"}, io.EOF},
		{"no space, no blank line", "data:{\"x\":1}\ndata:{\"x\":2}\ndata:[DONE]", []string{` {"x":1}`, ` {"x":2}`, " [DONE]"}, io.EOF},
		{"data of several lines", "data: {\"x\":\ndata: 1}\n\n", []string{" {\"x\":\n1}"}, io.EOF},
		{"comments, other fields and blank data", ": hi\nid: 1\nretry: 5\ndata\ndata:\n\nevent: ping\n\ndata: {}\n\n", []string{" {}"}, io.EOF},
		{"a byte order mark", "\ufeffdata: {}\n\n", []string{" {}"}, io.EOF},
		{"an event that is cut", "data: {}\n\ndata: {\"x\":\"é", []string{" {}"}, io.ErrUnexpectedEOF},
		{"an error without data", "event: error\n\n", []string{"error "}, io.EOF},
		{"text as data", "data: no\n\n", []string{" no"}, io.EOF},
		{"text", "upstream\ngone", []string{"error upstream\ngone"}, io.EOF},
		{"text after events", "data: {}\n\ngone\n", []string{" {}"}, io.EOF},
		{"a bare object after events", "data: {}\n\n{\"error\":1}\n", []string{" {}", ` {"error":1}`}, io.EOF},
		{"a web page", "\n<html>\n<style>\n:root { a: b }\ndata: {}\n</style>", []string{"error <html>\n<style>\n:root { a: b }\ndata: {}\n</style>"}, io.EOF},
		{"JSON", "{\n \"data\": 1\n}\n", []string{" {\n \"data\": 1\n}"}, io.EOF},
		{"JSON that is cut", "{\n \"data\": 1\n", nil, io.ErrUnexpectedEOF},
		{"a JSON object in each line", "{\"x\":1}\n{\"x\":2}\n", []string{` {"x":1}`, ` {"x":2}`}, io.EOF},
		{"nothing", "", nil, io.EOF},
	}
	for _, tt := range tests {
		for _, end := range []string{"\n", "\r\n", "\r"} {
			for cut, reader := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader} {
				t.Run(fmt.Sprintf("%s, %q, %s", tt.name, end, cut), func(t *testing.T) {
					got, err := list(reader(strings.NewReader(strings.ReplaceAll(tt.stream, "\n", end))))
					want := slices.Clone(tt.want)
					if json := strings.HasPrefix(tt.name, "JSON") || strings.HasPrefix(tt.name, "a web"); json { // is given as it is
						for i := range want {
							want[i] = strings.ReplaceAll(want[i], "\n", end)
						}
					}
					if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, tt.err) {
						t.Errorf("%v: %s", err, diff)
					}
				})
			}
		}
	}
}

func TestAnErrorOfTheConnectionIsGiven(t *testing.T) {
	boom := errors.New("boom")
	got, err := list(io.MultiReader(strings.NewReader("data: {}\n\ndata: {\"x"), iotest.ErrReader(boom)))
	if !errors.Is(err, boom) || len(got) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestManyLinesOfDataAreReadInLinearTime has an event whose every line could end it.
func TestManyLinesOfDataAreReadInLinearTime(t *testing.T) {
	stream := "data: {\"x\":[{}\n" + strings.Repeat("data: ,{}\n", 100_000) + "data: ]}\n\n"
	got, err := list(strings.NewReader(stream))
	if len(got) != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d events, %v", len(got), err)
	}
}
