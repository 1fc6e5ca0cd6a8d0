package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"
)

func init() { attacks["swap"] = swap }

// swap exchanges two files as fast as it can, until it is told to stop. It tells when
// it has begun, and in the end how often it did so.
func swap(args []string) string {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	fmt.Println("on")
	done, n := false, 0
	for !done {
		for range 100 {
			if unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE) == nil {
				n++
			}
		}
		select {
		case <-stop:
			done = true
		default:
		}
	}
	return strconv.Itoa(n)
}
