package claudecode

import (
	"fmt"
	"slices"
)

// oldestVersion is the first version that was tried, of those that take texts of people as text alone.
const oldestVersion = "2.1.250"

// setVersion notes the program's version, if it says one.
func (p *process) setVersion(version string) error {
	if version == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version = version; tooOld(version) {
		return &UnusableError{fmt.Sprintf("the program is Claude Code %s, which is older than %s: install that one or a newer one", version, oldestVersion)}
	}
	return nil
}

func tooOld(version string) bool {
	has, ok := numbers(version)
	least, _ := numbers(oldestVersion)
	return ok && slices.Compare(has[:], least[:]) < 0
}

// numbers returns the numbers of a version, and false for a text of another form.
func numbers(version string) (n [3]int, ok bool) {
	_, err := fmt.Sscanf(version, "%d.%d.%d", &n[0], &n[1], &n[2])
	return n, err == nil
}
