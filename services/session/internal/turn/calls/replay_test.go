package calls

import (
	"strings"
	"testing"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

func output(stream, data string) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Output{Output: &toolsv1.CallOutput{Stream: stream, Data: []byte(data)}}}
}

func progress(message string) *toolsv1.CallToolResponse {
	return &toolsv1.CallToolResponse{Kind: &toolsv1.CallToolResponse_Progress{Progress: &toolsv1.CallProgress{Message: message}}}
}

func TestAnAttachedStreamBringsOnlyWhatTheLogLacks(t *testing.T) {
	pieces := []*toolsv1.CallToolResponse{output("stdout", "abc"), progress("one"), output("stderr", "xy"), output("stdout", "def"), progress("two")}
	for name, c := range map[string]struct {
		log  *logged
		want string
	}{
		"nothing is logged":      {newLogged(), "abc,one,xy,def,two"},
		"a part of a piece is":   {&logged{bytes: map[string]int64{"stdout": 4}}, "one,xy,ef,two"},
		"one message is":         {&logged{bytes: map[string]int64{"stdout": 3}, progress: 1}, "xy,def,two"},
		"all is":                 {&logged{bytes: map[string]int64{"stdout": 6, "stderr": 2}, progress: 2}, ""},
		"the log cannot be read": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for range 2 { // a stream that breaks off is replaced by another one
				r := &replay{log: c.log, at: newLogged()}
				for _, p := range pieces {
					e := r.unlogged("c", p)
					if d := e.GetToolCallOutputDelta(); d != nil {
						got = append(got, string(d.Data))
					}
					if p := e.GetToolCallProgress(); p != nil {
						got = append(got, p.Message)
					}
				}
			}
			if strings.Join(got, ",") != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
