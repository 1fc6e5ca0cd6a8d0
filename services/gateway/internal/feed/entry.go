package feed

import (
	"sync"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/jsontext"
)

// Entry is an event of a feed, which its followers share.
type Entry struct {
	Event *sessionv1.Event

	size   int
	mu     sync.Mutex
	frames map[string]frame
}

type frame struct {
	data []byte
	err  error
}

// Frame returns the event in a form, such as that of server-sent events. encode makes it of the event's JSON, once for
// all followers. The caller must not change it.
func (e *Entry) Frame(form string, encode func(e *sessionv1.Event, json []byte) []byte) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.frames[form]; ok {
		return f.data, f.err
	}
	var f frame
	data, err := jsontext.AppendMessage(nil, e.Event)
	if f.err = err; err == nil {
		f.data = encode(e.Event, data)
	}
	if e.frames == nil {
		e.frames = map[string]frame{}
	}
	e.frames[form] = f
	return f.data, f.err
}
