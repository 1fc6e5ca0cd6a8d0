package box

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/sandbox/internal/held"
)

// holder is a process that holds deleted files in some looks, told one after the other, and is looked at
// in vain afterwards.
type holder struct {
	endless
	looks []int64
	asked int
}

func (p *holder) Held() (s held.Sum) {
	if p.asked < len(p.looks) {
		s.Deleted = p.looks[p.asked]
	}
	p.asked++
	return s
}

// holding is a runner of such.
type holding struct {
	filling

	looks []int64
	last  *holder
}

func (r *holding) Start(ctx context.Context, c Command) (Process, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	if _, err := r.filling.Start(ctx, c); err != nil {
		return nil, err
	}
	none := func() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }
	r.last = &holder{looks: r.looks, endless: endless{ended: ended{out: none(), err: none()}, end: make(chan struct{})}}
	return r.last, nil
}

// What a look found deleted may have a name by the time that files with names are counted.
func TestACommandIsEndedForDeletedFilesThatAreFoundAgain(t *testing.T) {
	const much, little = 2 << 20, 1 << 10 // of the megabyte that it may have
	for name, tc := range map[string]struct {
		looks []int64
		files int
		want  Reason
		asked int // how often until its end, if that comes before its time
	}{
		"found once":                          {[]int64{much}, 0, TimedOut, 0},
		"found now and then":                  {[]int64{much, 0, much, little, much}, 0, TimedOut, 0},
		"found again":                         {[]int64{0, much, much}, 0, WorkspaceLimit, 3},
		"found again, and more":               {[]int64{much, held.TooMuch}, 0, WorkspaceLimit, 2},
		"no more than it may have":            {[]int64{little, little, little}, 0, TimedOut, 0},
		"too much beside it that has a name":  {[]int64{little}, much, WorkspaceLimit, 1},
		"too much that has a name, and alone": {nil, much, WorkspaceLimit, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &holding{looks: tc.looks, filling: filling{bytes: tc.files}}
				n := openNode(t, options(t, r))
				ensure(t, n, Key{"t", "s"})
				e, _, err := n.Start(t.Context(), testCall("a"), 0, Spec{Argv: []string{"x"}})
				if err != nil {
					t.Fatal(err)
				}
				<-e.done
				if o := e.Outcome(); o.Reason != tc.want || tc.asked > 0 && r.last.asked != tc.asked {
					t.Errorf("a command: %+v after %d looks", o, r.last.asked)
				}
				n.execs.Wait()
				ensure(t, n, Key{"t", "other"})
				var out bytes.Buffer
				o, err := n.RunInside(t.Context(), Call{Key: Key{"t", "other"}, Epoch: 1, ID: "b"}, 0, Task{Argv: []string{"x"}, Timeout: 3 * time.Second, Stdout: &out})
				if err != nil || o.Reason != tc.want || tc.asked > 0 && r.last.asked != tc.asked {
					t.Errorf("a task: %+v after %d looks, %v", o, r.last.asked, err)
				}
			})
		})
	}
}
