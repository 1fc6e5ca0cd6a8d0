package prompt

import (
	"encoding/json"
	"testing"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{
		"plain", `"quoted" and \back\`, "lines\nand\ttabs\r\n", "\x00\x01\x1f\x7f", "<b>&amp;</b>", "\u2028", "cut \xf0\x9f\x98", "\xed\xa0\x80", "e\u0301",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		ours := AppendString(nil, s)
		if err := json.Unmarshal(ours, &got); err != nil || got != want {
			t.Errorf("%q is written as %s, which reads %q (%v)", s, ours, got, err)
		}
	})
}
