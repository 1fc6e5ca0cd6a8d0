package transport

import "github.com/fairlead/fairlead/services/session/internal/model"

// gather joins adjacent pieces of a block. A read of a busy stream brings
// several, and each emitted piece becomes an event that is stored and sent.
type gather struct {
	emit func(model.Delta) error
	held model.Delta // its kind is that of a piece; Text is in text
	text []byte
	err  error // of emit; it ends the stream
}

// Gather returns an emit that holds pieces back until another kind of piece comes,
// or the next read of the stream, whichever is first. It must be called before the
// stream is read.
func (w *Watch) Gather(emit func(model.Delta) error) func(model.Delta) error {
	w.gathered.emit = emit
	return w.gathered.add
}

func (g *gather) add(d model.Delta) error {
	switch d.Kind {
	case model.TextDelta, model.ThinkingDelta, model.ToolUseDelta:
		if len(g.text) > 0 && g.held.Kind == d.Kind && g.held.Block == d.Block {
			g.text = append(g.text, d.Text...)
			return g.err
		}
		if err := g.flush(); err != nil {
			return err
		}
		g.held, g.text = d, append(g.text, d.Text...)
		return nil
	}
	if err := g.flush(); err != nil {
		return err
	}
	g.err = g.emit(d)
	return g.err
}

// flush emits what is held.
func (g *gather) flush() error {
	if g.err != nil || len(g.text) == 0 {
		return g.err
	}
	d := g.held
	d.Text = string(g.text)
	g.text = g.text[:0]
	g.err = g.emit(d)
	return g.err
}
