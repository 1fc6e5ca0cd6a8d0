package spend

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
)

// Upper bounds, in tokens, of what a request has beyond its text.
const (
	requestTokens = 1024   // added by a provider to a request with tools
	messageTokens = 32     // added to each message and tool
	mediaTokens   = 10_000 // an image, whatever its size in bytes
	// documentFactor is how many tokens a byte of a document may become: a
	// document may compress its text.
	documentFactor = 4
)

// request is the size of a model request.
type request struct {
	model       string
	fixed       int64 // of the system prompt and the tools
	messages    int
	first, last string // messages
	tokens      int64  // the actual size, once it is known
}

// inputBound returns an upper bound of a request's input, in tokens. A token is
// at least a byte. If the request continues the one before it, and the provider
// has reported the size of that one, the common part counts as reported.
func (s *Spend) inputBound(r model.Request) int64 {
	fixed := fixedBound(r)
	s.asking = request{model: r.Model, fixed: fixed, messages: len(r.Messages)}
	if n := len(r.Messages); n > 0 {
		s.asking.first, s.asking.last = r.Messages[0].Name, r.Messages[n-1].Name
	}
	if m := s.measured; m.tokens > 0 && m.beginning(r, fixed) {
		return m.tokens + messagesBound(r.Messages[m.messages:])
	}
	return fixed + messagesBound(r.Messages)
}

// fixedBound is an upper bound of the system prompt and the tools.
func fixedBound(r model.Request) int64 {
	n := int64(len(r.System) + requestTokens)
	for _, t := range r.Tools {
		n += int64(len(t.Name)+len(t.Description)+len(t.InputSchema)) + messageTokens
	}
	return n
}

// beginning reports whether another request begins with this one.
func (q request) beginning(r model.Request, fixed int64) bool {
	return q.model == r.Model && q.fixed == fixed && q.messages > 0 && q.messages <= len(r.Messages) &&
		r.Messages[0].Name == q.first && r.Messages[q.messages-1].Name == q.last
}

func messagesBound(messages []*sessionv1.Message) int64 {
	var n int64
	for _, m := range messages {
		n += messageTokens
		for _, b := range m.Blocks {
			n += int64(proto.Size(b)) + messageTokens + mediaBound(b.GetContent())
			for _, c := range b.GetToolResult().GetContent() {
				n += mediaBound(c)
			}
		}
	}
	return n
}

func mediaBound(c *commonv1.Content) int64 {
	switch {
	case c.GetImage() != nil:
		return mediaTokens
	case c.GetDocument() != nil:
		return mediaTokens + documentFactor*int64(len(c.GetDocument().Data))
	default:
		return 0
	}
}

// costOf returns the cost of tokens at the given prices, in billionths of a US
// dollar.
func costOf(tokens int64, price float64) int64 { return int64(math.Ceil(float64(tokens) * price)) }

func reservationID(turn string, n int) string { return turn + ".r" + strconv.Itoa(n) }
