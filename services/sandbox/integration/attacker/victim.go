package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

func init() { attacks["victim"] = victim }

// victim is whom the attacks are to leave alone: it has a secret in its memory, its
// environment, its files, its shared memory and behind its sockets. At each line of
// its input it says how often it was reached.
func victim(args []string) string {
	secret, name := os.Getenv("SECRET"), args[0]
	var reached atomic.Int64
	for _, file := range []string{"secret", "/tmp/secret", "/dev/shm/secret"} {
		if err := os.WriteFile(file, []byte(secret), 0o666); err != nil { //nolint:gosec // for all users, and a path of its own
			return err.Error()
		}
	}
	for _, a := range [][2]string{{"unix", "@" + name}, {"tcp", "127.0.0.1:7777"}} {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), a[0], a[1])
		if err != nil {
			return err.Error()
		}
		go func() {
			for {
				if c, err := l.Accept(); err == nil {
					reached.Add(1)
					_ = c.Close()
				}
			}
		}()
	}
	if _, err := unix.SysvShmGet(0x5ec2e7, 4096, 0o1666); err != nil { // IPC_CREAT, for all
		return "shmget: " + errnoName(err)
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGTERM, unix.SIGUSR1, unix.SIGHUP, unix.SIGINT)
	go func() {
		for range signals {
			reached.Add(1)
		}
	}()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		for _, file := range []string{"secret", "/tmp/secret", "/dev/shm/secret"} {
			if b, err := os.ReadFile(file); err != nil || string(b) != secret {
				reached.Add(1)
			}
		}
		fmt.Println("reached", reached.Load())
	}
	return "end"
}
