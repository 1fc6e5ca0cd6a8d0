package files

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// bytePair finds a text by two of its bytes at once, eight places at a time. Even if none of a text's bytes is
// rare, the pair is. Without it the bench row "Grep in 10,000 files" takes 1.7 instead of 1.1 to 1.4 times
// ripgrep's time.
type bytePair struct {
	first, second int    // their places in the text, in order
	a, b          uint64 // each byte, eight times
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// newBytePair makes the pair of the bytes at two different places of a text.
func newBytePair(text string, i, j int) bytePair {
	i, j = min(i, j), max(i, j)
	return bytePair{first: i, second: j, a: ones * uint64(text[i]), b: ones * uint64(text[j])}
}

// skip returns the first place from at on, in steps of eight, where there may be a match.
func (t *bytePair) skip(behind, ahead []byte, at int) int {
	a, b := t.a, t.b
	for ; at+32 <= len(ahead) && at+32 <= len(behind); at += 32 {
		p, q := (*[32]byte)(behind[at:]), (*[32]byte)(ahead[at:])
		w := (binary.LittleEndian.Uint64(p[0:]) ^ a) | (binary.LittleEndian.Uint64(q[0:]) ^ b)
		x := (binary.LittleEndian.Uint64(p[8:]) ^ a) | (binary.LittleEndian.Uint64(q[8:]) ^ b)
		y := (binary.LittleEndian.Uint64(p[16:]) ^ a) | (binary.LittleEndian.Uint64(q[16:]) ^ b)
		z := (binary.LittleEndian.Uint64(p[24:]) ^ a) | (binary.LittleEndian.Uint64(q[24:]) ^ b)
		if ((w-ones)&^w|(x-ones)&^x|(y-ones)&^y|(z-ones)&^z)&highs != 0 {
			break
		}
	}
	return at
}

// index returns where what, which contains the two bytes, first occurs in a text, or -1.
func (t *bytePair) index(text []byte, what string) int {
	if len(text) < len(what) {
		return -1
	}
	ahead, behind := text[t.second:], text[t.first:]
	behind = behind[:len(ahead)]
	at := 0
	for at+8 <= len(ahead) {
		at = t.skip(behind, ahead, at)
		if at+8 > len(ahead) {
			break
		}
		// A byte is zero where both bytes match.
		x := (binary.LittleEndian.Uint64(behind[at:]) ^ t.a) | (binary.LittleEndian.Uint64(ahead[at:]) ^ t.b)
		// The lowest set bit marks such a byte; higher ones may be false.
		for hits := (x - ones) &^ x & highs; hits != 0; hits &= hits - 1 {
			start := at + bits.TrailingZeros64(hits)/8
			if len(text)-start >= len(what) && string(text[start:start+len(what)]) == what {
				return start
			}
		}
		at += 8
	}
	if i := bytes.Index(text[at:], []byte(what)); i >= 0 {
		return at + i
	}
	return -1
}
