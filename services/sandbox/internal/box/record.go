package box

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/filename"
)

// Reason is why a command ended.
type Reason string

// Reasons.
const (
	Exited         Reason = "exited"
	Signaled       Reason = "signaled"
	TimedOut       Reason = "timed_out"
	OutOfMemory    Reason = "out_of_memory"
	Cancelled      Reason = "cancelled"
	OutputLimit    Reason = "output_limit"
	WorkspaceLimit Reason = "workspace_limit"
	FileLimit      Reason = "file_limit"
	DiskLimit      Reason = "disk_limit" // the node's
	TerminalLimit  Reason = "terminal_limit"
	NotStarted     Reason = "not_started"
	Lost           Reason = "lost"
)

// Outcome is how a command ended.
type Outcome struct {
	Reason    Reason        `json:"reason"`
	ExitCode  int           `json:"exit_code,omitempty"`
	Signal    int           `json:"signal,omitempty"`
	Message   string        `json:"message,omitempty"` // for people; empty if it exited by itself
	Wall      time.Duration `json:"wall,omitempty"`
	CPU       time.Duration `json:"cpu,omitempty"`
	MaxMemory int64         `json:"max_memory,omitempty"` // bytes; zero if unknown
	Truncated bool          `json:"truncated,omitempty"`  // whether output was discarded
	Throttled time.Duration `json:"throttled,omitempty"`  // how long it waited for processors beyond its limit
	Hits      []Hit         `json:"hits,omitempty"`       // limits that it met; the one that ended it comes first
	Network   []Use         `json:"network,omitempty"`    // its uses of the network
}

// record is the stored data of an exec. Its file exists before the command starts, so that a command never
// starts twice.
type record struct {
	CallID    string    `json:"call_id"`
	Digest    []byte    `json:"digest,omitempty"` // of the command; none for a mark
	Argv      []string  `json:"argv,omitempty"`
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`
	Outcome   *Outcome  `json:"outcome,omitempty"`
	Cancelled bool      `json:"cancelled,omitempty"` // a later start is refused
	Damaged   bool      `json:"damaged,omitempty"`   // the disk lost the content: it may be of any command
}

// mark reports whether this is only a mark that refuses a start.
func (r *record) mark() bool { return r.Digest == nil && !r.Damaged }

// Spec is a command as a caller asks for it.
type Spec struct {
	Argv     []string
	Env      map[string]string
	Dir      string // relative to the workspace, clean
	Stdin    bool
	Terminal *TerminalSize
	Lower    Lower
	Piped    bool // its output goes to one stream, with which it ends
}

// digest identifies a command. It leaves out limits, because a repeated call has less time left, and whether
// it is piped, because such a command is never found again.
func (s Spec) digest() []byte {
	raw, err := json.Marshal([]any{s.Argv, s.Env, filename.Encode(s.Dir), s.Stdin, s.Terminal != nil})
	if err != nil {
		panic(err) // strings and booleans always encode
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}

func (s Spec) environment() []string {
	env := make([]string, 0, len(s.Env))
	for k, v := range s.Env {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

// matches reports whether the record is of this command.
func (r *record) matches(s Spec) bool { return r.Damaged || bytes.Equal(r.Digest, s.digest()) }

// loadExec reads an exec from disk. An exec without an end was running when the service died; loadExec
// marks it as lost. It returns nil for a folder without a record, because that command never started.
func loadExec(n *Node, dir string) (*Exec, error) {
	var r record
	err := read(filepath.Join(dir, recordFile), &r)
	if st, bad := os.Stat(filepath.Join(dir, recordFile)); bad == nil && st.Size() == 0 {
		err = os.ErrNotExist // a crash of the machine: had the command started, the journal would know it
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, os.RemoveAll(dir)
	}
	if damage := (*json.SyntaxError)(nil); errors.As(err, &damage) {
		n.o.Log.Error("the record of a command is damaged: it counts as lost", "call_id", filepath.Base(dir), "error", err)
		r, err = record{CallID: filepath.Base(dir), Damaged: true, Started: n.o.Now().UTC()}, nil
	}
	if err != nil {
		return nil, err
	}
	if r.Outcome == nil && !r.mark() {
		r.Ended = n.o.Now().UTC()
		r.Outcome = &Outcome{Reason: Lost, Message: "the sandbox service was restarted while the command ran: it may have taken effect"}
		if err := save(filepath.Join(dir, recordFile), r); err != nil {
			return nil, fmt.Errorf("mark a lost command: %w", err)
		}
	}
	e := newExec(n, dir, r)
	if err := e.output.find(); err != nil {
		return nil, err
	}
	e.keeper.recorded.Store(true)
	close(e.done)
	return e, nil
}
