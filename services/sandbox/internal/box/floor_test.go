package box

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// disk is a Room as a test sets it.
type disk struct{ full, low bool }

func (d *disk) Check() error {
	if d.full {
		return errors.New("the node's disk is nearly full")
	}
	return nil
}
func (d *disk) Tight() bool { return d.full }
func (d *disk) Low() bool   { return d.low }

// writes is a process that has written some bytes, and runs until it is killed.
type writes struct {
	endless

	bytes int64
}

func (p *writes) Written() int64 { return p.bytes }

// hold is a Runner whose commands have written as many bytes as their argument says.
type hold struct {
	fake

	bytes map[string]int64
}

func (r *hold) Start(_ context.Context, c Command) (Process, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	none := func() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }
	return &writes{endless: endless{ended: ended{out: none(), err: none()}, end: make(chan struct{})}, bytes: r.bytes[c.Argv[0]]}, nil
}

func TestTheSessionThatWroteMostMakesRoom(t *testing.T) {
	const much = 2 << 20
	for name, tc := range map[string]struct {
		bytes  map[string]int64
		low    bool
		rounds int
		ended  string
	}{
		"the one that wrote most":                {map[string]int64{"a": much, "b": 2 * much, "c": 3}, false, 1, "b"},
		"then the next":                          {map[string]int64{"a": much, "b": 2 * much, "c": 3}, false, 2, "a b"},
		"none that wrote little":                 {map[string]int64{"a": much, "b": 2 * much, "c": 3}, false, 9, "a b"},
		"all of them where half is gone":         {map[string]int64{"a": much, "b": 2 * much, "c": 3}, true, 9, "a b c"},
		"the younger of two that wrote the same": {nil, true, 1, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			room := &disk{}
			o := options(t, &hold{bytes: tc.bytes})
			o.DiskSpace = room
			n := openNode(t, o)
			execs := map[string]*Exec{}
			for _, session := range []string{"a", "b", "c"} {
				k := Key{"t", session}
				ensure(t, n, k)
				e, _, err := n.Start(t.Context(), Call{Key: k, Epoch: 1, ID: "x"}, Spec{Argv: []string{session}})
				if err != nil {
					t.Fatal(err)
				}
				execs[session] = e
			}
			n.endHeaviestWriter()
			for _, e := range execs {
				if e.Outcome() != nil {
					t.Error("a command was ended while there was room")
				}
			}
			room.full, room.low = true, tc.low
			for range tc.rounds {
				n.endHeaviestWriter()
			}
			for session, e := range execs {
				if !strings.Contains(tc.ended, session) {
					if e.mu.Lock(); e.stopped != nil {
						t.Errorf("the commands of %s were ended", session)
					}
					e.mu.Unlock()
					continue
				}
				<-e.done
				if o := e.Outcome(); o.Reason != DiskLimit || len(o.Hits) != 1 || o.Hits[0].Limit != hitDisk || !strings.Contains(o.Message, "nearly full") {
					t.Errorf("%s: %+v", session, o)
				}
			}
		})
	}
}

// What a workspace has grown by counts as written, also where the kernel counts nothing.
func TestTheGrowthOfAWorkspaceIsWritten(t *testing.T) {
	n := openNode(t, options(t, &hold{}))
	ensure(t, n, Key{"t", "s"})
	e, _, err := n.Start(t.Context(), testCall("x"), Spec{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e.session(t), "a", "b")
	for end := time.Now().Add(10 * time.Second); n.activeSessions()[0].wrote != 2*4096+2*inodeBytes; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes", n.activeSessions()[0].wrote)
		}
	}
}

// session returns the folder of the command's workspace.
func (e *Exec) session(t *testing.T) string {
	t.Helper()
	w, release, err := e.node.View(Key{"t", "s"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	release()
	return w.Dir
}
