package rootfs

import (
	"os"
	"path/filepath"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// Build makes a folder that is the read-only root of containers: generated files, links, and places for
// mounts.
func (l *Layout) Build(root string, places ...string) error {
	for _, dir := range append([]string{"/proc", "/dev", "/tmp", "/var", "/etc", box.WorkspacePath, box.HomePath, box.TreesPath}, places...) {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
	}
	// The runtime gives its mount the mode of the place.
	if err := os.Chmod(root+"/tmp", 0o777|os.ModeSticky); err != nil {
		return err
	}
	for _, b := range append(append([]Bind{}, l.Binds...), l.Extra...) {
		if err := makePlace(root+b.Path, b.Source); err != nil {
			return err
		}
	}
	for _, x := range append([]Link{{Path: "/var/tmp", Target: "/tmp"}}, l.Links...) {
		if err := os.Symlink(x.Target, root+x.Path); err != nil {
			return err
		}
	}
	for _, f := range MadeFiles {
		if err := os.WriteFile(root+f.Path, []byte(f.Text), 0o444); err != nil {
			return err
		}
	}
	return nil
}

// makePlace makes a place for a mount of a folder or file.
func makePlace(at, source string) error {
	st, err := os.Stat(source)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // empty; what is shown there has a mode of its own
	if err != nil {
		return err
	}
	return f.Close()
}
