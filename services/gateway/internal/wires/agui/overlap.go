package agui

// match finds the longest beginning of some texts at the end of others, which come one after the other (the algorithm of
// Knuth, Morris and Pratt).
type match struct {
	texts []string
	// shorter has, for each beginning of the texts, the next shorter one that is also at its end.
	shorter []int
	// have is the length of the longest beginning at the end of what has come.
	have int
}

func newMatch(texts []string) *match {
	m := &match{texts: texts, shorter: make([]int, len(texts))}
	for i := 1; i < len(texts); i++ {
		m.next(texts[i])
		m.shorter[i] = m.have
	}
	m.have = 0
	return m
}

// next takes a text.
func (m *match) next(text string) {
	for m.have > 0 && (m.have == len(m.texts) || m.texts[m.have] != text) {
		m.have = m.shorter[m.have-1]
	}
	if m.have < len(m.texts) && m.texts[m.have] == text {
		m.have++
	}
}
