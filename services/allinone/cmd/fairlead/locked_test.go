package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// serving runs `fairlead serve` until the test ends and returns its standard
// error as soon as the first lines are there.
func serving(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var out buffer
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, append([]string{"serve"}, args...), stdio{in: strings.NewReader(""), out: &out, err: &out, env: func(string) string { return "" }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	for !strings.Contains(out.String(), "fairlead run --server") {
		select {
		case err := <-done:
			done <- nil
			t.Fatalf("the server ended: %v\n%s", err, out.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return out.String()
}

// serverOf starts a server with the data directory and returns its address. It has the keys of a command in this process,
// and a command by it takes a tenth of the time.
func serverOf(t *testing.T, data string, args ...string) string {
	t.Helper()
	return after(t, serving(t, append(args, "--data", data, "--grpc=127.0.0.1:0", "--http=127.0.0.1:0")...), "gRPC")
}

// after returns the address after a name in the first lines of a server.
func after(t *testing.T, lines, name string) string {
	t.Helper()
	for line := range strings.Lines(lines) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			return strings.TrimPrefix(words[1], "http://")
		}
	}
	t.Fatalf("there is no %s in:\n%s", name, lines)
	return ""
}

func TestADataDirectoryInUseNamesTheAddressOfItsServer(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	data := dataOf(t)
	lines := serving(t, "--data", data, "--grpc=127.0.0.1:0", "--http=127.0.0.1:0")
	got := embedded(t, "run", "--data", data, "hello")
	if want := "--server " + after(t, lines, "gRPC"); got.code != 1 || !strings.Contains(got.err, want) || strings.Contains(got.err, ":9090") {
		t.Errorf("exit code %d, want %q in:\n%s", got.code, want, got.err)
	}
}
