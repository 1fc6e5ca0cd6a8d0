package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	attacks["keep"], attacks["reserve"] = keep, reserveMany
	attacks["extent-size"], attacks["volumes"] = extentSize, volumes
}

// keep keeps files open for a while and hides that from an inspection. Its argument selects how:
//
//   - unseen: the process cannot be inspected.
//   - beheaded: its first thread has nothing open.
//   - beheaded-mapping: likewise, and it maps one page of each of some large deleted files.
//   - mapping: it maps a page, with its first thread, of files that it wrote itself.
//   - reserved-mapping: likewise, of files with reserved room on the disk.
//   - orphaned-mapping: likewise, of files that an unreaped process wrote.
//   - found-mapping: likewise, of existing files.
//   - unread: it does nothing more, because its file cannot be read.
func keep(args []string) string {
	const long = 20 * time.Second
	for _, fill := range fillings[args[0]] {
		if err := mapOnePage(fill); err != nil {
			return errnoName(err)
		}
	}
	switch args[0] {
	case "unseen":
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return errnoName(err)
		}
	case "found-mapping":
		if err := mapFound(); err != nil {
			return errnoName(err)
		}
	case "beheaded", "beheaded-mapping":
		go func() { time.Sleep(long); fmt.Println("never refused"); os.Exit(0) }() //nolint:forbidigo // an attack that lasts
		_, _, err := unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
		return errnoName(err)
	}
	time.Sleep(long) //nolint:forbidigo // as above
	return "never refused"
}

// size is how large each of the files is of which a page is mapped.
const size = 4 << 20

// fillings are how the files get their size of which a page is mapped.
var fillings = map[string][]func(f *os.File) error{
	"mapping":          slices.Repeat([]func(f *os.File) error{write}, 48),
	"beheaded-mapping": slices.Repeat([]func(f *os.File) error{write}, 48),
	"reserved-mapping": slices.Repeat([]func(f *os.File) error{reserve}, 16),
	"orphaned-mapping": slices.Repeat([]func(f *os.File) error{haveWritten}, 48),
}

func write(f *os.File) error {
	_, err := f.Write(make([]byte, size))
	return err
}

// reserveMany takes room on the disk for as many files as it is told, without writing to them.
func reserveMany(args []string) string {
	for i := range number(args) {
		f, err := os.Create(fmt.Sprintf("reserved-%d", i))
		if err != nil {
			return errnoName(err)
		}
		err = reserve(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return errnoName(err)
		}
	}
	return "never refused"
}

// extentSize says that one byte of a file takes a gigabyte of the disk: by a request, and by the call that does the same.
func extentSize([]string) string {
	const getAttributes, setAttributes, sized = 0x801c581f, 0x401c5820, 0x800
	f, err := os.Create("extent")
	if err != nil {
		return errnoName(err)
	}
	defer func() { _ = f.Close() }()
	old := struct{ flags, size, extents, project, copied, _, _ uint32 }{}             // fsxattr
	_, _ = call(unix.SYS_IOCTL, f.Fd(), getAttributes, uintptr(unsafe.Pointer(&old))) //nolint:gosec // the kernel takes a pointer
	old.flags, old.size = old.flags|sized, 1<<30
	byRequest := raw(unix.SYS_IOCTL, f.Fd(), setAttributes, uintptr(unsafe.Pointer(&old))) //nolint:gosec // as above
	attributes := struct {
		flags                          uint64
		size, extents, project, copied uint32
	}{flags: sized, size: 1 << 30} // file_attr
	return byRequest + ", " + raw(sysFileSetattr, cwd, text(0, "extent"), uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0) //nolint:gosec // as above
}

// volumes makes volumes and snapshots of btrfs and of bcachefs, also read-only ones. A file system that
// does not know them answers ENOTTY.
func volumes([]string) string {
	dir, err := os.Open(".")
	if err != nil {
		return errnoName(err)
	}
	defer func() { _ = dir.Close() }()
	worst := "EPERM"
	for _, request := range []uintptr{0x5000940e, 0x50009401, 0x50009417, 0x50009418, 0x4008941a, 0x4008941a | 1<<32, 0x4020bc10} {
		if got := raw(unix.SYS_IOCTL, dir.Fd(), request, at(0)); got != "EPERM" {
			worst = got
		}
	}
	return worst
}

func reserve(f *os.File) error { return unix.Fallocate(int(f.Fd()), 0, 0, size) }

// haveWritten makes a child write that is not reaped: with SIGCHLD ignored, it vanishes as it ends.
func haveWritten(f *os.File) error {
	signal.Ignore(unix.SIGCHLD)
	child := exec.CommandContext(context.Background(), "dd", "if=/dev/zero", "bs=1M", "count=4", "status=none")
	child.Stdout = f
	if err := child.Start(); err != nil {
		return err
	}
	_ = child.Wait() // until there is none
	return nil
}

// mapOnePage maps a page of a file that it makes and deletes.
func mapOnePage(fill func(f *os.File) error) error {
	f, err := os.Create("hidden")
	if err != nil {
		return err
	}
	err = fill(f)
	_, err2 := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	return errors.Join(err, err2, f.Close(), os.Remove("hidden"))
}

// mapFound maps a page of each file that comes, and deletes it.
func mapFound() error {
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // an attack that lasts
		found, err := filepath.Glob("found-*")
		if err != nil {
			return err
		}
		for _, name := range found {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			_, err = unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
			if err := errors.Join(err, f.Close(), os.Remove(name)); err != nil {
				return err
			}
		}
	}
	return nil
}
