package box

import (
	"slices"
	"strings"
)

// What programs say, in small letters, when they meet a limit: the texts of errors, which C
// begins with a capital and Go and Node do not, and what runtimes have of their own. LANG is
// C.UTF-8 unless a command changes it.
var (
	fileWords      = []string{"file too large", "file size limit exceeded"}
	openFilesWords = []string{"too many open files", " emfile"} // Node has the name alone where it starts a program
	quotaWords     = []string{"disk quota exceeded", "unknown system error -122"}
	spaceWords     = []string{"no space left on device"} // the name is also that of too many watches
	memoryWords    = []string{
		"cannot allocate memory", "not enough memory", "memory exhausted", "memoryerror", "out of memory", "process oom", "bad_alloc",
		"memory allocation of", "failed to reserve page summary memory",
	}
	processWords = []string{
		"fork: retry", "cannot fork", "can't fork", "can't start new thread", "failed to create new os thread", "unable to create native thread",
		"pthread_create", "uv_thread_create",
	}
)

// A refusal that is about a process or thread only if one of the makers was named shortly
// before: sockets, locks and terminals are refused with the same word.
var (
	againWords = []string{"resource temporarily unavailable", " eagain"}
	makers     = []string{"fork", "thread", "spawn"}
)

// shortly is how far before a refusal its maker is named: Python shows the line of the program.
const shortly = 160

// says tells whether one of the words is in the text.
func says(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// saysCrowded tells whether, by the text, a process or thread was not made.
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
