package pool

import (
	"embed"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// bin holds the program that is the first process of every sandbox, built from package initd. The folder is
// empty in a fresh clone, so that it compiles; `make` fills it.
//
//go:embed all:bin
var bin embed.FS

// LoadInit returns the first process of sandboxes: the file at path or, if path is empty, the embedded one.
func LoadInit(path string) ([]byte, error) {
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the sandbox's init: %w", err)
		}
		return b, nil
	}
	b, err := bin.ReadFile("bin/init")
	if err != nil {
		return nil, errors.New("this program was built without the sandbox's init: build it with `make build` (for tests alone: `make init`), or name the file with the key `init`")
	}
	return b, nil
}

// OpenInit copies that program into sealed memory, which cannot be changed through any descriptor. The caller
// closes the file.
func OpenInit(path string) (*os.File, error) {
	raw, err := LoadInit(path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all such files could be executed
		fd, err = unix.MemfdCreate("init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("make a file in memory for init: %w", err)
	}
	f := os.NewFile(uintptr(fd), "init")
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	_, err = f.Write(raw)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("put init into memory: %w", err), f.Close())
	}
	return f, nil
}
