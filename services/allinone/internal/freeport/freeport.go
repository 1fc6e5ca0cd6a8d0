// Package freeport chooses addresses for programs that tests and measurements start, and start again.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are chosen from low up to high. They lie below those that Linux gives to outgoing connections and to listeners
// without a port (ip_local_port_range): a port of these could be another's by the time the program listens there.
const low, high = 20000, 32000

var given sync.Map

// Address returns a loopback address on which nothing listens. No later call of this process returns it again.
func Address() (string, error) {
	for range 200 {
		port := low + rand.IntN(high-low) //nolint:gosec // not a secret
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			continue // another process has it
		}
		return l.Addr().String(), l.Close()
	}
	return "", errors.New("no free loopback port was found")
}
