package codec

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

func TestHalfOfASurrogatePairIsNamedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ body, field, says string }{
		{`{"text":"a\ud83d"}`, "text", `line 1, column 11: \ud83d is half`},
		{`{"text":"\uDE00a"}`, "text", `line 1, column 10: \uDE00 is half`},
		{`{"text":"\ud83dx\ude00"}`, "text", `column 10: \ud83d`},
		{`{"text":"\ud83d\ud83d\ude00"}`, "text", `column 10: \ud83d`},
		{`{"text":"\\\ud83d"}`, "text", `column 12`},
		{"{\"text\": \"m\",\n \"content\": [{\"text\": {\"text\": \"b\"}},\n  {\"text\": {\"text\": \"\\ud83d\"}}]}", "content[1].text.text", `line 3, column 22`},
		{`{"clientTools":[{"name":"x"},{"name":"y","description":"\ud83d"}]}`, "clientTools[1].description", "column"},
		{`{"text\ud83d":"x"}`, "", "column 7"},
	} {
		err := Unmarshal([]byte(c.body), &sessionv1.CreateTurnRequest{})
		field := ""
		if bad, ok := apierr.Detail[*errdetails.BadRequest](err); ok {
			field = bad.GetFieldViolations()[0].GetField()
		}
		if msg := apierr.Message(err); field != c.field || !strings.Contains(msg, c.says) || !strings.Contains(msg, "surrogate pair") {
			t.Errorf("%s: field %q, message %q", c.body, field, msg)
		}
	}
	for _, body := range []string{`{"text":"\ud83d\ude00"}`, `{"text":"\\ud83d"}`, `{"text":"\\\\ud83d \\n"}`} {
		if err := Unmarshal([]byte(body), &sessionv1.CreateTurnRequest{}); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for body, says := range map[string]string{
		`{"text":"\ud83d\ude00`: "it ends in the middle", `{"text":"`: "it ends in the middle", `{"text":"\u12"}`: "invalid escape", `{"text":"\ud8"}`: "invalid escape",
	} {
		if msg := apierr.Message(Unmarshal([]byte(body), &sessionv1.CreateTurnRequest{})); !strings.Contains(msg, says) {
			t.Errorf("%s: %q", body, msg)
		}
	}
	if msg := apierr.Message(UnmarshalInput(2, []byte(`{"createTurn":{"text":"\ud83d"}}`), &sessionv1.ConverseRequest{})); !strings.Contains(msg, "input 2: line 1, column 24") {
		t.Errorf("an input: %q", msg)
	}
}
