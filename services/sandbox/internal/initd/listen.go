package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/services/sandbox/internal/initd/wire"
)

// listen opens the sandbox's way out and passes the listener to the service. A listener belongs to the
// network namespace that it was made in, wherever it is served.
func listen() error {
	fd, err := openListener()
	if err != nil {
		return fmt.Errorf("open the way out: %w", err)
	}
	return errors.Join(send(wire.Reply{Kind: wire.Listening}, fd), unix.Close(fd))
}

func openListener() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: wire.Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
