package main

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// openTerminal returns both ends of a terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals: " + err.Error())
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	peer, _, failed := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if failed != 0 {
		t.Fatal(failed)
	}
	slave = os.NewFile(peer, "terminal")
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() })
	return master, slave
}

// await reads until a text has come.
func await(t *testing.T, from io.Reader, text string) {
	t.Helper()
	var seen strings.Builder
	b := make([]byte, 1)
	for !strings.Contains(seen.String(), text) {
		if _, err := from.Read(b); err != nil {
			t.Fatalf("%q has not come: %v, after %q", text, err, seen.String())
		}
		seen.Write(b)
	}
}

func typeKeys(t *testing.T, into io.Writer, keys string) {
	t.Helper()
	if _, err := io.WriteString(into, keys); err != nil {
		t.Fatal(err)
	}
}

// It is alone: the interrupt reaches all chats of the process.
func TestLinesOfAChatCanBeEditedAndAreNotSentByAnInterrupt(t *testing.T) {
	f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_INTERRUPTED, quiet: make(chan struct{})}
	master, slave := openTerminal(t)
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	shown, out := io.Pipe()
	ended := make(chan error, 1)
	address := serveFake(t, f)
	go func() {
		err := run(t.Context(), []string{"chat", "--server", address}, stdio{in: slave, out: out, err: slave, env: func(string) string { return "" }})
		_ = out.CloseWithError(io.EOF)
		ended <- err
	}()
	await(t, master, "> ")
	typeKeys(t, master, "ac\x1b[Db\r")
	await(t, shown, "Hello there.") // the turn runs
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, shown) }()
	typeKeys(t, master, "never sent\nnor this\nnor a part")
	await(t, master, "nor a part")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	await(t, master, "> ")
	typeKeys(t, master, "\x1b[A!\r") // the line before
	await(t, master, "> ")
	typeKeys(t, master, "\x04")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-drained
	if len(f.turns) != 2 || f.turns[0].GetText() != "abc" || f.turns[1].GetText() != "abc!" {
		t.Errorf("the turns are %v", f.turns)
	}
	after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal was left as %+v, %v", after, err)
	}
}

func TestWhatIsTypedDuringATurnIsTheNextLineAfterItsEnd(t *testing.T) {
	t.Parallel()
	f := &fakeSessions{end: sessionv1.TurnState_TURN_STATE_COMPLETE, quiet: make(chan struct{})}
	master, slave := openTerminal(t)
	shown, out := io.Pipe()
	ended := make(chan error, 1)
	address := serveFake(t, f)
	go func() {
		err := run(t.Context(), []string{"chat", "--server", address}, stdio{in: slave, out: out, err: slave, env: func(string) string { return "" }})
		_ = out.CloseWithError(io.EOF)
		ended <- err
	}()
	await(t, master, "> ")
	typeKeys(t, master, "one\r")
	await(t, shown, "Hello there.")
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, shown) }()
	typeKeys(t, master, "two\n/quit\n")
	await(t, master, "/quit\r\n")
	close(f.quiet)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-drained
	if len(f.turns) != 2 || f.turns[1].GetText() != "two" {
		t.Errorf("the turns are %v", f.turns)
	}
}
