package stream

import (
	"io"
	"sync"
)

// counted is an endless file that knows how much of it was read.
type counted struct {
	mu   sync.Mutex
	read int
	done chan struct{}
	shut bool
}

func (c *counted) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return 0, io.ErrClosedPipe
	}
	c.read += len(b)
	return len(b), nil
}

func (c *counted) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// closed is closed with the file.
func (c *counted) closed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made()
}

func (c *counted) made() chan struct{} {
	if c.done == nil {
		c.done = make(chan struct{})
	}
	return c.done
}

func (c *counted) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		c.shut = true
		close(c.made())
	}
	return nil
}
