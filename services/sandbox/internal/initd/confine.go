package main

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/seccomp"
)

// confine restricts init, and so all that it starts, in ways that the maker of the sandbox cannot.
// `limit:ID=VALUE` lowers a process limit. `filter` installs the system call filter. `name:NAME` only shows
// the sandbox's owner in lists of processes. verify handles other words.
func confine(words []string) error {
	for _, w := range words {
		if err := obey(w); err != nil {
			return err
		}
	}
	return nil
}

func obey(word string) error {
	switch name, _, _ := strings.Cut(word, ":"); name {
	case "name":
		return nil
	case "filter":
		return seccomp.Install()
	}
	if known, err := verify(word); known {
		return err
	}
	return lower(word)
}

func lower(word string) error {
	limit, ok := strings.CutPrefix(word, "limit:")
	name, number, ok2 := strings.Cut(limit, "=")
	id, err := strconv.Atoi(name)
	value, err2 := strconv.ParseUint(number, 10, 64)
	if !ok || !ok2 || err != nil || err2 != nil {
		return fmt.Errorf("%q is not an instruction for init", word)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(id, &old); err != nil {
		return fmt.Errorf("read limit %d: %w", id, err)
	}
	value = min(value, old.Max)
	if err := unix.Setrlimit(id, &unix.Rlimit{Cur: value, Max: value}); err != nil {
		return fmt.Errorf("lower limit %d: %w", id, err)
	}
	return nil
}
