package verdict

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestSplitFindsTheHeaderOfAMessage(t *testing.T) {
	complete, partial := sessionv1.TurnState_TURN_STATE_COMPLETE, sessionv1.TurnState_TURN_STATE_PARTIAL
	long := strings.Repeat("r", maxReason)
	for name, tt := range map[string]struct {
		text string
		want *Verdict
		rest string
	}{
		"a status":                         {"request_status: COMPLETE\n\nDone.", &Verdict{State: complete}, "Done."},
		"a status and a reason":            {"request_status: PARTIAL\nreason: no tests\n\nHalf.", &Verdict{State: partial, Summary: "no tests"}, "Half."},
		"only the first empty line goes":   {"request_status: COMPLETE\n\n\nDone.", &Verdict{State: complete}, "\nDone."},
		"a text that ends in the header":   {"request_status: PARTIAL\nreason: no tests", &Verdict{State: partial, Summary: "no tests"}, ""},
		"a text that ends with the status": {"request_status: COMPLETE", &Verdict{State: complete}, ""},
		"the longest reason":               {"request_status: PARTIAL\nreason: " + long + "\n\nx", &Verdict{State: partial, Summary: long}, "x"},
		"too long a reason":                {"request_status: PARTIAL\nreason: " + long + "r\n\nx", nil, ""},
		"no header":                        {"Done.", nil, ""},
		"an unknown status":                {"request_status: DONE\n\nx", nil, ""},
		"an unknown field":                 {"request_status: COMPLETE\nmood: good\n\nx", nil, ""},
		"no empty line":                    {"request_status: COMPLETE\nDone.", nil, ""},
		"no empty line after the reason":   {"request_status: PARTIAL\nreason: x\nDone.", nil, ""},
		"something before it":              {" request_status: COMPLETE\n\nx", nil, ""},
		"half of a status at the end":      {"request_status: COMPL", nil, ""},
		"half of a reason at the end":      {"request_status: PARTIAL\nreas", nil, ""},
		"nothing":                          {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, rest := Split(tt.text)
			if tt.want == nil {
				tt.rest = tt.text
			}
			if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want || rest != tt.rest {
				t.Errorf("got %+v and %q, want %+v and %q", got, rest, tt.want, tt.rest)
			}
		})
	}
}

// The header's grammar, written down a second time: all of one, and every
// beginning of one.
var (
	whole     = regexp.MustCompile(`\Arequest_status: (COMPLETE|PARTIAL|FAILED)\n(reason: [^\n]{0,1000}\n)?\n`)
	beginning = regexp.MustCompile(`\Arequest_status: (COMPLETE|PARTIAL|FAILED)\n(reason: [^\n]{0,1000}\n?)?\z`)
)

func mayBecomeHeader(s string) bool {
	if beginning.MatchString(s) {
		return true
	}
	for _, status := range []string{"COMPLETE", "PARTIAL", "FAILED"} {
		if strings.HasPrefix("request_status: "+status+"\nreason: ", s) {
			return true
		}
	}
	return false
}

// drawText makes texts that have a header, nearly have one, or have none.
func drawText(t *rapid.T) string {
	piece := rapid.SampledFrom([]string{
		"request_status: ", "request_status:", "COMPLETE", "PARTIAL", "FAILED", "\n", "\n\n", "reason: ", "reason:", "because ä", " ", "Done.", "mood: ", "COM",
	})
	var b strings.Builder
	if rapid.Bool().Draw(t, "good beginning") {
		b.WriteString("request_status: PARTIAL\n")
	}
	for _, p := range rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces") {
		b.WriteString(p)
	}
	return b.String()
}

func TestAFilterHoldsBackOnlyWhatMayBecomeAHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		// Every beginning of the text, in one piece: what is shown at once.
		for n := range len(text) + 1 {
			var f Filter
			shown := f.Add(text[:n])
			want := text[:n]
			switch at := whole.FindStringIndex(want); {
			case at != nil:
				want = want[at[1]:]
			case mayBecomeHeader(want):
				want = ""
			}
			if shown != want {
				t.Fatalf("of %q there is shown %q, want %q", text[:n], shown, want)
			}
		}
	})
}

func TestAFilterShowsTheSameHoweverTheTextIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		_, want := Split(text)
		for cut := range len(text) + 1 { // every single cut
			var f Filter
			if got := f.Add(text[:cut]) + f.Add(text[cut:]) + f.Close(); got != want {
				t.Fatalf("%q cut at %d shows %q, want %q", text, cut, got, want)
			}
		}
		var f Filter // and any number of them
		var shown strings.Builder
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			shown.WriteString(f.Add(rest[:n]))
			rest = rest[n:]
		}
		if got := shown.String() + f.Close(); got != want {
			t.Fatalf("%q in pieces shows %q, want %q", text, got, want)
		}
	})
}
