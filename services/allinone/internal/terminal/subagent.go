package terminal

import (
	"bytes"
	"io"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// subagent shows the events of subagents, each line behind the subagent's name: several work at the same time.
func (r *Renderer) subagent(e *sessionv1.Event) bool {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_SubagentStarted:
		name := Line(b.SubagentStarted.GetSubagent(), 40)
		r.end()
		r.subagents[b.SubagentStarted.GetCallId()] = NewRenderer(&named{w: r.w, name: r.style(dim, "  ["+name+"] ")}, r.options)
	case *sessionv1.Event_SubagentEvent:
		if inner := r.subagents[b.SubagentEvent.GetCallId()]; inner != nil {
			r.end()
			inner.Event(b.SubagentEvent.GetEvent())
			inner.end()
			r.written = "\n"
		}
	case *sessionv1.Event_SubagentFinished:
		delete(r.subagents, b.SubagentFinished.GetCallId())
	default:
		return false
	}
	return true
}

// named writes lines behind a name.
type named struct {
	w      io.Writer
	name   string
	inLine bool
}

// Write adds the name to the beginning of each line.
func (n *named) Write(p []byte) (int, error) {
	var out bytes.Buffer
	for line := range bytes.Lines(p) {
		if !n.inLine && len(bytes.TrimSpace(line)) > 0 {
			out.WriteString(n.name)
		}
		out.Write(line)
		n.inLine = !bytes.HasSuffix(line, []byte("\n"))
	}
	if _, err := n.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}
