package policy

import (
	"strconv"
	"strings"
	"testing"
)

func TestACacheIsBoundedByItsBytes(t *testing.T) {
	var c cache[int]
	held := func() (n int) {
		for _, generation := range []map[string]int{c.new, c.old} {
			for key := range generation {
				n += len(key)
			}
		}
		return n
	}
	for i := range 200 {
		c.put(strconv.Itoa(i)+strings.Repeat("x", 200<<10), i)
		if n := held(); n > 2*cachedBytes {
			t.Fatalf("%d keys hold %d bytes", i, n)
		}
	}
	if v, ok := c.get("199" + strings.Repeat("x", 200<<10)); !ok || v != 199 {
		t.Error("the last one is gone")
	}
	if c.put(strings.Repeat("x", cachedBytes), 1); held() > 2*cachedBytes {
		t.Errorf("they hold %d bytes", held())
	}
}
