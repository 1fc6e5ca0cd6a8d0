package verdict

import (
	"strings"
)

// The header of a final message:
//
//	request_status: PARTIAL
//	reason: The tests are missing.
//	<an empty line>
//
// The reason may be left out. A message may also end with its header.

// HeaderPrompt tells the model of the header.
const HeaderPrompt = `Begin your final message, and no other, with a header that says how your work went, followed by an empty line:
request_status: COMPLETE, PARTIAL or FAILED
reason: unless it is COMPLETE, what is missing and why, in one line
The user does not see the header.`

// maxReason bounds the reason, in bytes; a message with a longer one has no
// header.
const maxReason = 1000

// statuses are the first lines of headers.
var statuses = []string{"request_status: COMPLETE\n", "request_status: PARTIAL\n", "request_status: FAILED\n"}

const reasonField = "reason: "

// Filter holds back the header of a text that comes in pieces, only as long as
// the text so far may still become one. Its zero value is ready.
type Filter struct {
	held string
	open bool // whether the header, or its absence, is known
}

// Add adds a piece and returns the part of the text that may be shown now.
func (f *Filter) Add(piece string) string {
	if f.open {
		return piece
	}
	f.held += piece
	switch n, state := scan(f.held); state {
	case undecided:
		return ""
	default:
		rest := f.held[n:]
		f.held, f.open = "", true
		return rest
	}
}

// Close ends the text and returns the held-back part, if it is not a header.
func (f *Filter) Close() string {
	if f.open {
		return ""
	}
	_, rest := Split(f.held)
	f.held, f.open = "", true
	return rest
}

// Split splits a whole text into its header, as a verdict, and the text for
// people. Without a header the verdict is nil and the text is unchanged.
func Split(s string) (*Verdict, string) {
	n, state := scan(s)
	if state == undecided {
		n, state = scan(s + "\n\n") // the text ends where the header may
		n = min(n, len(s))
	}
	if state != found {
		return nil, s
	}
	lines := strings.SplitN(s[:n]+"\n", "\n", 3)
	_, status, _ := strings.Cut(lines[0], ": ")
	reason, _ := strings.CutPrefix(lines[1], reasonField)
	return &Verdict{State: states[status], Summary: reason}, s[n:]
}

type scanned int

const (
	undecided scanned = iota // the text may still become a header
	found
	none
)

// scan looks for a header at the beginning of s and returns its length,
// including the empty line.
func scan(s string) (int, scanned) {
	at := 0
	for _, status := range statuses {
		if strings.HasPrefix(s, status) {
			at = len(status)
		} else if strings.HasPrefix(status, s) {
			return 0, undecided
		}
	}
	rest := s[at:]
	switch {
	case at == 0:
		return 0, none
	case rest == "":
		return 0, undecided
	case rest[0] == '\n':
		return at + 1, found
	case strings.HasPrefix(reasonField, rest):
		return 0, undecided
	case !strings.HasPrefix(rest, reasonField):
		return 0, none
	}
	value := rest[len(reasonField):]
	end := strings.IndexByte(value, '\n')
	switch {
	case end > maxReason || end < 0 && len(value) > maxReason:
		return 0, none
	case end < 0 || end+1 == len(value):
		return 0, undecided
	case value[end+1] != '\n':
		return 0, none
	default:
		return at + len(reasonField) + end + 2, found
	}
}
