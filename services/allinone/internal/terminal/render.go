package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Options configure how a turn is shown.
type Options struct {
	Colors   bool
	Thinking bool // show the model's thinking
	Lines    int  // how many lines of a tool's result are shown; 0 shows only those of errors, up to five
}

// Renderer shows a session's events as text, as they come. It is for one
// goroutine.
type Renderer struct {
	w       io.Writer
	options Options
	err     error

	clean   Cleaner // of the block that is being written
	written string  // the end of what was written, to know where lines begin
	open    []piece // the pieces of it that were shown
	calls   map[string]string
	// subagents shows those that work, by call.
	subagents map[string]*Renderer
	began     time.Time
}

// piece is a delta that was shown.
type piece struct {
	seq    int64
	length int
}

// NewRenderer returns a Renderer that writes to w.
func NewRenderer(w io.Writer, o Options) *Renderer {
	return &Renderer{w: w, options: o, calls: map[string]string{}, subagents: map[string]*Renderer{}}
}

// Err returns the first error of the writer; nothing is written after it.
func (r *Renderer) Err() error { return r.err }

// Event shows an event.
func (r *Renderer) Event(e *sessionv1.Event) {
	switch b := e.GetBody().(type) {
	case *sessionv1.Event_SessionCreated:
		if greeting := b.SessionCreated.GetGreeting(); greeting != "" {
			r.lines(Clean(greeting))
		}
	case *sessionv1.Event_TurnQueued:
		r.began = e.GetTime().AsTime()
	case *sessionv1.Event_TurnFinished:
		r.finished(e, b.TurnFinished)
	case *sessionv1.Event_StepRestarted:
		r.begin()
		r.lines(r.style(yellow, "! the model's answer broke off and starts again: "+Line(b.StepRestarted.GetReason(), wide)))
	case *sessionv1.Event_TextStarted:
		r.begin()
	case *sessionv1.Event_TextDelta:
		r.delta(e, "", b.TextDelta.GetText())
	case *sessionv1.Event_ThinkingStarted:
		r.thinkingStarted()
	case *sessionv1.Event_ThinkingDelta:
		if r.options.Thinking {
			r.delta(e, dim, b.ThinkingDelta.GetText())
		}
	case *sessionv1.Event_TextFinished, *sessionv1.Event_ThinkingFinished:
		r.end()
	case *sessionv1.Event_TodoUpdated:
		r.todos(b.TodoUpdated.GetTodos())
	case *sessionv1.Event_Warning:
		r.lines(r.style(yellow, "! "+remark(b.Warning.GetMessage(), b.Warning.GetReason())))
	case *sessionv1.Event_Error:
		r.lines(r.style(red, "! "+remark(b.Error.GetMessage(), b.Error.GetReason())))
	case *sessionv1.Event_SessionCompacted:
		r.lines(r.style(dim, fmt.Sprintf("- the conversation was shortened for the model: %d to %d tokens", b.SessionCompacted.GetTokensBefore(), b.SessionCompacted.GetTokensAfter())))
	default:
		if !r.subagent(e) {
			r.call(e)
		}
	}
}

// remark returns a message with its reason.
func remark(message, reason string) string {
	if message == "" {
		return Line(reason, wide)
	}
	if reason == "" {
		return Line(message, wide)
	}
	return Line(message, wide) + " (" + Line(reason, wide) + ")"
}

// begin begins a block of text on a line of its own.
func (r *Renderer) begin() {
	r.end()
	r.clean, r.open = Cleaner{}, nil
}

// thinkingStarted heads a block of thinking.
func (r *Renderer) thinkingStarted() {
	r.begin()
	if r.options.Thinking {
		r.lines(r.style(dim, "thinking:"))
	}
}

// delta shows more of a block. After a lost connection the server may send an
// event again that covers more than was seen; only the new part is shown.
func (r *Renderer) delta(e *sessionv1.Event, s style, text string) {
	known := 0
	for _, p := range r.open {
		if p.seq >= e.GetFirstSeq() {
			known += p.length
		}
	}
	if known >= len(text) {
		return
	}
	text = text[known:]
	r.open = append(r.open, piece{e.GetSeq(), len(text)})
	r.write(r.style(s, r.clean.Clean(text)))
}

