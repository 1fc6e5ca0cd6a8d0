package terminal

import (
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestAnswersAreShownInWords(t *testing.T) {
	const accept, decline = commonv1.QuestionAction_QUESTION_ACTION_ACCEPT, commonv1.QuestionAction_QUESTION_ACTION_DECLINE
	for want, a := range map[string]*sessionv1.QuestionResolved{
		`answered by ann: {"port":1}`: {Action: accept, User: "ann", ContentJson: `{"port":1}`},
		"declined by ann":             {Action: decline, User: "ann"},
		"no answer came in time":      {Expired: true},
	} {
		if got := answered(a); got != want {
			t.Errorf("shown as %q, want %q", got, want)
		}
	}
}

func TestArgumentsShowEveryDigit(t *testing.T) {
	for in, want := range map[string]string{
		`{"z": 9007199254740993, "a": [123456789012345678901234567890, 1e400]}`: "a=[123456789012345678901234567890,1e400] z=9007199254740993",
		`{"n": 0.1000000000000000055511151231257827, "m": -0, "o": {"p": 1.0}}`: `m=-0 n=0.1000000000000000055511151231257827 o={"p":1.0}`,
		`{"command": "ls", "n": 1}`:      "ls",
		`{"command": null, "path": "x"}`: "x",
		`{"command": 5}`:                 "command=5",
		`{"command"`:                     `{"command"`,
	} {
		if got := Arguments(in); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}
