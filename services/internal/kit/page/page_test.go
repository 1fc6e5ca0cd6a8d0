package page_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/internal/kit/page"
)

type cursor struct {
	Seq int64  `json:"s"`
	ID  string `json:"i"`
}

func TestTokenRoundTrip(t *testing.T) {
	want := cursor{Seq: 1 << 60, ID: "sessions/ünïcode"}
	var got cursor
	if err := page.Decode(page.Encode("ListSessions/default", want), "ListSessions/default", &got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := page.Encode("ListSessions/default", cursor{Seq: 7})
	for name, token := range map[string]string{
		"an empty token":                  "",
		"text that is not base64":         "%%%",
		"only a scope":                    good[:10],
		"a token cut short":               good[:len(good)-2],
		"a token with something behind":   good + "AAAA",
		"a token of another tenant":       page.Encode("ListSessions/other", cursor{Seq: 7}),
		"a cursor of another list":        page.Encode("ListSessions/default", map[string]int{"x": 1}),
		"a token longer than any we make": strings.Repeat("A", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			var c cursor
			if err := page.Decode(token, "ListSessions/default", &c); !errors.Is(err, page.ErrBadToken) {
				t.Errorf("Decode(%q) = %v, want ErrBadToken", token, err)
			}
		})
	}
}

func TestSize(t *testing.T) {
	for name, c := range map[string]struct {
		asked int32
		want  int
	}{
		"nothing asked gives the default": {0, 50},
		"a negative size is nothing":      {-1, 50},
		"a size within the limit is kept": {7, 7},
		"a size beyond the limit is cut":  {1 << 30, 1000},
	} {
		if got := page.Size(c.asked, 50, 1000); got != c.want {
			t.Errorf("%s: Size(%d) = %d, want %d", name, c.asked, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("")
	f.Add(page.Encode("s", cursor{Seq: 1, ID: "x"}))
	f.Fuzz(func(t *testing.T, token string) {
		var c cursor
		if err := page.Decode(token, "s", &c); err != nil {
			if !errors.Is(err, page.ErrBadToken) {
				t.Fatalf("error %v is not ErrBadToken", err)
			}
			return
		}
		var again cursor
		if err := page.Decode(page.Encode("s", c), "s", &again); err != nil || again != c {
			t.Fatalf("cursor %+v does not survive: %+v, %v", c, again, err)
		}
	})
}
