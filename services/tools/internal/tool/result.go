package tool

import (
	"strings"
	"unicode/utf8"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
)

// MaxTextBytes bounds one text of a result: the contract's own limit of 1 MiB,
// less room for the note that says it was cut.
const MaxTextBytes = 1<<20 - 256

// OK returns the result of a tool that did what it was asked.
func OK(text string) *Result { return textResult(toolsv1.CallOutcome_CALL_OUTCOME_OK, text) }

// Failed returns a result that tells the model what went wrong and what to do.
func Failed(text string) *Result { return textResult(toolsv1.CallOutcome_CALL_OUTCOME_ERROR, text) }

// Ended returns a result with any outcome.
func Ended(outcome toolsv1.CallOutcome, text string) *Result { return textResult(outcome, text) }

// Image returns a result that shows the model an image.
func Image(mediaType, title string, data []byte) *Result {
	return &Result{
		Outcome: toolsv1.CallOutcome_CALL_OUTCOME_OK,
		Content: []*commonv1.Content{{Kind: &commonv1.Content_Image{Image: &commonv1.Media{
			MediaType: mediaType, Title: clip(title, 200), Data: data,
		}}}},
	}
}

func textResult(outcome toolsv1.CallOutcome, text string) *Result {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > MaxTextBytes {
		cut := MaxTextBytes
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "\n[The result is longer than a result may be; the rest was left out.]"
	}
	r := &Result{Outcome: outcome}
	if text != "" {
		r.Content = []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: text}}}}
	}
	return r
}

// Text joins the texts of a result.
func Text(r *Result) string {
	var b strings.Builder
	for _, c := range r.GetContent() {
		b.WriteString(c.GetText().GetText())
	}
	return b.String()
}

// clip shortens a text for a message, at a character boundary.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