// end ends a block, on a new line.
func (r *Renderer) end() {
	if r.written != "" && !strings.HasSuffix(r.written, "\n") {
		r.write("\n")
	}
}

// lines writes whole lines.
func (r *Renderer) lines(text string) {
	r.end()
	r.write(strings.TrimSuffix(text, "\n") + "\n")
}

func (r *Renderer) write(text string) {
	if r.err != nil || text == "" {
		return
	}
	if _, r.err = io.WriteString(r.w, text); r.err == nil {
		r.written = text[len(text)-1:]
	}
}

// todos shows the list of things to do.
func (r *Renderer) todos(todos []*sessionv1.Todo) {
	marks := map[string]string{"completed": "[x]", "in_progress": "[>]"}
	for _, t := range todos {
		mark, ok := marks[t.GetStatus()]
		if !ok {
			mark = "[ ]"
		}
		r.lines("  " + mark + " " + Line(t.GetContent(), wide))
	}
}

// finished shows how the turn ended and what it used.
func (r *Renderer) finished(e *sessionv1.Event, f *sessionv1.TurnFinished) {
	r.end()
	color := red
	switch f.GetState() {
	case sessionv1.TurnState_TURN_STATE_COMPLETE:
		color = green
	case sessionv1.TurnState_TURN_STATE_PARTIAL, sessionv1.TurnState_TURN_STATE_INTERRUPTED:
		color = yellow
	default:
	}
	summary := fmt.Sprintf("  %s, %s", plural(int64(f.GetSteps()), "step"), Used(f.GetUsage()))
	if !r.began.IsZero() {
		summary += ", " + Duration(e.GetTime().AsTime().Sub(r.began))
	}
	r.write("\n")
	r.lines(r.style(color, State(f.GetState())) + r.style(dim, summary))
	if t := f.GetError(); t != nil {
		r.lines(r.style(color, remark(t.GetMessage(), t.GetReason())))
	}
}

// State returns a turn's state without its prefix.
func State(s sessionv1.TurnState) string {
	return strings.TrimPrefix(s.String(), "TURN_STATE_")
}

// Used formats the use, in tokens and US dollars.
func Used(u *sessionv1.Usage) string {
	s := fmt.Sprintf("%d tokens in", u.GetInputTokens())
	if u.GetCacheReadTokens() > 0 || u.GetCacheWriteTokens() > 0 {
		s += fmt.Sprintf(" (and %d from the cache, %d into it)", u.GetCacheReadTokens(), u.GetCacheWriteTokens())
	}
	s += fmt.Sprintf(", %d out, %s", u.GetOutputTokens(), Cost(u))
	if u.GetEstimated() { // an answer was cut off before the provider counted it
		return "about " + s
	}
	return s
}

// Cost formats the cost in US dollars.
func Cost(u *sessionv1.Usage) string {
	if u.GetCostNanoUsd() == 0 {
		return "no cost"
	}
	return fmt.Sprintf("$%.4f", float64(u.GetCostNanoUsd())/1e9)
}

// Duration formats a duration, rounded for people.
func Duration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// plain returns the text of content.
func plain(content []*commonv1.Content) string {
	var b strings.Builder
	for _, c := range content {
		switch k := c.GetKind().(type) {
		case *commonv1.Content_Text:
			b.WriteString(k.Text.GetText())
		case *commonv1.Content_Image:
			b.WriteString("[image " + k.Image.GetMediaType() + "]")
		case *commonv1.Content_Document:
			b.WriteString("[document " + k.Document.GetMediaType() + "]")
		case *commonv1.Content_Audio:
			b.WriteString("[sound " + k.Audio.GetMediaType() + "]")
		case *commonv1.Content_Resource:
			b.WriteString("[resource " + k.Resource.GetUri() + "]\n" + k.Resource.GetText())
		case *commonv1.Content_ResourceLink:
			b.WriteString("[link to " + k.ResourceLink.GetUri() + "]")
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
