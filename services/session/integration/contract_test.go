package integration

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	_ "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// TestNoMessageCarriesJSONAsValues walks the contract: google.protobuf.Struct and its kin keep numbers as float64 and
// forget the order of names, so JSON travels as text.
func TestNoMessageCarriesJSONAsValues(t *testing.T) {
	t.Parallel()
	files := 0
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(f.Path(), "fairlead/") {
			files++
			checkMessages(t, f.Messages())
		}
		return true
	})
	written := 0
	err := fs.WalkDir(os.DirFS("../../../proto"), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			written++
		}
		return err
	})
	if err != nil || files != written {
		t.Errorf("%d files of the contract were looked at, there are %d (%v); import the package that is missing", files, written, err)
	}
}

func checkMessages(t *testing.T, messages protoreflect.MessageDescriptors) {
	t.Helper()
	for i := range messages.Len() {
		m := messages.Get(i)
		checkMessages(t, m.Messages())
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			if f.Message() == nil {
				continue
			}
			switch f.Message().FullName() {
			case "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue":
				t.Errorf("%s is a %s, which rounds numbers; carry JSON text in a string %s_json", f.FullName(), f.Message().FullName(), f.Name())
			}
		}
	}
}
