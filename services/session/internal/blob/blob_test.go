package blob

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// errBroken ends a stream that has brought little or nothing.
var errBroken = errors.New("the stream broke")

// TestAnUploadTakesMemoryForWhatArrives begins uploads that bring nothing.
func TestAnUploadTakesMemoryForWhatArrives(t *testing.T) {
	b := &Blobs{MaxBytes: 5 << 30}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const uploads = 20
	for range uploads {
		from := io.MultiReader(strings.NewReader(""), brokenReader{})
		if err := b.Append(t.Context(), &store.FileRow{File: &sessionv1.File{}}, false, from); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / uploads; took > 64<<10 {
		t.Errorf("an upload without a byte took %d bytes", took)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }
