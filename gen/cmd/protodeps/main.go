// Command protodeps writes the third-party .proto files that proto/ imports to
// a folder. It takes them from the descriptors inside the generated Go packages
// that we link anyway, so that no copy is kept in the repository and the
// versions are those of go.sum.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jhump/protoreflect/v2/protoprint"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	_ "google.golang.org/genproto/googleapis/api/annotations"
	_ "google.golang.org/genproto/googleapis/rpc/status"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protodeps FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "protodeps:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		// buf brings google/protobuf itself.
		if !strings.HasPrefix(f.Path(), "google/protobuf/") {
			files = append(files, f)
		}
		return true
	})
	for _, f := range files {
		text, err := (&protoprint.Printer{}).PrintProtoToString(f)
		if err != nil {
			return fmt.Errorf("print %s: %w", f.Path(), err)
		}
		path := filepath.Join(folder, filepath.FromSlash(f.Path()))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // folder is named by the Makefile
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // folder is named by the Makefile
			return err
		}
	}
	return nil
}
