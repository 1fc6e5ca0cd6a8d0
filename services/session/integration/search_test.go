package integration

import (
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session"
)

func TestMessagesOfEndedTurnsAreFound(t *testing.T) {
	t.Parallel()
	f := start(t, hello)
	ctx := t.Context()
	one, two := f.session(ctx, t), f.session(ctx, t)
	f.turn(ctx, t, one, strings.Repeat("filler ", 100)+"Gürteltier"+strings.Repeat(" ü", 400))
	f.turn(ctx, t, two, "noch ein GÜRTELTIER")
	find := func(r *sessionv1.SearchMessagesRequest) *sessionv1.SearchMessagesResponse {
		t.Helper()
		resp, err := f.SearchMessages(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	eventually(t, "both are found", func() bool {
		return len(find(&sessionv1.SearchMessagesRequest{Query: "gürtel*"}).Messages) == 2
	})
	all := find(&sessionv1.SearchMessagesRequest{Query: "gürteltier"}).Messages
	if !strings.HasPrefix(all[0].Message, two+"/messages/") || !strings.HasPrefix(all[0].Turn, two+"/turns/") ||
		all[0].Role != sessionv1.Role_ROLE_USER || all[0].Snippet != "noch ein GÜRTELTIER" || !all[0].CreateTime.IsValid() {
		t.Errorf("the newest is %v", all[0])
	}
	if s := all[1].Snippet; utf8.RuneCountInString(s) != 300 || !strings.Contains(s, "Gürteltier") || !utf8.ValidString(s) {
		t.Errorf("the snippet is %q", s)
	}
	if got := find(&sessionv1.SearchMessagesRequest{Query: "gürteltier", Session: one}).Messages; len(got) != 1 || got[0].Message != all[1].Message {
		t.Errorf("of one session: %v", got)
	}
	first := find(&sessionv1.SearchMessagesRequest{Query: "gürteltier", PageSize: 1})
	rest := find(&sessionv1.SearchMessagesRequest{Query: "gürteltier", PageSize: 1, PageToken: first.NextPageToken})
	if len(first.Messages) != 1 || len(rest.Messages) != 1 || rest.Messages[0].Message != all[1].Message || rest.NextPageToken != "" {
		t.Errorf("pages %v and %v", first, rest)
	}
	for name, r := range map[string]*sessionv1.SearchMessagesRequest{
		"BAD_PAGE_TOKEN":    {Query: "another", PageToken: first.NextPageToken},
		"INVALID_REQUEST":   {Query: "?! *"},
		"SESSION_NOT_FOUND": {Query: "x", Session: "sessions/none"},
	} {
		if _, err := f.SearchMessages(ctx, r); apierr.Reason(err) != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.SearchMessages(ctx, &sessionv1.SearchMessagesRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("nothing to look for: %v", err)
	}
}

func TestAFollowerResumesInsideAFoldedEvent(t *testing.T) {
	t.Parallel()
	f := start(t, `
turns:
  - steps: [{text: [one, " two", " three", " four", " five", " six", " seven", " eight"], delay: 5ms}]
`, func(c *session.Config) { c.FoldAfter = 0 })
	ctx := t.Context()
	s := f.session(ctx, t)
	var deltas []*sessionv1.Event
	for tries := 0; len(deltas) < 2; tries++ { // a busy machine may commit all words of a turn at once
		if tries == 20 {
			t.Fatal("the words of twenty turns were each committed at once")
		}
		deltas = nil
		for _, e := range f.turn(ctx, t, s, "hi") {
			if e.GetTextDelta() != nil {
				deltas = append(deltas, e)
			}
		}
	}
	var folded *sessionv1.Event
	eventually(t, "the deltas are folded", func() bool {
		resp, err := f.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: s, AfterSeq: deltas[0].Seq, PageSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		folded = resp.Events[0]
		return folded.FirstSeq == deltas[0].FirstSeq
	})
	var text strings.Builder
	for _, e := range deltas {
		text.WriteString(e.GetTextDelta().Text)
	}
	if folded.Seq != deltas[len(deltas)-1].Seq || folded.GetTextDelta().GetText() != text.String() {
		t.Errorf("folded into %v", folded)
	}
	stream, err := f.StreamEvents(ctx, &sessionv1.StreamEventsRequest{Parent: s, AfterSeq: deltas[0].Seq})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := stream.Recv(); err != nil || resp.GetEvent().GetFirstSeq() != folded.FirstSeq || resp.GetEvent().GetSeq() != folded.Seq {
		t.Errorf("the stream begins with %v, %v", resp, err)
	}
}
