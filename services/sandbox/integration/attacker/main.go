// Command attacker makes the attacks on a sandbox that a shell cannot: single
// system calls with arguments of an attacker's choice. The tests of the sandbox
// run it as a command. It prints what the kernel answered: the name of the error,
// or `ok`.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sort"
	"syscall"

	"golang.org/x/sys/unix"
)

// attacks are by name; each prints what came of it.
var attacks = map[string]func(args []string) string{}

func main() {
	runtime.LockOSThread() // what one attack does to its thread shows in that thread
	if len(os.Args) < 2 {
		names := make([]string, 0, len(attacks))
		for name := range attacks {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Println("attacker ATTACK [ARGUMENT…]; attacks:", names)
		os.Exit(2)
	}
	attack, ok := attacks[os.Args[1]]
	if !ok {
		fmt.Println("there is no attack", os.Args[1])
		os.Exit(2)
	}
	fmt.Println(attack(os.Args[2:]))
}

// errnoName is the name of an error number, or `ok`.
func errnoName(err error) string {
	var e syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		if name := unix.ErrnoName(e); name != "" {
			return name
		}
		return fmt.Sprintf("error %d", int(e))
	}
	return err.Error()
}

// raw makes a system call.
func raw(number uintptr, args ...uintptr) string {
	_, err := call(number, args...)
	return errnoName(err)
}

func call(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return r, e
	}
	return r, nil
}
