package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// Set before any init function runs.
var _ = func() bool { work = nil; return true }()

// firstIs makes the folder of a first process say that it is one.
func firstIs(t *testing.T, proc, name string, words ...string) {
	t.Helper()
	for file, text := range map[string]string{"/comm": name + "\n", "/cmdline": strings.Join(words, "\x00") + "\x00"} {
		if err := os.WriteFile(proc+file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFirstProcessIsAwaited(t *testing.T) {
	t.Parallel()
	self := os.Args[0]
	for _, tc := range []struct {
		name  string
		first []string // its name and words
		later []string // what they become; nil: never anything else
		want  string   // of the error; empty: none
	}{
		{"it is the one at once", []string{hearing, self, "pause"}, nil, ""},
		{"the runtime's own becomes it", []string{"runc:[2:INIT]", "runc", "init"}, []string{hearing, self, "pause"}, ""},
		{"it hears a while after it began", []string{"init", self, "pause"}, []string{hearing, self, "pause"}, ""},
		{"it never hears", []string{"init", self, "pause"}, nil, "did not begin its work within 10s"},
		{"another program stays", []string{"systemd", "/sbin/init"}, nil, "no process namespace of its own"},
		{"another program takes the name", []string{hearing, "/bin/other", "pause"}, nil, "no process namespace of its own"},
		{"init does something else", []string{hearing, self, "stream"}, nil, "no process namespace of its own"},
		{"it has no words", []string{hearing}, nil, "no process namespace of its own"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			proc := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				firstIs(t, proc, tc.first[0], tc.first[1:]...)
				if tc.later != nil {
					time.AfterFunc(firstTimeout/2, func() { firstIs(t, proc, tc.later[0], tc.later[1:]...) })
				}
				began := time.Now()
				err := awaitFirst(proc)
				if got := errorText(err); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
					t.Errorf("%q", got)
				}
				if took := time.Since(began); took > firstTimeout || tc.later != nil && took < firstTimeout/2 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestAFirstProcessThatCannotBeSeenIsAnError(t *testing.T) {
	t.Parallel()
	if err := awaitFirst(t.TempDir()); err == nil || !strings.Contains(err.Error(), "look at the sandbox's first process") {
		t.Error(err)
	}
}

func TestAnAddressIsWhatItsWordSays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code     string
		want     unix.Sockaddr
		loopback bool
	}{
		{"00000000000000000000ffff0a00000101bb", &unix.SockaddrInet4{Port: 443, Addr: [4]byte{10, 0, 0, 1}}, false},
		{"00000000000000000000ffff7f0000020050", &unix.SockaddrInet4{Port: 80, Addr: [4]byte{127, 0, 0, 2}}, true},
		{"0000000000000000000000000000000101bb", &unix.SockaddrInet6{Port: 443, Addr: [16]byte{15: 1}}, true},
		{"fd0000000000000000000000000000011f90", &unix.SockaddrInet6{Port: 8080, Addr: [16]byte{0: 0xfd, 15: 1}}, false},
	} {
		a, err := parseAddress(tc.code)
		if err != nil {
			t.Fatal(err)
		}
		_, to, loopback := a.socket()
		if !reflect.DeepEqual(to, tc.want) || loopback != tc.loopback {
			t.Errorf("%s: %+v, %t", tc.code, to, loopback)
		}
	}
	for _, code := range []string{"", "10.0.0.1:443", "0000000000000000000000000000000101b", "zz000000000000000000ffff0a00000101bb"} {
		if a, err := parseAddress(code); err == nil {
			t.Errorf("%q is %+v", code, a)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
