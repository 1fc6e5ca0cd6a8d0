package box

import (
	"sync"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
)

// books are what is known of where a workspace's bytes come from: those that were there when the first of the
// commands began that run, those that came since by the service and by commands that have ended, and those
// that the others have written. All files together are no larger, whether they have a name or not, for commands
// cannot reserve room (package seccomp), and clones share what exists.
//
// What others write into a mount that they share with the session is not known here.
type books struct {
	full  func() bool // says that the disk is; nil: nobody knows
	mu    sync.Mutex
	usage *tally // hears of what commands wrote; nil: nobody does
	began int64
	came  int64
	open  map[*account]struct{}
}

// account is a command's part in the books.
type account struct {
	books   *books
	file    int64 // how large a file may be
	written int64 // by its processes, as far as that is known
}

// enter opens an account for a command, before which the workspace held some bytes.
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

// bring notes what the service adds, at most.
func (b *books) bring(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.came = min(b.came+max(bytes, 0), held.TooMuch)
}

// note notes what a command has written, and says how many bytes there can be.
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

// leave closes the account, once, before the workspace is counted for the last time. Of a command that was lost
// nobody knows what it had written last: it is counted before the next one begins.
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
	more  int64 // at most, beside them, in files whose size nobody may see
	all   int64 // that the workspace can hold with those
}

// nameless tells from what a look has found what a command may hold. A file whose size nobody may see is no larger
// than a file may be, and all of them together take no more than what there can be and is not found elsewhere. So
// nobody else brings about that a command is ended, or hides what it has, while the disk has room; and a program
// whose libraries are replaced while it runs is ended for that only if as much is written while it runs, beside
// what is there, as the workspace may hold.
//
// What processes wrote whose parents do not want to wait for them, or other sessions into a mount that they share,
// is in no books. So where the disk is full, by whomever, such files are believed to be as large as files may be: who
// fills it by them is ended before others have nothing left, and so is who has some of them for another reason.
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

// some says whether there may be any.
func (h nameless) some() bool { return h.bytes > 0 || h.more > 0 }

// exceed says what is exceeded with files without a name, and names those where it is because of them.
func (h nameless) exceed(u Usage, l Limits) (limit, why string) {
	if limit, why = u.exceeds(l); limit != "" || !h.some() {
		return limit, why
	}
	if limit, why = u.with(h).exceeds(l); limit != "" {
		why += ", with deleted and replaced files that processes still use: these take room until the processes close them or end"
	}
	return limit, why
}

// with is what is taken with files without a name.
func (u Usage) with(h nameless) Usage {
	u.Bytes += h.bytes
	u.Bytes += min(h.more, max(h.all-u.Bytes, 0))
	return u
}
