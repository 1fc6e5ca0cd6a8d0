package bubblewrap

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/runner/stage"
)

// What is shown of the machine's /etc is copied, for each mount takes memory and time in every
// sandbox, and bubblewrap reads the list of them for each that it makes. What is larger, or has
// more in it, is mounted.
const (
	copiedBytes = 1 << 20
	copiedNames = 2000
)

// part is a file or folder to be shown: a copy, or a mount.
type part struct {
	path    string // below /etc
	mode    fs.FileMode
	target  string // of a link
	content []byte
	tree    int // a descriptor; none for a copy
}

const none = -1

func (p *part) close() {
	if p.tree != none {
		_ = unix.Close(p.tree)
	}
}

// watched is a file or folder of the machine, as it was seen.
type watched struct {
	path           string
	device, number uint64
	at             unix.Timespec // when its content, names, rights or place were changed last; zero for what is mounted
}

func watch(path string, st *unix.Stat_t, mounted bool) watched {
	w := watched{path: path, device: uint64(st.Dev), number: st.Ino, at: st.Ctim} //nolint:unconvert // the type is the architecture's
	if mounted {
		w.at = unix.Timespec{}
	}
	return w
}

// changed says whether it is not as it was.
func (w watched) changed() bool {
	var st unix.Stat_t
	return unix.Lstat(w.path, &st) != nil || watch(w.path, &st, w.at == unix.Timespec{}) != w
}

// errUncopied says that something is not to be copied.
var errUncopied = errors.New("too large, or no plain folder")

// collection is what is shown for one path.
type collection struct {
	parts   []part
	watched []watched
	bytes   int64
	device  uint64
}

// collect takes a source, which is no link, in whole as copies or as a mount. What has no name
// any more by the time that it is read was being replaced: it is tried again.
func (c *collection) collect(source, path string) (err error) {
	for range 3 {
		*c = collection{}
		if err = c.copy(source, path, true); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if !errors.Is(err, errUncopied) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(source, &st); err != nil {
		return &os.PathError{Op: "show", Path: source, Err: err}
	}
	tree, err := openReadOnly(source)
	if err != nil {
		return err
	}
	*c = collection{parts: []part{{path: path, tree: tree}}, watched: []watched{watch(source, &st, true)}}
	return nil
}

// copy takes a file, or a folder with all that is in it. What not everybody may read it leaves
// empty, with the rights that it has.
func (c *collection) copy(source, path string, top bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(source, &st); err != nil {
		return &os.PathError{Op: "show", Path: source, Err: err}
	}
	if top {
		c.device = uint64(st.Dev) //nolint:unconvert // the type is the architecture's
	}
	if c.bytes += st.Size; len(c.parts) >= copiedNames || c.bytes > copiedBytes || uint64(st.Dev) != c.device { //nolint:unconvert // as above
		return errUncopied
	}
	p := part{path: path, mode: fs.FileMode(st.Mode & 0o777), tree: none}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := os.Readlink(source)
		p.mode, p.target = fs.ModeSymlink, target
		c.parts = append(c.parts, p) // its folder changes with it
		return err
	case unix.S_IFREG:
		if top { // it was chosen to be shown
			p.mode |= 0o444
		}
		return c.copyFile(source, p, &st)
	case unix.S_IFDIR:
		if top {
			p.mode |= 0o555
		}
		p.mode |= fs.ModeDir
		return c.copyFolder(source, p, &st)
	}
	return errUncopied
}

func (c *collection) copyFile(source string, p part, st *unix.Stat_t) (err error) {
	if p.mode&0o004 != 0 {
		p.content, err = os.ReadFile(source)
	}
	c.parts, c.watched = append(c.parts, p), append(c.watched, watch(source, st, false))
	return err
}

func (c *collection) copyFolder(source string, p part, st *unix.Stat_t) error {
	c.parts, c.watched = append(c.parts, p), append(c.watched, watch(source, st, false))
	if p.mode&0o005 != 0o005 {
		return nil
	}
	names, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := c.copy(filepath.Join(source, n.Name()), filepath.Join(p.path, n.Name()), false); err != nil {
			return err
		}
	}
	return nil
}

// openReadOnly opens a file or folder, with what is mounted below it, to be shown elsewhere.
func openReadOnly(source string) (int, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return none, &os.PathError{Op: "show", Path: source, Err: err}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return none, errors.Join(&os.PathError{Op: "show read-only", Path: source, Err: err}, unix.Close(tree))
	}
	return tree, nil
}

// show shows it below a folder, out of which no link leads: what is shown may have some.
func (p *part) show(folder *os.Root) error {
	if err := makeParents(folder, filepath.Dir(p.path)); err != nil {
		return err
	}
	switch {
	case p.tree != none:
		return p.mount(folder)
	case p.mode&fs.ModeSymlink != 0:
		if err := folder.Remove(p.path); err != nil && !errors.Is(err, os.ErrNotExist) { // shown besides
			return err
		}
		return folder.Symlink(p.target, p.path)
	case p.mode.IsDir():
		if err := folder.Mkdir(p.path, 0o700); err != nil && !errors.Is(err, os.ErrExist) { // something in it may be shown besides
			return err
		}
	default:
		if err := folder.WriteFile(p.path, p.content, 0o600); err != nil {
			return err
		}
	}
	return folder.Chmod(p.path, p.mode.Perm()) // whatever the mask for new files
}

func (p *part) mount(folder *os.Root) error {
	var st unix.Stat_t
	if err := unix.Fstat(p.tree, &st); err != nil {
		return err
	}
	if err := stage.MakePoint(filepath.Join(folder.Name(), p.path), st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	return unix.MoveMount(p.tree, "", unix.AT_FDCWD, filepath.Join(folder.Name(), p.path), unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// makeParents makes a folder below another, and all that it is in, for all to pass through.
func makeParents(folder *os.Root, path string) error {
	if path == "." {
		return nil
	}
	if err := makeParents(folder, filepath.Dir(path)); err != nil {
		return err
	}
	switch err := folder.Mkdir(path, 0o755); {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return folder.Chmod(path, 0o755)
}
