package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/bind"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	partForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
)

// maxParts is how many folders an alias may name.
const maxParts = 8

// maxLooked is how many files of a source are checked for sockets.
const maxLooked = 20_000

// sensitive are folders of the host through which commands would reach its kernel or its services.
var sensitive = []string{"/proc", "/sys", "/dev", "/run", "/var/run", "/boot"}

// system are folders that every sandbox has itself.
var system = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/proc", "/dev", "/sys", "/tmp", "/var/tmp",
	box.WorkspacePath, box.HomePath, box.TreesPath,
}

// compile checks a mount of the operator.
func (s *Set) compile(r Rule) (rule, error) {
	made := rule{Mount: box.Mount{Name: r.Name, Source: r.Source, Alias: r.Alias, Original: r.Original}, audience: r.For, onRequest: r.OnRequest}
	if !nameForm.MatchString(r.Name) {
		return made, errors.New("a name is 1 to 63 lower-case letters, digits and '-', and begins with no '-'")
	}
	if err := made.audience.check(); err != nil {
		return made, err
	}
	switch r.Mode {
	case "", ReadOnly:
	case ReadWrite:
		made.Writable = true
	default:
		return made, fmt.Errorf("mode: %q is neither ro nor rw", r.Mode)
	}
	if r.Alias == "" && !r.Original {
		return made, errors.New("it is shown nowhere: give it an alias, or set original")
	}
	if r.Alias != "" {
		if err := checkAlias(r.Alias); err != nil {
			return made, err
		}
		if err := made.checkPrivate(); err != nil {
			return made, err
		}
	}
	if r.Original {
		if own := overlaps(r.Source, system); own != "" {
			return made, fmt.Errorf("at its original place it would hide the sandbox's own %s: give it an alias instead", own)
		}
	}
	err := s.checkFolder(&made.Mount)
	if isAway(err) {
		made.late, err = &late{}, nil
	}
	return made, err
}

// checkFolder checks the source of a mount and finds its owner.
func (s *Set) checkFolder(m *box.Mount) error {
	if err := s.checkSource(m.Source); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	return s.checkOwner(m)
}

func checkAlias(alias string) error {
	parts := strings.Split(alias, "/")
	if len(parts) > maxParts || slices.ContainsFunc(parts, func(p string) bool { return !partForm.MatchString(p) }) {
		return fmt.Errorf("alias: %q is not 1 to %d names of letters, digits and `._-`, that begin with no dot, with `/` between them", alias, maxParts)
	}
	if strings.HasSuffix(parts[0], "."+box.AsideName) {
		return fmt.Errorf("alias: %s is reserved for a workspace's own files in the way of mounts", parts[0])
	}
	if alias == PrivateFolder {
		return fmt.Errorf("alias: %s is the folder of every workspace that mounts lie in: choose a place below it, such as %s/books", alias, alias)
	}
	if parts[0] == WorkflowsFolder || slices.Contains(box.StandardFolders, parts[0]) {
		return fmt.Errorf("alias: %s is a standard folder of the workspace", parts[0])
	}
	return nil
}

// within reports whether a path is another one, or below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// overlaps returns the folder that name equals, contains or lies in.
func overlaps(name string, all []string) string {
	for _, dir := range all {
		if within(name, dir) || within(dir, name) {
			return dir
		}
	}
	return ""
}

// checkSource refuses a source that would show more than a folder of files.
func (s *Set) checkSource(source string) error {
	if !filepath.IsAbs(source) || source != filepath.Clean(source) || source == "/" {
		return fmt.Errorf("%q is not an absolute, clean path below /", source)
	}
	f, err := bind.Folder(source)
	if err != nil {
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			return fmt.Errorf("%s is not a folder, or a part of it is a link: name the folder itself", source)
		}
		return err
	}
	defer func() { _ = f.Close() }()
	if dir := overlaps(source, sensitive); dir != "" {
		return fmt.Errorf("%s would show %s, and the machine with it", source, dir)
	}
	for _, private := range s.o.Private {
		if resolved, err := filepath.EvalSymlinks(private); err == nil {
			private = resolved
		}
		if overlaps(source, []string{private}) != "" {
			return fmt.Errorf("%s would show %s, which is the service's own", source, private)
		}
	}
	return noSockets(source, maxLooked)
}

