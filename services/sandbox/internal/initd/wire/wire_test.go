package wire

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestACommandSurvivesTheWire(t *testing.T) {
	t.Parallel()
	for _, c := range []*Command{
		{ID: 1, Argv: []string{"true"}},
		{
			ID: 1 << 60, Gate: true, ReportStart: true, Terminal: true, Rows: 25, Columns: 80, AddressSpace: 1 << 40, Processes: 7, Dir: "/workspace/ä",
			Argv: []string{"bash", "-c", "", "\xff"}, Env: []string{"A=1", "B="},
		},
	} {
		got, err := DecodeCommand(c.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c, got, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	}
}

func TestAReplySurvivesTheWire(t *testing.T) {
	t.Parallel()
	for _, p := range []Reply{
		{Kind: Ready},
		{Kind: Started, ID: 3},
		{Kind: Listening},
		{Kind: Terminals, ID: 64},
		{Kind: Failed, ID: 4, Errno: 2, Dir: true},
		{Kind: Exited, ID: 5, Status: 0x8b00, CPU: time.Second, MaxRSS: 1 << 33, Swept: true},
	} {
		got, err := DecodeReply(p.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, got); d != "" {
			t.Error(d)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add((&Command{ID: 9, Dir: "/", Argv: []string{"a"}, Env: []string{"b"}}).Encode())
	f.Add((&Reply{Kind: Exited, ID: 5}).Encode())
	f.Add([]byte{byte(Start), 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := DecodeCommand(b); err == nil && len(c.Encode()) != len(b) {
			t.Errorf("%x is another length again", b)
		}
		if p, err := DecodeReply(b); err == nil && len(p.Encode()) != len(b) {
			t.Errorf("%x is another length again", b)
		}
	})
}
