// Package diskspace watches the free space of the file systems that a node writes to, so that the node refuses
// new work before one is full: a full disk would harm all sessions and their records.
package diskspace

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sys/unix"
)

// ErrFull means that less space is free than required.
var ErrFull = errors.New("the node's disk is nearly full")

// Free is the space of a file system for users without privileges.
type Free struct {
	Bytes, Inodes int64
	// AnyInodes means that the file system makes inodes as needed.
	AnyInodes bool
}

// Folder is a folder whose file system is watched. Errors show its name, not its path.
type Folder struct{ Name, Path string }

// Watch watches folders. It is safe for concurrent use.
type Watch struct {
	bytes, inodes int64
	folders       []Folder
	look          func(string) (Free, error)
}

// New watches the file systems of some folders. Each must keep the given numbers of bytes and inodes free;
// zero means no requirement.
func New(bytes, inodes int64, folders ...Folder) *Watch {
	return &Watch{bytes: bytes, inodes: inodes, folders: folders, look: look}
}

func look(folder string) (Free, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return Free{}, fmt.Errorf("look at the file system of %s: %w", folder, err)
	}
	return Free{Bytes: int64(st.Bavail) * st.Bsize, Inodes: int64(st.Ffree), AnyInodes: st.Files == 0}, nil
}

// Check returns nil if there is room, or ErrFull with what is short and where. It asks the kernel each
// time, which takes a microsecond, so it notices new room at once.
func (w *Watch) Check() error { return w.check(func(floor int64) int64 { return floor }) }

// Tight reports whether less than twice the floor is free, so that it is time to reclaim disk space.
func (w *Watch) Tight() bool {
	return errors.Is(w.check(func(floor int64) int64 { return 2 * floor }), ErrFull)
}

// Low reports whether less than half of the floor is free.
func (w *Watch) Low() bool {
	return errors.Is(w.check(func(floor int64) int64 { return floor / 2 }), ErrFull)
}

// Free returns how many bytes and inodes are free where there are least. Unknown numbers are zero.
func (w *Watch) Free() (bytes, inodes int64) {
	for i, folder := range w.folders {
		free, err := w.look(folder.Path)
		if err != nil {
			return 0, 0
		}
		if i == 0 || free.Bytes < bytes {
			bytes = free.Bytes
		}
		if i == 0 || free.Inodes < inodes {
			inodes = free.Inodes
		}
	}
	return bytes, inodes
}

// check compares what is free with a share of the floor.
func (w *Watch) check(share func(floor int64) int64) error {
	for _, folder := range w.folders {
		free, err := w.look(folder.Path)
		switch {
		case err != nil:
			return err
		case free.Bytes < share(w.bytes):
			return fmt.Errorf("%w: %d bytes are free in the file system of the %s, and at least %d must stay free (`disk.free-bytes`): try again later, or free space there", ErrFull, free.Bytes, folder.Name, w.bytes)
		case !free.AnyInodes && free.Inodes < share(w.inodes):
			return fmt.Errorf("%w: %d inodes are free in the file system of the %s, and at least %d must stay free (`disk.free-inodes`): try again later, or delete files there", ErrFull, free.Inodes, folder.Name, w.inodes)
		}
	}
	return nil
}

// Observe reports to a meter how much is free, and whether new work is refused.
func (w *Watch) Observe(m metric.Meter) error {
	bytes, err1 := m.Int64ObservableGauge("fairlead.sandbox.disk.free", metric.WithUnit("By"), metric.WithDescription("free space of a file system that the node writes to"))
	inodes, err2 := m.Int64ObservableGauge("fairlead.sandbox.disk.free_inodes", metric.WithDescription("free inodes of a file system that the node writes to"))
	full, err3 := m.Int64ObservableGauge("fairlead.sandbox.disk.full", metric.WithDescription("1 while new work is refused because too little is free"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("make the metrics of disks: %w", err)
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, folder := range w.folders {
			free, err := w.look(folder.Path)
			if err != nil {
				return err
			}
			where := metric.WithAttributes(attribute.String("fairlead.folder", folder.Path))
			o.ObserveInt64(bytes, free.Bytes, where)
			if !free.AnyInodes {
				o.ObserveInt64(inodes, free.Inodes, where)
			}
		}
		refuses := int64(0)
		if w.Check() != nil {
			refuses = 1
		}
		o.ObserveInt64(full, refuses)
		return nil
	}, bytes, inodes, full)
	return err
}
