// Package wiretest makes logs for the tests of wires.
package wiretest

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// Log makes a log of bodies as JSON. "@t2" before one names its turn; without, it is t1.
func Log(t *testing.T, bodies ...string) []*sessionv1.Event {
	t.Helper()
	var out []*sessionv1.Event
	for i, body := range bodies {
		turn := "t1"
		if rest, ok := strings.CutPrefix(body, "@"); ok {
			turn, body, _ = strings.Cut(rest, " ")
		}
		e := &sessionv1.Event{}
		if err := protojson.Unmarshal([]byte(body), e); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		e.FirstSeq, e.Seq, e.Turn = int64(i+1), int64(i+1), "sessions/s/turns/"+turn
		e.Time = timestamppb.New(time.Unix(int64(1000+i), 0))
		out = append(out, e)
	}
	return out
}
