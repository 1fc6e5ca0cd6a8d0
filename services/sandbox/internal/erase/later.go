package erase

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// Later deletes trees, and knows those that could not be deleted: some file systems have what not even root
// can delete. It is safe for concurrent use.
type Later struct {
	log  *slog.Logger
	mu   sync.Mutex // guards left
	left map[string]bool
}

// NewLater returns one that has nothing left.
func NewLater(log *slog.Logger) *Later { return &Later{log: log, left: map[string]bool{}} }

// All deletes a tree that is out of everybody's reach. One that cannot be deleted is told of in the log, and left to Again.
func (l *Later) All(dir string) {
	err := All(dir)
	if _, gone := os.Lstat(dir); errors.Is(gone, fs.ErrNotExist) { // by another one, it may be
		err = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && l.left[dir]:
		delete(l.left, dir)
		l.log.Info("what could not be deleted is deleted", "folder", dir)
	case err != nil && !l.left[dir]:
		l.left[dir] = true
		l.log.Error("cannot delete what nobody uses any more; this is tried again now and then", "folder", dir, "error", err)
	}
}

// Again deletes what could not be deleted, if that can be by now.
func (l *Later) Again() {
	l.mu.Lock()
	dirs := make([]string, 0, len(l.left))
	for dir := range l.left {
		dirs = append(dirs, dir)
	}
	l.mu.Unlock()
	for _, dir := range dirs {
		l.All(dir)
	}
}

// Left is how many trees could not be deleted.
func (l *Later) Left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.left)
}
