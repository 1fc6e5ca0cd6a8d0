package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func fdatasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// ownCPU returns the processor time of this process without its children.
func ownCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail for ourselves
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
