package box

import (
	"sync"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
)

// books track where a workspace's bytes come from. They count the bytes present when the first of the
// running commands began. They also count the bytes that the service and ended commands have added since,
// and those that running commands have written. The sum bounds all files together, with or without a name:
// commands cannot reserve room (package seccomp), and clones share existing data.
//
// The books lack what others write into a mount that they share with the session.
type books struct {
	full  func() bool // reports whether the disk is full; nil: unknown
	mu    sync.Mutex
	usage *tally // receives the bytes that commands wrote; nil: not counted
	began int64
	came  int64
	open  map[*account]struct{}
}

// account is a command's part of the books.
type account struct {
	books   *books
	file    int64 // how large a file may be
	written int64 // by its processes, as far as known
}

// enter opens an account for a command; bytes is the size of the workspace before it.
func (b *books) enter(bytes int64, l Limits) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) == 0 {
		b.began, b.came, b.open = bytes, 0, map[*account]struct{}{}
	}
	a := &account{books: b, file: l.FileBytes}
	b.open[a] = struct{}{}
	return a
}

// bring adds an upper bound of the bytes that the service adds.
func (b *books) bring(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.came = min(b.came+max(bytes, 0), held.TooMuch)
}

// note records a command's written bytes and returns how many bytes there can be in all.
func (a *account) note(written int64) (all int64) {
	b := a.books
	b.mu.Lock()
	defer b.mu.Unlock()
	a.written = written
	all = b.began + b.came
	for a := range b.open {
		all = min(all+a.written, held.TooMuch)
	}
	return all
}

// leave closes the account, once, before the final count of the workspace. The last writes of a lost
// command are unknown, so the workspace is counted again before the next command starts.
func (a *account) leave(x Exit) {
	b := a.books
	if x.Lost {
		x.Written = held.TooMuch
	}
	switch {
	case b.usage == nil:
	case x.Lost:
		b.usage.forget()
	default:
		b.usage.wrote(x.Written) // others need not wait while that counts
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.came = min(b.came+x.Written, held.TooMuch)
	delete(b.open, a)
}

// nameless is what a command holds in files without a name.
type nameless struct {
	bytes int64 // for certain
	more  int64 // upper bound of further bytes, in files of unreadable size
	all   int64 // the most that the workspace can hold, these files included
}

// nameless returns how much a command may hold in files without a name, according to a look. A file of
// unreadable size is at most as large as the file limit. All such files together hold at most what the
// workspace can hold and is not found elsewhere. So while the disk has room, other sessions can neither end
// this command nor hide its files. A program whose libraries are replaced while it runs is ended only if it
// also writes as much meanwhile as the workspace may hold.
//
// The books lack the writes of processes that their parents do not wait for. They also lack the writes of
// other sessions into a shared mount. So on a full disk such files count at the file limit, whatever filled
// the disk. That ends a command that fills the disk this way before other sessions run out of room. It also
// ends commands that hold such files for another reason.
func (a *account) nameless(sum held.Sum) nameless {
	h := nameless{bytes: sum.Deleted, all: a.note(sum.Written)}
	if sum.Unsure == 0 {
		return h
	}
	h.more = min(a.file, held.TooMuch/int64(sum.Unsure)) * int64(sum.Unsure)
	if full := a.books.full; full != nil && full() {
		h.all = held.TooMuch
	}
	return h
}

// some reports whether the command may hold files without a name.
func (h nameless) some() bool { return h.bytes > 0 || h.more > 0 }

// exceed returns the limit that is exceeded, and why; the reason names files without a name if they cause
// it.
func (h nameless) exceed(u Usage, l Limits) (limit, why string) {
	if limit, why = u.exceeds(l); limit != "" || !h.some() {
		return limit, why
	}
	if limit, why = u.with(h).exceeds(l); limit != "" {
		why += ", with deleted and replaced files that processes still use: these take room until the processes close them or end"
	}
	return limit, why
}

// with returns the usage including the files without a name.
func (u Usage) with(h nameless) Usage {
	u.Bytes += h.bytes
	u.Bytes += min(h.more, max(h.all-u.Bytes, 0))
	return u
}
