package bubblewrap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// systemFolders are the top-level folders beside /usr that programs need. On most
// systems they are links into it.
var systemFolders = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// systemFiles are the only files of the host's /etc that a command sees: what the
// dynamic linker, TLS and the choice among alternatives need. None holds a
// secret or names a person.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates",
	"/etc/localtime", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/terminfo",
}

// madeFiles are the files of /etc that are made up, so that they tell nothing of
// the host.
var madeFiles = []struct{ path, text string }{
	{"/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n"},
	{"/etc/hostname", "sandbox\n"},
	{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
	{"/etc/resolv.conf", ""},
}

// layout is the read-only root of every sandbox, found out once.
type layout struct {
	args  []string // bubblewrap's options that need no file descriptor
	masks []string // bubblewrap's options that hide parts of /proc
	extra []extra
	path  string // the default PATH
}

// maskedFiles and maskedFolders tell of the machine, and of keys.
var (
	maskedFiles = []string{
		"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
		"/proc/sched_debug", "/proc/kallsyms", "/proc/modules", "/proc/kmsg", "/proc/interrupts", "/proc/iomem", "/proc/ioports",
	}
	maskedFolders = []string{"/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/fs", "/proc/driver"}
)

// extra is a folder or file that the operator shows besides.
type extra struct {
	path   string // inside, and on the host
	source string // where bubblewrap finds it
}

// newLayout looks at the host. Optional paths that do not exist are left out.
func newLayout(required, optional []string) (*layout, error) {
	l := &layout{args: []string{"--ro-bind", "/usr", "/usr"}}
	for _, dir := range systemFolders {
		l.addSystemFolder(dir)
	}
	for _, file := range systemFiles {
		if target, err := filepath.EvalSymlinks(file); err == nil {
			l.args = append(l.args, "--ro-bind", target, file)
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
	for _, x := range l.extra {
		if st, err := os.Stat(filepath.Join(x.path, "bin")); err == nil && st.IsDir() {
			bins = append(bins, filepath.Join(x.path, "bin"))
		}
	}
	l.path = strings.Join(bins, ":")
	l.addMasks()
	return l, nil
}

func (l *layout) addMasks() {
	for _, f := range maskedFiles {
		if _, err := os.Lstat(f); err == nil {
			l.masks = append(l.masks, "--ro-bind", os.DevNull, f) // a device that no mount lets anybody open
		}
	}
	for _, f := range maskedFolders {
		if _, err := os.Lstat(f); err == nil {
			l.masks = append(l.masks, "--size", "4096", "--tmpfs", f, "--remount-ro", f)
		}
	}
}

func (l *layout) addSystemFolder(dir string) {
	st, err := os.Lstat(dir)
	if err != nil {
		return
	}
	if st.Mode()&os.ModeSymlink != 0 {
		if target, err := os.Readlink(dir); err == nil {
			l.args = append(l.args, "--symlink", target, dir)
		}
		return
	}
	l.args = append(l.args, "--ro-bind", dir, dir)
}

// addExtra adds a path of the operator's. One below /usr is shown already.
func (l *layout) addExtra(path string) error {
	if !filepath.IsAbs(path) || path != filepath.Clean(path) || path == "/" {
		return fmt.Errorf("must be an absolute, clean path below /")
	}
	for _, own := range []string{"/proc", "/dev", "/sys", "/tmp", "/workspace", "/home/agent"} {
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
	l.extra = append(l.extra, extra{path: path, source: target})
	return nil
}

// show makes the extra paths visible to bubblewrap as another user.
func (l *layout) show(g *stage) error {
	for i := range l.extra {
		at, err := g.show(l.extra[i].source, fmt.Sprintf("read-only.%d", i))
		if err != nil {
			return err
		}
		l.extra[i].source = at
	}
	return nil
}
