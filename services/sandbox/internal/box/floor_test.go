package box

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// diskSpace is a DiskSpace as a test sets it. While it is full, what is free falls with each look.
type diskSpace struct {
	full, low bool
	falls     int64 // by so many bytes
	free      int64
}

func (d *diskSpace) Check() error {
	if d.full {
		return errors.New("the node's disk is nearly full")
	}
	return nil
}
func (d *diskSpace) Tight() bool { return d.full }
func (d *diskSpace) Low() bool   { return d.low }
func (d *diskSpace) Free() (bytes, inodes int64) {
	d.free -= d.falls
	return d.free, 0
}

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
			room := &diskSpace{falls: minWrittenBytes}
			o := options(t, &hold{bytes: tc.bytes})
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
			n.floor.space = room
			n.floor.endHeaviestWriter()
			for _, e := range execs {
				if e.Outcome() != nil {
					t.Error("a command was ended while there was room")
				}
			}
			room.full, room.low = true, tc.low
			for range tc.rounds {
				n.floor.endHeaviestWriter()
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

// lateStart is a Runner under whose command the disk is full before the command is known to run.
type lateStart struct {
	hold

	meanwhile func()
}

func (r *lateStart) Start(ctx context.Context, c Command) (Process, error) {
	p, err := r.hold.Start(ctx, c)
	r.meanwhile()
	return p, err
}

func TestACommandThatStartsIsNotForgotten(t *testing.T) {
	for _, tc := range []struct {
		wrote int64 // by the neighbor
		looks int
		ended bool // the neighbor
	}{{0, startLooks, false}, {1, startLooks, false}, {minWrittenBytes, 1, true}, {0, startLooks + 1, true}} {
		r := &lateStart{hold: hold{bytes: map[string]int64{"neighbor": tc.wrote}}, meanwhile: func() {}}
		n := openNode(t, options(t, r))
		execs := map[string]*Exec{}
		for _, session := range []string{"neighbor", "attacker"} {
			if session != "neighbor" {
				r.meanwhile = func() {
					n.floor.space = &diskSpace{full: true, low: true, falls: minWrittenBytes}
					for range tc.looks {
						n.floor.endHeaviestWriter()
					}
				}
			}
			k := Key{"t", session}
			ensure(t, n, k)
			e, _, err := n.Start(t.Context(), Call{Key: k, Epoch: 1, ID: "x"}, Spec{Argv: []string{session}})
			if err != nil {
				t.Fatal(err)
			}
			execs[session] = e
		}
		e := execs["neighbor"]
		e.mu.Lock()
		if ended := e.stopped != nil; ended != tc.ended {
			t.Errorf("the neighbor that wrote %d bytes, after %d looks: ended %v, want %v", tc.wrote, tc.looks, ended, tc.ended)
		}
		e.mu.Unlock()
	}
}

func TestATaskThatStartsIsNotForgotten(t *testing.T) {
	r := &lateStart{meanwhile: func() {}}
	n := openNode(t, options(t, r))
	ensure(t, n, Key{"t", "neighbor"})
	e, _, err := n.Start(t.Context(), Call{Key: Key{"t", "neighbor"}, Epoch: 1, ID: "x"}, Spec{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.meanwhile = func() {
		defer cancel() // the task has begun; it need not go on
		n.floor.space = &diskSpace{full: true, low: true}
		n.floor.endHeaviestWriter()
		n.floor.space = &diskSpace{}
		n.floor.endHeaviestWriter() // there is room again: the next shortage has all its looks
		if n.floor.waited != 0 {
			t.Errorf("%d looks are left over", n.floor.waited)
		}
	}
	ensure(t, n, Key{"t", "s"})
	if _, err := n.RunInside(ctx, testCall("y"), Task{Argv: []string{"y"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if e.mu.Lock(); e.stopped != nil {
		t.Error("the neighbor was ended:", e.stopped.Message)
	}
	e.mu.Unlock()
}

// A full disk of another folder, such as the object store's, ends no command.
func TestOnlyTheDiskOfTheDataEndsCommands(t *testing.T) {
	o := options(t, &hold{bytes: map[string]int64{"a": 2 << 20}})
	all := &diskSpace{}
	o.DiskSpace = all
	n := openNode(t, o)
	ensure(t, n, Key{"t", "s"})
	e, _, err := n.Start(t.Context(), testCall("x"), Spec{Argv: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	all.full, all.low = true, true
	n.floor.space = &diskSpace{}
	n.floor.endHeaviestWriter()
	if e.mu.Lock(); e.stopped != nil {
		t.Error("the command was ended:", e.stopped.Message)
	}
	e.mu.Unlock()
	if _, _, err := n.Start(t.Context(), testCall("y"), Spec{Argv: []string{"a"}}); err == nil {
		t.Error("a new command starts")
	}
}

// lateDisk is full until some looks after the first.
type lateDisk struct {
	diskSpace

	looks int
}

func (d *lateDisk) Check() error {
	d.looks--
	d.full = d.looks >= 0
	return d.diskSpace.Check()
}

// A file system may free the space of deleted files some time after a command's end.
func TestSpaceThatIsFreedLateSparesTheNextSession(t *testing.T) {
	n := openNode(t, options(t, &hold{bytes: map[string]int64{"a": 3 << 20, "b": 2 << 20}}))
	execs := map[string]*Exec{}
	for _, session := range []string{"a", "b"} {
		k := Key{"t", session}
		ensure(t, n, k)
		e, _, err := n.Start(t.Context(), Call{Key: k, Epoch: 1, ID: "x"}, Spec{Argv: []string{session}})
		if err != nil {
			t.Fatal(err)
		}
		execs[session] = e
	}
	disk := &lateDisk{looks: 3}
	n.floor.space = disk
	n.floor.endHeaviestWriter()
	if disk.full {
		t.Error("it did not wait")
	}
	n.floor.endHeaviestWriter()
	<-execs["a"].done
	if e := execs["b"]; e.Outcome() != nil {
		t.Errorf("the next session: %+v", e.Outcome())
	}
}

// fill writes files of a block each.
func fill(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A workspace of unknown size has not grown.
func TestAnUnknownSizeIsNoGrowth(t *testing.T) {
	n := openNode(t, options(t, &hold{}))
	ensure(t, n, Key{"t", "s"})
	e, _, err := n.Start(t.Context(), testCall("w"), Spec{Argv: []string{"w"}})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e.session(t), "a", "b", "c", "d")
	e.stop(Outcome{Reason: Cancelled})
	<-e.done
	s, leave, err := n.sessions.enter(Key{"t", "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	s.workspace.usage.Forget()
	p := &writes{endless: endless{end: make(chan struct{})}}
	r := &running{session: s, process: p}
	r.size, r.sized = s.workspace.usage.Last()
	if _, err := s.workspace.usage.Get(s.workspace.limits().room(), s.workspace.folders()...); err != nil {
		t.Fatal(err)
	}
	a := &activeSession{session: s, commands: []*running{r}}
	if a.measure(); a.wrote != 0 {
		t.Errorf("%d bytes", a.wrote)
	}
}

// The node may end a task for room while the task ends by itself.
func TestATaskEndsWhileTheNodeEndsIt(t *testing.T) {
	n := openNode(t, options(t, &hold{}))
	ensure(t, n, Key{"t", "s"})
	s, leave, err := n.sessions.enter(Key{"t", "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	p, err := (&hold{}).Start(t.Context(), Command{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	looked := make(chan struct{})
	over := func() (limit, why string) {
		n.floor.mu.Lock()
		defer n.floor.mu.Unlock()
		for r := range n.floor.running { // which the node has chosen before
			go func() { r.stop(Outcome{Reason: DiskLimit}); close(looked) }()
		}
		return "", ""
	}
	p.Kill()
	o := s.await(t.Context(), s.starts(), p, Task{}, Limits{Timeout: time.Minute, FloodBytes: 1}, over)
	<-looked
	if o.Reason != DiskLimit && o.Reason != Signaled {
		t.Errorf("%+v", o)
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
	for end := time.Now().Add(10 * time.Second); n.floor.activeSessions()[0].wrote != 2*4096+2*inodeBytes; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes", n.floor.activeSessions()[0].wrote)
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
