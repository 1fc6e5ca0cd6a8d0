package snapshot

import (
	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/rights"
)

// finish sets what make leaves to the end: times of links, times of directories whose contents changed, and
// permissions and times that differ.
func (re *restore) finish(e Entry, present *Entry) error {
	fresh := !e.kept(present)
	if fresh && e.Kind == Regular {
		return nil // it was made with both
	}
	mode := e.Kind != Symlink && (fresh || present.Mode != e.Mode || re.unlocked[e.Path])
	at := fresh || present.Mtime != e.Mtime || e.Kind == Directory && re.touched[e.Path]
	if !mode && !at {
		return nil
	}
	dir, last, err := re.parentOf(e.Path)
	if err != nil {
		return err
	}
	if !fresh {
		re.done.Changed++
	}
	if mode {
		if err := rights.Set(dir, last, e.Mode, re.tree.owner.UID); err != nil {
			return err
		}
	}
	if e.Kind == Regular {
		return re.retime(e, present, dir, last)
	}
	return setTime(dir, last, e.Mtime)
}

// retime sets the time of a kept file. If commands run, one may have written to the file since it was read,
// and the file's time must keep showing that. A write just before the setting would go unnoticed, so the
// file is not trusted afterwards.
func (re *restore) retime(e Entry, present *Entry, dir int, last string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, last, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch {
	case nanoseconds(st.Mtim) != present.Mtime || st.Size != present.Size:
		return nil
	case present.Mtime != e.Mtime:
		return setTime(dir, last, e.Mtime)
	}
	re.stats[e.Path] = st
	return nil
}

// setTime sets the modification time of a file or of a link itself.
func setTime(dir int, name string, at int64) error {
	ts := unix.NsecToTimespec(at)
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
