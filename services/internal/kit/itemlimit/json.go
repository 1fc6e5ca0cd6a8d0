package itemlimit

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// CutJSON returns the JSON of a message with every list that is too long cut to one item more than its limit. It returns
// data itself if no list is too long. It leaves other faults of the JSON to the parser.
func CutJSON(data []byte, m protoreflect.MessageDescriptor) []byte {
	p := planOf(m)
	if p == nil {
		return data
	}
	s := scanner{data: data}
	s.message(p)
	return s.cut()
}

// scanner reads JSON and notes what is to be cut. It is at the end of data after a fault.
type scanner struct {
	data []byte
	at   int
	cuts [][2]int // in order, without overlap
	// depth is that of the message at hand.
	depth int
}

// cut returns data without the cuts.
func (s *scanner) cut() []byte {
	if len(s.cuts) == 0 {
		return s.data
	}
	var kept []byte
	from := 0
	for _, c := range s.cuts {
		kept = append(kept, s.data[from:c[0]]...)
		from = c[1]
	}
	return append(kept, s.data[from:]...)
}

// next returns the next byte that is no white space, without taking it; 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take takes the next byte if it is c, and reports whether it was.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// fail ends the scan: the parser finds the fault.
func (s *scanner) fail() { s.at = len(s.data) }

// deepest is how deep lists are judged. Check judges the others.
const deepest = 100

// message reads a JSON object of a message with this plan, or another value.
func (s *scanner) message(p *plan) {
	if s.depth == deepest {
		s.skip()
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	s.object(func(key []byte) {
		if f := p.byName[string(key)]; f != nil {
			s.field(f)
		} else {
			s.skip()
		}
	}, nil)
}

// object calls member at the value of each member, and end behind each one. It skips what is no object.
func (s *scanner) object(member func(key []byte), end func()) {
	if !s.take('{') {
		s.skip()
		return
	}
	for s.next() == '"' {
		key := s.text()
		if !s.take(':') {
			break
		}
		member(key)
		if end != nil {
			end()
		}
		if !s.take(',') {
			break
		}
	}
	if !s.take('}') {
		s.fail()
	}
}

func (s *scanner) field(f *field) {
	switch {
	case f.desc.IsMap():
		l := list{scanner: s, most: f.most}
		s.object(func([]byte) {
			if f.below != nil {
				s.message(f.below)
			} else {
				s.skip()
			}
		}, l.item)
		l.end()
	case f.desc.IsList():
		s.list(f)
	default:
		s.message(f.below)
	}
}

// list reads a JSON array, or another value.
func (s *scanner) list(f *field) {
	if !s.take('[') {
		s.skip()
		return
	}
	l := list{scanner: s, most: f.most}
	for c := s.next(); c != ']' && c != 0; c = s.next() {
		if f.below != nil {
			s.message(f.below)
		} else {
			s.skip()
		}
		l.item()
		if !s.take(',') {
			break
		}
	}
	if !s.take(']') {
		s.fail()
	}
	l.end()
}

// list counts the items of an array or object.
type list struct {
	*scanner
	most, n int
	from    int // where what is cut begins; 0: nothing is cut
	cuts    int // that were there before
}

// item counts an item that ends here. What follows the first item beyond the limit is cut.
func (l *list) item() {
	if l.n++; l.most > 0 && l.n == l.most+1 {
		l.from, l.cuts = l.at, len(l.scanner.cuts)
	}
}

// end cuts, at the end of the array or object.
func (l *list) end() {
	if l.from == 0 || l.n == l.most+1 {
		return
	}
	l.scanner.cuts = append(l.scanner.cuts[:l.cuts], [2]int{l.from, max(l.from, l.at-1)})
}

// text reads a string and returns it; it is empty after a fault.
func (s *scanner) text() []byte {
	from := s.at
	s.skip()
	raw := s.data[from:s.at]
	if bytes.IndexByte(raw, '\\') >= 0 {
		var text string
		_ = json.Unmarshal(raw, &text) // the parser finds the fault
		return []byte(text)
	}
	if len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// skip reads a value of any kind.
func (s *scanner) skip() {
	s.next()
	for depth := 0; s.at < len(s.data); {
		switch c := s.data[s.at]; c {
		case '"':
			s.quoted()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth--; depth < 0 {
				return
			}
			s.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return
			}
			s.at++
			continue
		default:
			s.at++
			if depth == 0 && s.at < len(s.data) && !ends(s.data[s.at]) {
				continue
			}
		}
		if depth == 0 {
			return
		}
	}
}

// ends reports whether a byte ends a number or a word.
func ends(c byte) bool {
	switch c {
	case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// quoted reads a string.
func (s *scanner) quoted() {
	for s.at++; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = min(s.at, len(s.data))
}
