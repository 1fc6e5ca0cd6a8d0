package conversation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// heavy is a store in which a search finds 60 messages. Their ids count from 001, and every tenth has 300 KB.
type heavy struct{ store.Store }

func (heavy) SearchMessages(_ context.Context, s store.MessageSearch) (all []*sessionv1.Message, _ error) {
	last, _ := strconv.Atoi(strings.TrimLeft(s.AfterMessage, "0"))
	for n := last + 1; n <= 60 && len(all) < s.Limit; n++ {
		text := "word"
		if n%10 == 0 {
			text = strings.Repeat("word ", 300<<10/5)
		}
		content := &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}
		all = append(all, &sessionv1.Message{
			Name: fmt.Sprintf("sessions/s/messages/%03d", n), CreateTime: timestamppb.Now(), Blocks: []*sessionv1.Block{{Kind: &sessionv1.Block_Content{Content: content}}},
		})
	}
	return all, nil
}

// Snippets are short, so that their size does not bound how many long messages are read for a page.
func TestAPageOfASearchEndsAtTheSizeOfItsMessages(t *testing.T) {
	answer, err := New(&Config{Store: heavy{}}).SearchMessages(principal.With(t.Context(), principal.Default()), &sessionv1.SearchMessagesRequest{Query: "word", PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	// Every tenth message has 300 KB.
	if n := len(answer.Messages); n != 39 || answer.NextPageToken == "" {
		t.Errorf("a page has %d messages, with the token %q", n, answer.NextPageToken)
	}
}
