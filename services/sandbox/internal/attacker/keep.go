package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func init() { attacks["keep"] = keep }

// keep keeps what it was started with open for a while, and from whoever looks for that: it lets nobody look
// at it (`unseen`), or its first thread has nothing (`beheaded`), nor of a large file that is deleted, of which one
// page is mapped (`beheaded-mapping`). It needs do nothing where its file cannot be read (`unread`).
func keep(args []string) string {
	long := 20 * time.Second
	switch args[0] {
	case "unseen":
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return told(err)
		}
	case "beheaded-mapping":
		long = 5 * time.Second // in some places nobody sees it
		for range 16 {
			if err := mapOnePage(4 << 20); err != nil {
				return told(err)
			}
		}
		fallthrough
	case "beheaded":
		go func() { time.Sleep(long); fmt.Println("never refused"); os.Exit(0) }() //nolint:forbidigo // an attack that lasts
		_, _, err := unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
		return told(err)
	}
	time.Sleep(long) //nolint:forbidigo // as above
	return "never refused"
}

// mapOnePage maps a page of a file that it makes and deletes.
func mapOnePage(size int) error {
	f, err := os.Create("hidden")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, size))
	_, err2 := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	return errors.Join(err, err2, f.Close(), os.Remove("hidden"))
}
