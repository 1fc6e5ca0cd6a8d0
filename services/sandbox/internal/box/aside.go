package box

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// AsideName is the suffix of the new name of a file that lay in a cover's place.
const AsideName = "aside"

// setAside renames files of the workspace that lie where a user's mount is to appear. In a cover's place it
// renames everything: files hidden below a cover can be reached only through a link, and another reader
// would take them for the mount. Elsewhere it renames only non-folders, which would make the mount fail.
// Such files predate the mount, or came with an import or the first files. The caller has exclusive use of
// the session. An empty user stands for the mounts that every user gets. mu is held.
func (ws *workspace) setAside(user string) error {
	if ws.node.o.Mounts == nil || ws.meta.unsealed() != nil {
		return nil
	}
	all, err := ws.node.o.Mounts.For(ws.key.Tenant, user, nil)
	if err != nil {
		return err
	}
	dir, err := openOwn(ws.path("workspace")) // before the folder is read: a command may have closed it
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	defer func() { _ = dir.Close() }()
	for _, m := range all {
		if m.Point() == "" || m.Inner() || m.fits(ws.path("workspace", m.Alias)) {
			continue
		}
		ws.node.o.Runner.Stop(ws.path("workspace")) // a mount would move along
		to, err := renameAside(dir, m.Alias)
		if err != nil {
			return fmt.Errorf("set aside %s, where mounts must go: %w", m.Alias, err)
		}
		ws.node.o.Log.Info("set aside a workspace's files in the way of mounts", "session", ws.key.Session, "from", m.Alias, "to", to)
	}
	return nil
}

// fits reports whether the mount can lie over name: over a missing file or a folder, which must be empty
// for a cover.
func (m Mount) fits(name string) bool {
	st, err := os.Lstat(name)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	if !st.IsDir() || !m.Cover {
		return st.IsDir()
	}
	all, err := os.ReadDir(name)
	if errors.Is(err, os.ErrPermission) { // a command has closed its own folder
		return os.Remove(name) == nil
	}
	return err == nil && len(all) == 0
}

// renameAside renames an entry of the workspace to a free name.
func renameAside(dir *os.File, name string) (to string, err error) {
	for n := 1; ; n++ {
		if to = name + "." + AsideName; n > 1 {
			to += "-" + strconv.Itoa(n)
		}
		err = rights.Through(dir, func() error {
			return unix.Renameat2(int(dir.Fd()), name, int(dir.Fd()), to, unix.RENAME_NOREPLACE)
		})
		if !errors.Is(err, unix.EEXIST) {
			return to, err
		}
	}
}
