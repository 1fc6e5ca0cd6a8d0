// Package rootfs defines what sandboxes see of their machine: a curated, read-only part of its tree, and
// generated files. It only finds the parts; drivers show them. On a Stage they show folders to programs that
// make sandboxes as other users.
package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead/fairlead/services/sandbox/internal/box"
)

// systemFolders are the top-level folders besides /usr that programs need. On most systems they are links
// into it.
var systemFolders = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// systemFiles are the only files of the host's /etc that commands see: those that the dynamic linker, TLS
// and the alternatives system need. None holds a secret or names a person.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates",
	"/etc/localtime", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/terminfo",
}

// File is a generated file.
type File struct{ Path, Text string }

// MadeFiles are the generated files of /etc, which reveal nothing about the host.
var MadeFiles = []File{
	{"/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n"},
	{"/etc/hostname", "sandbox\n"},
	{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
	{"/etc/resolv.conf", ""},
}

// Devices are the devices of the machine that sandboxes see. In a container each may be a mount.
var Devices = []string{Null, "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// Null is the null device.
const Null = "/dev/null"

// ScratchFiles is how many files, directories and links a file system in memory may hold: one for each
// page, and some empty ones.
func ScratchFiles(bytes int64) int64 { return max(bytes/4096, 1024) }

// Layout is the read-only root of every sandbox of this machine.
type Layout struct {
	Binds []Bind // of the machine's own folders and files, in mount order
	Links []Link
	// MaskedFiles and MaskedFolders are the machine's paths to hide.
	MaskedFiles, MaskedFolders []string
	// Extra are further paths that the operator shows.
	Extra []Bind
	Path  string // the default PATH
}

// Bind shows a file or folder of the host, read-only.
type Bind struct {
	Path   string // inside
	Source string // on the host, without links
}

// Link is a symbolic link.
type Link struct{ Path, Target string }

// maskedFiles and maskedFolders reveal the machine or keys. Some machines get secrets on their kernel's
// command line.
var (
	maskedFiles = []string{
		"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
		"/proc/sched_debug", "/proc/kallsyms", "/proc/modules", "/proc/kmsg", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/cmdline",
	}
	maskedFolders = []string{"/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/fs", "/proc/driver"}
)

// Find inspects the host. Required and optional are further paths to show at the same place; missing
// optional ones are left out.
func Find(required, optional []string) (*Layout, error) {
	l := &Layout{Binds: []Bind{{"/usr", "/usr"}}}
	for _, dir := range systemFolders {
		l.addSystemFolder(dir)
	}
	for _, file := range systemFiles {
		if target, err := filepath.EvalSymlinks(file); err == nil {
			l.Binds = append(l.Binds, Bind{file, target})
		}
	}
	bins := []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
	if _, err := os.Stat("/usr/local/go/bin"); err == nil {
		bins = append([]string{"/usr/local/go/bin"}, bins...)
	}
	for _, path := range required {
		if err := l.addExtra(path); err != nil {
			return nil, fmt.Errorf("read-only path %s: %w", path, err)
		}
	}
	for _, path := range optional {
		if err := l.addExtra(path); err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("read-only path %s: %w", path, err)
		}
	}
	for _, x := range l.Extra {
		if st, err := os.Stat(filepath.Join(x.Path, "bin")); err == nil && st.IsDir() {
			bins = append(bins, filepath.Join(x.Path, "bin"))
		}
	}
	l.Path = strings.Join(bins, ":")
	l.addMasks()
	return l, nil
}

func (l *Layout) addMasks() {
	for _, f := range maskedFiles {
		if _, err := os.Lstat(f); err == nil {
			l.MaskedFiles = append(l.MaskedFiles, f)
		}
	}
	for _, f := range maskedFolders {
		if _, err := os.Lstat(f); err == nil {
			l.MaskedFolders = append(l.MaskedFolders, f)
		}
	}
}

func (l *Layout) addSystemFolder(dir string) {
	st, err := os.Lstat(dir)
	if err != nil {
		return
	}
	if st.Mode()&os.ModeSymlink != 0 {
		if target, err := os.Readlink(dir); err == nil {
			l.Links = append(l.Links, Link{dir, target})
		}
		return
	}
	l.Binds = append(l.Binds, Bind{dir, dir})
}

// addExtra adds a path of the operator. A path below /usr is shown already.
func (l *Layout) addExtra(path string) error {
	if !filepath.IsAbs(path) || path != filepath.Clean(path) || path == "/" {
		return fmt.Errorf("must be an absolute, clean path below /")
	}
	for _, own := range []string{"/proc", "/dev", "/sys", "/tmp", box.WorkspacePath, box.HomePath, box.TreesPath} {
		if path == own || strings.HasPrefix(path, own+"/") || strings.HasPrefix(own, path+"/") {
			return fmt.Errorf("would hide the sandbox's own %s", own)
		}
	}
	if path == "/usr" || strings.HasPrefix(path, "/usr/") {
		_, err := os.Stat(path)
		return err
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	l.Extra = append(l.Extra, Bind{path, target})
	return nil
}
