package server

import (
	"testing"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/directory"
	"github.com/fairlead/fairlead/services/session/internal/model/catalog"
)

// Snippets are short, so that their size does not bound how many long messages are read for a page.
func TestAPageOfASearchEndsAtTheSizeOfItsMessages(t *testing.T) {
	s := New(Config{Directory: directory.New(directory.Config{Models: &catalog.Catalog{}}), Store: &heavy{}})
	answer, err := s.SearchMessages(principal.With(t.Context(), principal.Default()), &sessionv1.SearchMessagesRequest{Query: "word", PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	// Every tenth message has 300 KB.
	if n := len(answer.Messages); n != 39 || answer.NextPageToken == "" {
		t.Errorf("a page has %d messages, with the token %q", n, answer.NextPageToken)
	}
}
