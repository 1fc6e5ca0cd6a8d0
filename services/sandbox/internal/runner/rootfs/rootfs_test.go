package rootfs

import "testing"

func TestAnExtraPathMayNotHideTheSandboxsOwn(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"relative", "/", "/proc", "/workspace/x", "/home", "/dev/shm", "/a/../b", "/no/such/path"} {
		if _, err := Find([]string{path}, nil); err == nil {
			t.Errorf("%s was accepted", path)
		}
	}
}
