// Package quota makes the file system limit the size of workspaces by the project quota of XFS or ext4. It
// counts everything below a folder, regardless of its writer, and refuses more at once.
package quota

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrUnavailable means that the file system does not enforce project quotas.
var ErrUnavailable = errors.New("the file system keeps no project quota")

// Limit is what a project may hold. Zero means no limit.
type Limit struct{ Bytes, Inodes int64 }

// kernel is the set of required calls; tests replace it.
type kernel struct {
	mark  func(folder string, project uint32) error
	limit func(folder string, project uint32, l Limit) error
	read  func(folder string, project uint32) (limit, used Limit, err error)
}

// Projects assigns folders of one file system to projects. It is safe for concurrent use.
type Projects struct {
	dir    string
	first  uint32
	as     As
	kernel kernel
}

// As runs a function as a user without privileges: the kernel lets root exceed a quota.
type As struct {
	UID, GID int
	Do       func(func() error) error
}

// Open checks, by filling a folder of a project, that the file system of dir enforces the quotas of
// projects from first on. It returns ErrUnavailable, with the reason, if not. No other program may use
// projects from first on.
func Open(dir string, first uint32, as As) (*Projects, error) {
	p := &Projects{dir: dir, first: first, as: as, kernel: kernel{mark, setLimit, readLimit}}
	if err := p.prove(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return p, nil
}

// The proof writes more than its limits.
const (
	proofBytes  = 256 << 10
	proofInodes = 8
)

// proof is the slot of the project for the proof.
const proof = -1

// prove fills a folder beyond its limits of bytes and of files.
func (p *Projects) prove() (err error) {
	dir, err := os.MkdirTemp(p.dir, ".quota-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := errors.Join(os.Chown(dir, p.as.UID, p.as.GID), p.Set(proof, Limit{proofBytes, proofInodes}, dir)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Release(proof)) }()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return p.as.Do(func() error {
		if err := fill(fd, "bytes", 2*proofBytes); !refused(err) {
			return fmt.Errorf("a file of %d bytes was accepted, above the limit of %d: %w", 2*proofBytes, proofBytes, err)
		}
		var err error
		for i := 0; i < 2*proofInodes && err == nil; i++ {
			err = fill(fd, strconv.Itoa(i), 0)
		}
		if !refused(err) {
			return fmt.Errorf("%d files were accepted, above the limit of %d: %w", 2*proofInodes, proofInodes, err)
		}
		return nil
	})
}

func refused(err error) bool { return errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC) }

// fill writes a file to disk: the file system may count only then.
func fill(dir int, name string, bytes int) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(make([]byte, bytes))
	return errors.Join(err, f.Sync(), f.Close())
}

// Set assigns empty folders, with all that will be made in them, to a project and limits them together.
// slot identifies the project. A second call changes the limit.
func (p *Projects) Set(slot int, l Limit, folders ...string) error {
	project := p.project(slot)
	for _, f := range folders {
		if err := p.kernel.mark(f, project); err != nil {
			return fmt.Errorf("give %s to a project of the file system's quota: %w", f, err)
		}
	}
	if err := p.kernel.limit(p.dir, project, l); err != nil {
		return fmt.Errorf("limit a project of the file system's quota: %w", err)
	}
	return nil
}

// Release removes a project's limit, so that its slot can be reused.
func (p *Projects) Release(slot int) error {
	return p.kernel.limit(p.dir, p.project(slot), Limit{})
}

// blockSlack is the most of a project's limit, in bytes, that may be unused when the file system refuses
// more: it needs some for itself. Of a small limit it is one part in 16.
const blockSlack = 64 << 10

// Remaining returns how many more bytes and files a project may hold, less what the file system may need for
// itself.
func (p *Projects) Remaining(slot int) (bytes, inodes int64, err error) {
	limit, used, err := p.kernel.read(p.dir, p.project(slot))
	if err != nil {
		return 0, 0, fmt.Errorf("read a project of the file system's quota: %w", err)
	}
	bytes, inodes = math.MaxInt64, math.MaxInt64
	if limit.Bytes > 0 {
		bytes = limit.Bytes - used.Bytes - min(blockSlack, limit.Bytes/16)
	}
	if limit.Inodes > 0 {
		inodes = limit.Inodes - used.Inodes
	}
	return bytes, inodes, nil
}

// project returns the project of a slot; the first one is that of the proof.
func (p *Projects) project(slot int) uint32 { return p.first + uint32(slot-proof) }

// fsxattr is struct fsxattr of linux/fs.h.
type fsxattr struct {
	Xflags, Extsize, Nextents, Projid, Cowextsize uint32
	_                                             [8]byte
}

const (
	fsGetXattr   = 0x801c581f // FS_IOC_FSGETXATTR
	fsSetXattr   = 0x401c5820 // FS_IOC_FSSETXATTR
	inherit      = 0x200      // FS_XFLAG_PROJINHERIT
	getQuota     = 0x800007<<8 | projectQuota
	setQuota     = 0x800008<<8 | projectQuota
	projectQuota = 2
	validLimits  = 1 | 4 // QIF_BLIMITS, QIF_ILIMITS
)

// mark assigns a folder, and all that will be made in it, to a project.
func mark(folder string, project uint32) error {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var x fsxattr
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), fsGetXattr, uintptr(unsafe.Pointer(&x))); e != 0 { //nolint:gosec // the kernel takes a pointer
		return e
	}
	x.Projid = project
	x.Xflags |= inherit
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), fsSetXattr, uintptr(unsafe.Pointer(&x))); e != 0 { //nolint:gosec // as above
		return e
	}
	return nil
}

// dqblk is struct if_dqblk of linux/quota.h. Blocks are of 1024 bytes.
type dqblk struct {
	Bhardlimit, Bsoftlimit, Curspace, Ihardlimit, Isoftlimit, Curinodes, Btime, Itime uint64
	Valid                                                                             uint32
	_                                                                                 uint32
}

// setLimit limits a project of a folder's file system.
func setLimit(folder string, project uint32, l Limit) error {
	return quotactl(folder, setQuota, project, &dqblk{Bhardlimit: uint64(l.Bytes+1023) / 1024, Ihardlimit: uint64(l.Inodes), Valid: validLimits})
}

// readLimit reads a project's limit and usage.
func readLimit(folder string, project uint32) (limit, used Limit, err error) {
	var q dqblk
	if err := quotactl(folder, getQuota, project, &q); err != nil {
		return Limit{}, Limit{}, err
	}
	return Limit{int64(q.Bhardlimit) * 1024, int64(q.Ihardlimit)}, Limit{int64(q.Curspace), int64(q.Curinodes)}, nil
}

func quotactl(folder string, command int, project uint32, q *dqblk) error {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if _, _, e := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(fd), uintptr(command), uintptr(project), uintptr(unsafe.Pointer(q)), 0, 0); e != 0 { //nolint:gosec // as above
		return e
	}
	return nil
}
