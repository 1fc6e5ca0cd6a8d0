package main

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/seccomp"
)

// confine does to init, and so to whatever it starts, what the program that made
// the sandbox leaves to it: `limit:ID=VALUE` lowers a process limit, `filter`
// installs the system call filter, `name:NAME` only tells whose it is to who looks at its
// processes; others are verify's.
func confine(words []string) error {
	for _, w := range words {
		if strings.HasPrefix(w, "name:") {
			continue
		}
		if w == "filter" {
			if err := seccomp.Install(); err != nil {
				return err
			}
			continue
		}
		if known, err := verify(w); known {
			if err != nil {
				return err
			}
			continue
		}
		if err := lower(w); err != nil {
			return err
		}
	}
	return nil
}

func lower(word string) error {
	limit, ok := strings.CutPrefix(word, "limit:")
	name, number, ok2 := strings.Cut(limit, "=")
	id, err := strconv.Atoi(name)
	value, err2 := strconv.ParseUint(number, 10, 64)
	if !ok || !ok2 || err != nil || err2 != nil {
		return fmt.Errorf("%q is no word for init", word)
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
