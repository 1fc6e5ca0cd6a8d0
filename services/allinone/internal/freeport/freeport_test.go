package freeport_test

import (
	"net"
	"testing"

	"github.com/fairlead/fairlead/services/allinone/internal/freeport"
)

func TestAddressesAreFreeAndDifferent(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil || seen[address] {
			t.Fatalf("%s: %v, given before: %v", address, err, seen[address])
		}
		defer func() { _ = l.Close() }()
		seen[address] = true
	}
}
