// Command openapi turns the merged document of protoc-gen-openapiv3 into the
// one that the gateway serves. It reads the former from standard input and
// writes the latter to standard output.
//
// The plugin knows the proto only. What HTTP adds to it is added here: names of
// path parameters as in the resource names, the headers Idempotency-Key and
// Last-Event-ID, and the streams as they look on the wire.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

// run reads a document, improves it and writes it with its keys sorted, so that
// the same proto gives the same bytes.
func run(in io.Reader, out io.Writer) error {
	var doc object
	if err := json.NewDecoder(in).Decode(&doc); err != nil {
		return fmt.Errorf("read the merged document: %w", err)
	}
	if err := improve(doc); err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}
