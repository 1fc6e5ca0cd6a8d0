package egress

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// FuzzHello sends bytes as the beginning of TLS to a host. What is let through must
// name that host, and whatever was read must be there for the server to read.
func FuzzHello(f *testing.F) {
	right := hello(f, "tls.example.com")
	f.Add([]byte(right))
	f.Add([]byte(right[:len(right)/2]))
	f.Add([]byte(right + right))
	f.Add([]byte(hello(f, "evil.example.org")))
	f.Add([]byte(hello(f, "")))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: tls.example.com\r\n\r\n"))
	f.Add(bytes.Replace([]byte(right), []byte("tls.example.com"), []byte("tls.example.c\x00m"), 1))
	split := []byte(right) // one hello in two records
	half := len(split) / 2
	f.Add(append(append([]byte{22, 3, 1, byte((half - 5) >> 8), byte(half - 5)}, split[5:half]...),
		append([]byte{22, 3, 1, byte((len(split) - half) >> 8), byte(len(split) - half)}, split[half:]...)...))
	_, server := fuzzed(f, nil)
	f.Cleanup(func() { _ = server.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		client, proxy := net.Pipe()
		go func() { _, _ = client.Write(data); _ = client.Close() }()
		in := &taken{meter: newMeter(proxy, server)}
		err := server.checkHello(in, target{name: "tls.example.com", port: 443}, &rule{Rule: Rule{Name: "tls"}})
		_ = in.SetReadDeadline(time.Now().Add(time.Second))
		again, _ := io.ReadAll(in)
		_ = in.Close()
		if !bytes.Equal(again, data) {
			t.Errorf("of %d bytes the server would read %d", len(data), len(again))
		}
		if err == nil && !bytes.Contains(bytes.ToLower(payload(data)), []byte("tls.example.com")) {
			t.Errorf("let through without the name of the host: %q", data)
		}
	})
}

// payload is what the records of TLS carry, one after the other.
func payload(data []byte) (all []byte) {
	for len(data) >= 5 {
		n := min(int(data[3])<<8|int(data[4]), len(data)-5)
		all, data = append(all, data[5:5+n]...), data[5+n:]
	}
	return all
}
