package operation

// Sizes of the stored output of an operation. The tail is long enough for a
// model that looks now and then; a command whose whole output matters must
// write it to a file.
const (
	headBytes = 16 << 10
	tailBytes = 48 << 10
)

// output keeps the beginning and the end of an operation's output.
type output struct {
	head  []byte
	tail  []byte // the last tailBytes behind the head, and up to as many before them
	total int64
}

func (o *output) add(p []byte) {
	o.total += int64(len(p))
	n := min(len(p), headBytes-len(o.head))
	o.head = append(o.head, p[:n]...)
	o.tail = append(o.tail, p[n:]...)
	if len(o.tail) > 2*tailBytes {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-tailBytes:]...)
	}
}

// end returns a copy of the tail, within its size.
func (o *output) end() []byte {
	return append([]byte(nil), o.tail[max(0, len(o.tail)-tailBytes):]...)
}

// From returns the stored output from a position on, and how many bytes are
// left out.
func From(head, tail []byte, total, place int64) (text []byte, omitted int64) {
	place = min(max(place, 0), total)
	first := total - int64(len(tail)) // position of the tail
	if place < int64(len(head)) {
		text = append(text, head[place:]...)
		return append(text, tail...), first - int64(len(head))
	}
	if place < first {
		return tail, first - place
	}
	return tail[place-first:], 0
}
