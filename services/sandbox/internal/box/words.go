package box

import (
	"slices"
	"strings"
)

// What programs print, in lower case, when they meet a limit: the texts of errors, which C begins with a
// capital but Go and Node do not, and the runtimes' own texts. LANG is C.UTF-8 unless a command changes it.
var (
	fileWords      = []string{"file too large", "file size limit exceeded"}
	openFilesWords = []string{"too many open files", " emfile"} // Node prints only the name where it starts a program
	quotaWords     = []string{"disk quota exceeded", "unknown system error -122"}
	spaceWords     = []string{"no space left on device"} // the name would also match too many watches
	memoryWords    = []string{
		"cannot allocate memory", "not enough memory", "memory exhausted", "memoryerror", "out of memory", "process oom", "bad_alloc",
		"memory allocation of", "failed to reserve page summary memory",
	}
	processWords = []string{
		"fork: retry", "cannot fork", "can't fork", "can't start new thread", "failed to create new os thread", "unable to create native thread",
		"pthread_create", "uv_thread_create",
	}
)

// A refusal is about a process or thread only if one of the makers is named shortly before: refused
// sockets, locks and terminals have the same text.
var (
	againWords = []string{"resource temporarily unavailable", " eagain"}
	makers     = []string{"fork", "thread", "spawn"}
)

// shortly is how far before a refusal its maker is named: Python prints the line of the program in between.
const shortly = 160

// says reports whether one of the words is in the text.
func says(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// saysCrowded reports whether the text says that a process or thread was not made.
func saysCrowded(text string) bool {
	if says(text, processWords) {
		return true
	}
	for _, w := range againWords {
		from := 0
		for {
			i := strings.Index(text[from:], w)
			if i < 0 {
				break
			}
			if says(text[max(from+i-shortly, 0):from+i], makers) {
				return true
			}
			from += i + len(w)
		}
	}
	return false
}
