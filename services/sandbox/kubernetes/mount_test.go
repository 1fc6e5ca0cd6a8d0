package kubernetes_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes"
	"github.com/fairlead/fairlead/services/sandbox/kubernetes/internal/apitest"
)

func TestMountsThatAPodCannotShowAreRefused(t *testing.T) {
	t.Parallel()
	needKubelet(t)
	shelf := shelf(t)
	books, colon, elsewhere := filepath.Join(shelf, "books"), filepath.Join(shelf, "a:b"), "/usr"
	if err := errors.Join(os.Mkdir(books, 0o755), os.Mkdir(colon, 0o755), os.Mkdir(filepath.Join(shelf, "other"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		mount  box.Mount
		volume kubernetes.Volume
		faults apitest.Faults
		want   string
	}{
		{
			name: "one on no volume", mount: box.Mount{Source: elsewhere}, volume: kubernetes.Volume{Claim: "shelf", Path: "/srv/nowhere"},
			want: "not on a volume that sandboxes can mount",
		},
		{
			name: "a writable mount of another user", mount: box.Mount{Source: books, Writable: true, Disk: box.Owner{UID: 4001, GID: 4001}},
			volume: kubernetes.Volume{Claim: "shelf", Path: shelf}, want: "belong to another user",
		},
		{name: "one whose name a pod cannot have", mount: box.Mount{Source: colon}, volume: kubernetes.Volume{Claim: "shelf", Path: shelf}, want: "colon"},
		{
			name: "one that is something else in the claim", mount: box.Mount{Source: books},
			volume: kubernetes.Volume{Claim: "shelf", ClaimPath: "other", Path: books}, want: "shows another folder",
		},
		{
			name: "one that the cluster leaves open", mount: box.Mount{Source: books}, volume: kubernetes.Volume{Claim: "shelf", Path: shelf},
			faults: apitest.Faults{Writable: true}, want: "is not ro",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := apitest.New(t, apitest.Options{Volume: volume, Claims: map[string]string{"shelf": shelf}})
			s.Break(tc.faults)
			o := options(t, s)
			o.Volumes = []kubernetes.Volume{tc.volume}
			r := newRunner(t, o)
			c := command(t, "echo BROKEN")
			tc.mount.Name, tc.mount.Alias = "books", "books"
			if err := os.Mkdir(filepath.Join(c.Sandbox.Workspace, "books"), 0o755); err != nil {
				t.Fatal(err)
			}
			c.Sandbox.Mounts = box.EncodeMounts([]box.Mount{tc.mount})
			if _, exit, err := run(t, r, c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v, %v, want %q", exit, err, tc.want)
			}
			if left := s.Pods(); len(left) > 0 {
				t.Errorf("%d pods are left", len(left))
			}
		})
	}
}
