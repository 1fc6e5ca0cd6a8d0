// Package plainuser runs the tests of a package again as a user without privileges when they run as root,
// because root is denied no access.
package plainuser

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const nobody = 65534

// Need skips a test as root; Tests runs it again.
func Need(t testing.TB) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("nothing is closed to root")
	}
}

// Folder makes a folder that belongs to the user and is reachable.
func Folder(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this is that user")
	}
	above, err := os.MkdirTemp("/tmp", "fairlead-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(above) })
	dir := filepath.Join(above, "tmp")
	err = os.Chmod(above, 0o755) //nolint:gosec // the user is to reach what is below
	if err := errors.Join(err, os.Mkdir(dir, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Tests runs all tests of the package as the user, in a folder of Folder, in parallel with the remaining
// tests.
func Tests(t *testing.T, dir string, environment []string, arguments ...string) {
	t.Helper()
	program := filepath.Join(filepath.Dir(dir), "package.test")
	// Written by a separate process: processes that other tests start at the same time would otherwise have
	// the file open for writing.
	cmd := exec.CommandContext(t.Context(), "cp", fmt.Sprintf("/proc/%d/exe", os.Getpid()), program) //nolint:gosec // the tests themselves
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if testing.Short() {
		arguments = append(arguments, "-test.short")
	}
	var out bytes.Buffer
	cmd = exec.CommandContext(t.Context(), program, arguments...) //nolint:gosec // the tests themselves
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append([]string{"TMPDIR=" + dir}, environment...), &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
