package turn

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
)

// What a request may have beyond its text, in tokens, generously.
const (
	requestTokens = 1024   // what a provider adds to a request with tools
	messageTokens = 32     // and to each message and tool
	mediaTokens   = 10_000 // an image, whatever its size in bytes
	// documentFactor is how many tokens a byte of a document may become: the text
	// in it is compressed.
	documentFactor = 4
)

// request is a model request, as far as its size goes.
type request struct {
	model       string
	fixed       int64 // of the system prompt and the tools
	messages    int
	first, last string // messages
	tokens      int64  // its real size, once it is known
}

// inputBound bounds the input of a request, in tokens, from above. A token is at
// least a byte. Where the request only continues the one before it, of which the
// provider has told the size, that part counts as what it was.
func (w *Worker) inputBound(r model.Request) int64 {
	fixed := int64(len(r.System) + requestTokens)
	for _, t := range r.Tools {
		fixed += int64(len(t.Name)+len(t.Description)+len(t.InputSchema)) + messageTokens
	}
	w.asking = request{model: r.Model, fixed: fixed, messages: len(r.Messages)}
	if n := len(r.Messages); n > 0 {
		w.asking.first, w.asking.last = r.Messages[0].Name, r.Messages[n-1].Name
	}
	if m := w.measured; m.tokens > 0 && m.beginning(r, fixed) {
		return m.tokens + messagesBound(r.Messages[m.messages:])
	}
	return fixed + messagesBound(r.Messages)
}

// beginning says whether another request begins with this one.
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

// costOf is what tokens cost at a price for each, in billionths of a US dollar.
func costOf(tokens int64, price float64) int64 { return int64(math.Ceil(float64(tokens) * price)) }

func reservationID(turn string, n int) string { return turn + ".r" + strconv.Itoa(n) }
