package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/mount"
)

// TestAMountWhoseFolderIsGoneKeepsOthersWorking removes a mount's source while the service runs.
func TestAMountWhoseFolderIsGoneKeepsOthersWorking(t *testing.T) {
	t.Parallel()
	atLevel(t, func(t *testing.T, level string) {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(dir, "books")
		if err := os.Mkdir(source, 0o755); err != nil {
			t.Fatal(err)
		}
		c := open(t, level, func(c *sandbox.Config) { c.Mounts = []mount.Rule{{Name: "books", Source: source, Alias: "books"}} })
		if err := os.Remove(source); err != nil {
			t.Fatal(err)
		}
		if r, err := c.exec(t.Context(), "echo ok", nil); err != nil || !strings.Contains(r.out, "ok") {
			t.Errorf("a command: %v, %v", r, err)
		}
		if r := c.ensure(t.Context(), t); !slices.Equal(r.GetMissingMounts(), []string{"books"}) {
			t.Errorf("missing are %v", r.GetMissingMounts())
		}
		_, err = c.requests(t, "ann", &commonv1.Mount{Name: "books"})
		if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "books") || strings.Contains(err.Error(), dir) {
			t.Errorf("a session that requires it: %v", err)
		}
	})
}
