package modelproxy

import (
	"bytes"
	"encoding/json"
	"slices"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// maxLine bounds the part of a stream that is kept to read its usage.
const maxLine = 4 << 20

// tap reads the usage from an answer that is passed on.
type tap struct {
	stream bool
	// hidden drops the chunk with the usage, which the client has not asked for. Only whole lines are passed on then.
	hidden bool
	// blank says that the next line, which is empty, belongs to a dropped chunk.
	blank bool

	line  []byte // so far
	skip  bool   // the line is too long to be of interest
	found doc
}

// doc is the part of an answer, or of an event of one, that the tap reads.
type doc struct {
	ID         string          `json:"id"`
	Usage      *usage          `json:"usage"`
	StopReason string          `json:"stop_reason"`
	Status     string          `json:"status"`
	Choices    []choice        `json:"choices"`
	Message    *doc            `json:"message"`
	Response   *doc            `json:"response"`
	Delta      json.RawMessage `json:"delta"`
}

type choice struct {
	Finish string `json:"finish_reason"`
}

// usage has the names of all wires.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  int64  `json:"cache_read_input_tokens"`
	CacheWrite int64  `json:"cache_creation_input_tokens"`

	Prompt     *int64 `json:"prompt_tokens"`
	Completion *int64 `json:"completion_tokens"`

	InputDetails  *details `json:"input_tokens_details"`
	PromptDetails *details `json:"prompt_tokens_details"`
	OutputDetails *details `json:"output_tokens_details"`
	OtherDetails  *details `json:"completion_tokens_details"`
}

type details struct {
	Cached    int64 `json:"cached_tokens"`
	Reasoning int64 `json:"reasoning_tokens"`
	Thinking  int64 `json:"thinking_tokens"`
}

// ends are the states in which an answer of the Responses API ends.
var ends = []string{"completed", "incomplete", "failed"}

// feed takes the next bytes of the answer and returns those for the client.
func (t *tap) feed(b []byte) []byte {
	if !t.stream {
		if len(t.line)+len(b) <= maxBody {
			t.line = append(t.line, b...)
		}
		return b
	}
	var out []byte
	for rest := b; len(rest) > 0; {
		at := bytes.IndexByte(rest, '\n')
		if at < 0 {
			t.keep(rest)
			break
		}
		t.keep(rest[:at+1])
		rest = rest[at+1:]
		if !t.ended() && t.hidden {
			out = append(out, t.line...)
		}
		t.line, t.skip = t.line[:0], false
	}
	if t.hidden {
		return out
	}
	return b
}

func (t *tap) keep(b []byte) {
	if len(t.line)+len(b) > maxLine && !t.hidden {
		t.skip, t.line = true, t.line[:0]
	}
	if !t.skip {
		t.line = append(t.line, b...)
	}
}

// last returns what is left at the end of the answer.
func (t *tap) last() []byte {
	if !t.stream {
		t.read(t.line)
		return nil
	}
	if t.hidden && !t.ended() {
		return t.line
	}
	return nil
}

var (
	usageName = []byte(`"usage"`)
	stopName  = []byte(`"stop_reason"`)
	endName   = []byte(`"finish_reason":"`)
	noChoices = []byte(`"choices":[]`)
	choices   = []byte(`"choices":[`)
	nullUsage = []byte(`"usage":null`)
)

// ended looks at a whole line, and reports whether it is dropped.
func (t *tap) ended() bool {
	if t.blank {
		t.blank = false
		if len(bytes.TrimSpace(t.line)) == 0 {
			return true
		}
	}
	data, ok := bytes.CutPrefix(t.line, []byte("data:"))
	if !ok || !t.tells(data) {
		return false
	}
	counted := t.read(data)
	if t.hidden && counted && bytes.Contains(data, noChoices) {
		t.blank = true
		return true
	}
	return false
}

// tells reports whether an event may tell of its use or its end. Where a usage was asked for, each chunk of Chat
// Completions has one that is null.
func (t *tap) tells(data []byte) bool {
	if bytes.Contains(data, stopName) || bytes.Contains(data, endName) {
		return true
	}
	if t.found.ID != "" && bytes.Contains(data, nullUsage) && bytes.Contains(data, choices) {
		return false
	}
	return bytes.Contains(data, usageName)
}

// read reads a JSON value, and reports whether it has a usage.
func (t *tap) read(data []byte) bool {
	var d doc
	if json.Unmarshal(bytes.TrimSpace(data), &d) != nil {
		return false
	}
	return t.take(&d)
}

func (t *tap) take(d *doc) (counted bool) {
	if d == nil {
		return false
	}
	if t.found.ID == "" {
		t.found.ID = d.ID
	}
	if d.StopReason != "" {
		t.found.StopReason = d.StopReason
	}
	if slices.Contains(ends, d.Status) {
		t.found.StopReason = d.Status
	}
	for _, c := range d.Choices {
		if c.Finish != "" {
			t.found.StopReason = c.Finish
		}
	}
	if len(d.Delta) > 0 && d.Delta[0] == '{' {
		var delta doc
		if json.Unmarshal(d.Delta, &delta) == nil && delta.StopReason != "" {
			t.found.StopReason = delta.StopReason
		}
	}
	if d.Usage != nil {
		t.merge(d.Usage)
		counted = true
	}
	return t.take(d.Message) || t.take(d.Response) || counted
}

// merge takes over the counts of a later event, which are sums: the last one above 0 counts.
func (t *tap) merge(u *usage) {
	if t.found.Usage == nil {
		t.found.Usage = &usage{}
	}
	to := t.found.Usage
	for _, f := range []struct{ to, from **int64 }{{&to.Input, &u.Input}, {&to.Output, &u.Output}, {&to.Prompt, &u.Prompt}, {&to.Completion, &u.Completion}} {
		if *f.from != nil && (**f.from > 0 || *f.to == nil) {
			*f.to = *f.from
		}
	}
	for _, f := range []struct{ to, from *int64 }{{&to.CacheRead, &u.CacheRead}, {&to.CacheWrite, &u.CacheWrite}} {
		if *f.from > 0 {
			*f.to = *f.from
		}
	}
	for _, f := range []struct{ to, from **details }{
		{&to.InputDetails, &u.InputDetails}, {&to.PromptDetails, &u.PromptDetails}, {&to.OutputDetails, &u.OutputDetails}, {&to.OtherDetails, &u.OtherDetails},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
}

// usage returns what the call has used; nil if the answer does not say it.
func (t *tap) usage() *sessionv1.Usage {
	u := t.found.Usage
	if u == nil {
		return nil
	}
	out := &sessionv1.Usage{
		InputTokens: value(u.Input) + value(u.Prompt), OutputTokens: value(u.Output) + value(u.Completion),
		CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
	}
	for _, d := range []*details{u.InputDetails, u.PromptDetails} {
		if d != nil { // OpenAI's input includes what came from the cache
			out.CacheReadTokens = min(max(d.Cached, 0), out.InputTokens)
			out.InputTokens -= out.CacheReadTokens
		}
	}
	for _, d := range []*details{u.OutputDetails, u.OtherDetails} {
		if d != nil {
			out.ThinkingTokens = max(d.Reasoning, d.Thinking)
		}
	}
	return out
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return max(*n, 0)
}
