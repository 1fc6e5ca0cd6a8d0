package permission

import "slices"

// doubtful reports whether a rule may match a command although its text does not: words are not literal, or options stand
// before the subcommand.
func doubtful(words []word) bool {
	g := grammarOf(words)
	for _, w := range words[1:] {
		if !w.known {
			return true
		}
		if g != nil {
			if least, _ := g.skips(w); least > 0 {
				return true
			}
		}
	}
	return false
}

// positions are places in a pattern, before each of its symbols and at the end.
type positions []bool

// walk follows a pattern along the words of a command. It keeps every place of the pattern that some value of the words
// leads to, so the work is the product of the two lengths at most.
type walk struct {
	p     *pattern
	meter *meter
	next  positions
	found bool // an open pattern has matched, whatever follows
}

// mayMatch reports whether a pattern matches a command for some value of the words that are not literal, with or without
// the options that the grammar of the program skips.
func (p *pattern) mayMatch(words []word, m *meter) bool {
	size := len(p.symbols) + 1
	w := &walk{p: p, meter: m, next: make(positions, size)}
	g := grammarOf(words)
	// The places before a word, and before the two that follow.
	at := [3]positions{make(positions, size), make(positions, size), make(positions, size)}
	at[0][0] = true
	w.close(at[0])
	for i := range words {
		if w.word(at[0], at[1], words[i], i > 0); w.found {
			return true
		}
		if f := words[i].shape; f != nil && f.gone && i > 0 {
			merge(at[1], at[0])
		}
		if g != nil && i > 0 {
			least, most := g.skips(words[i])
			if least == 1 {
				merge(at[1], at[0])
			}
			if most == 2 {
				merge(at[2], at[0])
				if i+1 < len(words) && (g.defines(words[i], words[i+1]) || !words[i+1].known && words[i+1].shape.several()) {
					w.anything(at[2]) // behind the value, words of which nothing is known
				}
			}
		}
		if p.open && at[1][size-1] {
			return true
		}
		clear(at[0])
		at[0], at[1], at[2] = at[1], at[2], at[0]
		if !slices.Contains(at[0], true) && !slices.Contains(at[1], true) {
			return false
		}
	}
	return at[0][size-1] || p.open && at[1][size-1]
}

// word adds to a set the places behind one word.
func (w *walk) word(before, behind positions, this word, separated bool) {
	now := slices.Clone(before)
	for {
		if separated {
			w.text(now, " ")
		}
		w.pieces(now, this)
		if w.found || !merge(behind, now) || this.shape == nil || !this.shape.again {
			return
		}
		copy(now, behind)
	}
}

func (w *walk) pieces(now positions, this word) {
	if this.known {
		w.text(now, shown(this))
		return
	}
	for _, p := range this.shape.pieces {
		switch p.kind {
		case fixed:
			w.text(now, p.text)
		case open:
			w.within(now)
		default:
			w.anything(now)
		}
	}
}

// text moves all places by a text.
func (w *walk) text(now positions, s string) {
	last := len(now) - 1
	for i := 0; i < len(s) && !w.found; i++ {
		if !w.meter.spend(len(now)) {
			w.found = true
			return
		}
		w.found = w.p.open && s[i] == ' ' && now[last]
		clear(w.next)
		some := false
		for j, on := range now[:last] {
			if !on {
				continue
			}
			switch symbol := w.p.symbols[j]; symbol {
			case star:
				w.next[j], some = true, true
			case int16(s[i]):
				w.next[j+1], some = true, true
			}
		}
		copy(now, w.next)
		if !some {
			return
		}
		w.close(now)
	}
}

// close adds the places behind wildcards, which may stand for nothing.
func (w *walk) close(now positions) {
	for j, symbol := range w.p.symbols {
		if symbol == star && now[j] {
			now[j+1] = true
		}
	}
}

// within adds the places that a text within one word leads to: it passes a space of the pattern only behind a quote.
func (w *walk) within(now positions) {
	w.meter.spend(len(now))
	on, quoted := false, false
	for j, symbol := range w.p.symbols {
		if now[j] {
			on = true
		} else if on {
			now[j] = true
		}
		switch {
		case !on:
		case symbol == '\'' || symbol == '"' || symbol == '\\':
			quoted = true
		case symbol == ' ' && !quoted:
			on = false
		}
	}
	if on {
		now[len(now)-1] = true
	}
}

// anything adds all places behind the first one.
func (w *walk) anything(now positions) {
	w.meter.spend(len(now))
	first := slices.Index(now, true)
	if first < 0 {
		return
	}
	w.found = w.found || w.p.open
	for j := first; j < len(now); j++ {
		now[j] = true
	}
}

// merge adds places to a set, and reports whether the set has grown.
func merge(to, from positions) (grown bool) {
	for j, on := range from {
		if on && !to[j] {
			to[j], grown = true, true
		}
	}
	return grown
}
