package erase

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// Later deletes trees and tracks those that could not be deleted: on some file systems even root cannot
// delete all files. It is safe for concurrent use.
type Later struct {
	log  *slog.Logger
	mu   sync.Mutex // guards left
	left map[string]bool
}

// NewLater returns a Later that tracks nothing yet.
func NewLater(log *slog.Logger) *Later { return &Later{log: log, left: map[string]bool{}} }

// All deletes an unreachable tree. It logs a tree that cannot be deleted, and leaves it to Again.
func (l *Later) All(dir string) {
	err := All(dir)
	if _, gone := os.Lstat(dir); errors.Is(gone, fs.ErrNotExist) { // perhaps deleted concurrently
		err = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && l.left[dir]:
		delete(l.left, dir)
		l.log.Info("deleted files whose deletion had failed before", "folder", dir)
	case err != nil && !l.left[dir]:
		l.left[dir] = true
		l.log.Error("cannot delete unused files; will try again", "folder", dir, "error", err)
	}
}

// Retry retries the deletion of the tracked trees.
func (l *Later) Retry() {
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

// Pending returns how many trees could not be deleted.
func (l *Later) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.left)
}
