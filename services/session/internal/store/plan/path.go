package plan

import (
	"fmt"
	"slices"
	"sync"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// batchBytes is the size of the part of a conversation that one goroutine
// decodes.
const batchBytes = 64 << 10

// Tree decodes a session's messages while the query returns them, and builds
// paths from them. Only one goroutine may use it; it must call Path or Close.
type Tree struct {
	batch   *batch
	batches []*batch
	running sync.WaitGroup
}

// batch is a number of adjacent bodies and their decoded messages.
type batch struct {
	buf      []byte
	ends     []int
	messages []sessionv1.Message
	err      error
}

// Add adds a copy of a body.
func (t *Tree) Add(body []byte) {
	if t.batch == nil {
		t.batch = &batch{buf: make([]byte, 0, max(batchBytes, len(body)))}
	}
	t.batch.buf = append(t.batch.buf, body...)
	t.batch.ends = append(t.batch.ends, len(t.batch.buf))
	if len(t.batch.buf) > batchBytes*7/8 {
		t.decode()
	}
}

func (t *Tree) decode() {
	if t.batch == nil {
		return
	}
	t.batches = append(t.batches, t.batch)
	t.running.Go(t.batch.decode)
	t.batch = nil
}

func (b *batch) decode() {
	b.messages = make([]sessionv1.Message, len(b.ends))
	d := decoder{blocks: make([]*sessionv1.Block, 0, len(b.ends))}
	body := &wireBody{bytes: b.buf, text: string(b.buf)}
	begin := 0
	for i, end := range b.ends {
		if b.err = d.message(body, begin, end, &b.messages[i]); b.err != nil {
			return
		}
		begin = end
	}
	b.buf = nil
}

// Close waits for the decoders.
func (t *Tree) Close() { t.running.Wait() }

// Path returns the path from the root to head. A head that is not in the tree
// is store.ErrNotFound.
func (t *Tree) Path(k store.Key, head string) ([]*sessionv1.Message, error) {
	t.decode()
	t.running.Wait()
	if head == "" {
		return nil, nil
	}
	byName := make(map[string]*sessionv1.Message, len(t.batches)*batchBytes/512)
	for _, b := range t.batches {
		if b.err != nil {
			return nil, b.err
		}
		for i := range b.messages {
			byName[b.messages[i].Name] = &b.messages[i]
		}
	}
	path := make([]*sessionv1.Message, 0, len(byName))
	for name := "sessions/" + k.Session + "/messages/" + head; name != ""; {
		m, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("message %q: %w", name, store.ErrNotFound)
		}
		path = append(path, m)
		name = m.Parent
	}
	slices.Reverse(path)
	return path, nil
}