// noSockets refuses a folder with sockets among its first files: a read-only mount does not keep commands
// from connecting to a socket.
func noSockets(source string, most int) error {
	looked := 0
	return filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if looked++; looked > most {
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // what the service cannot see, commands cannot either
		}
		if d.Type()&fs.ModeSocket != 0 {
			return fmt.Errorf("it contains the socket %s, and commands could connect to it", name)
		}
		return nil
	})
}

var errUnmapped = errors.New("this driver cannot have several users' commands write to the same files, and the service gives each workspace a user of its own: " +
	"start the service as a plain user, or leave it out (of a mount: change the mode to ro)")

// checkOwner determines the owner of a writable mount's files as commands see them, and tests that mapping.
func (s *Set) checkOwner(m *box.Mount) error {
	if !m.Writable {
		return nil
	}
	if s.o.Owners.Base < 0 { // commands run as the service's own user
		if err := unix.Access(m.Source, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("%s is not writable for the service's user, and commands run as this user: change its owner, or the mode to ro: %w", m.Source, err)
		}
		return nil
	}
	if s.o.Unmapped {
		return errUnmapped
	}
	st, err := os.Lstat(m.Source)
	if err != nil {
		return err
	}
	owner := st.Sys().(*syscall.Stat_t)
	if owner.Uid == 0 || owner.Gid == 0 {
		return fmt.Errorf("%s belongs to root or its group, and so would what commands write: give it to another user and group, or change the mode to ro", m.Source)
	}
	m.Disk = box.Owner{UID: int(owner.Uid), GID: int(owner.Gid)}
	return tryMapping(*m, box.Owner{UID: s.o.Owners.Base, GID: s.o.Owners.Base})
}

// tryMapping shows a folder in its final form, to learn whether the kernel can.
func tryMapping(m box.Mount, o box.Owner) error {
	f, err := bind.Folder(m.Source)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	tree, err := bind.Clone(f, m.Options(o))
	if err != nil {
		return fmt.Errorf("it cannot be writable here: %w: change the mode to ro, or use another file system", err)
	}
	return tree.Close()
}

// checkSecrecy refuses mounts for some users whose files other users see elsewhere.
func (s *Set) checkSecrecy() error {
	var faults []error
	for i, r := range s.rules {
		if len(r.audience) == 0 {
			continue
		}
		for _, dir := range s.common() {
			if within(r.Source, dir) {
				faults = append(faults, fmt.Errorf("mount %s is not for all users, but all users see %s: choose a source outside of %s", r.Name, r.Source, dir))
			}
		}
		for j, other := range s.rules {
			if i != j && within(r.Source, other.Source) && !r.audience.covers(other.audience) {
				faults = append(faults, fmt.Errorf("mount %s is not for all users of mount %s, which also shows %s: choose a source outside of %s", r.Name, other.Name, r.Source, other.Source))
			}
		}
	}
	return errors.Join(faults...)
}

// common returns the folders of the host that all users see, with links resolved as for sources.
func (s *Set) common() []string {
	workflows, _, _ := strings.Cut(s.o.Workflows, tenantMark)
	all := []string{"/usr", "/bin", "/sbin", "/lib"}
	for _, dir := range append(slices.Clone(s.o.Common), workflows) {
		if dir = strings.TrimSuffix(dir, "/"); dir == "" {
			continue
		}
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			dir = resolved
		}
		all = append(all, dir)
	}
	return all
}

// checkPlaces refuses mounts that would lie over one another, even if different users get them.
func (s *Set) checkPlaces() error {
	var faults []error
	aliases := map[string]string{}
	originals := map[string]string{}
	if s.o.Storage.Alias != "" {
		faults = append(faults, checkAlias(s.o.Storage.Alias))
		aliases[s.o.Storage.Alias] = StorageName
	}
	for _, r := range s.rules {
		for _, x := range []struct {
			place string
			used  map[string]string
			want  bool
		}{{path.Clean(r.Alias), aliases, r.Alias != ""}, {r.Source, originals, r.Original}} {
			for place, name := range x.used {
				if x.want && (within(x.place, place) || within(place, x.place)) {
					faults = append(faults, fmt.Errorf("mounts %s and %s would overlap, at %s and %s", name, r.Name, place, x.place))
				}
			}
			if x.want {
				x.used[x.place] = r.Name
			}
		}
	}
	return errors.Join(faults...)
}
