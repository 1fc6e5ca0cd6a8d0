package model

import (
	"net/http"
	"regexp"
)

// Providers have no common code for what they do not like, only words. In doubt a
// refusal is about something else: what is withheld in error is lost to the model.
var (
	mediaWords  = regexp.MustCompile(`(?i)(?:\b|_)(?:images?|pictures?|photos?|vision|multi-?modal|modalit(?:y|ies)|pdfs?|documents?|base64|pixels?|attachments?|data[ -]?ur[il]s?)(?:\b|_)`)
	filterWords = regexp.MustCompile(`(?i)\bcontent[ _-]?(?:filter(?:ed|ing)?|policy|management)\b`)
	textWords   = regexp.MustCompile(`(?i)\b(?:unicode|utf-?8|surrogates?|null (?:byte|char\w*)|control char\w*|invalid char\w*|string too long|string_above_max_length)\b|\\u0000`)
	otherWords  = regexp.MustCompile(`(?i)\btools?\b|\btool_(?:use|call|choice)|\b(?:functions?|schema|max_(?:completion_)?tokens|temperature|top_[kp]|reasoning|thinking|signature|parameters?)\b` +
		`|\b(?:api|access)[ _-]?key\b|\b(?:quotas?|billing|credits?|rate[ _-]?limits?|permissions?|licen[cs]e|account|organi[sz]ation|project|regions?|provisioned)\b` +
		`|\bunknown model\b|model_not_found|\bno such model\b|\b(?:not found|does not exist|retired|deprecated|decommissioned|not available|overloaded|retry|try again)\b`)
	// advice is where to read more, which is no reason.
	advice = regexp.MustCompile(`(?i)https?://\S+|(?:^|[.;:,(])\s*(?:please )?(?:see|refer to|consult|check|visit)\b.*`)
	// noReason are all the words of a refusal without a reason.
	noReason = regexp.MustCompile(`(?i)^\W*(?:(?:error|400|bad[ _]request|invalid[ _]request(?:[ _]error)?|unprocessable entity|provider returned error|the request is invalid)\W*)*$`)
)

// refuses reports whether the request itself is refused, and by nothing that is known
// to be of another kind. A status of 0 is that of an error within an answer.
func (e *Error) refuses() bool {
	switch e.Status {
	case 0, http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return e.Kind == Refused && !otherWords.MatchString(e.reason())
	}
	return false
}

func (e *Error) reason() string { return advice.ReplaceAllString(e.ProviderText, "") }

// AboutMedia reports whether the provider names an image or a document as the reason.
func (e *Error) AboutMedia() bool { return e.refuses() && mediaWords.MatchString(e.reason()) }

// Filtered reports whether the provider's filter holds a text.
func (e *Error) Filtered() bool { return e.refuses() && filterWords.MatchString(e.reason()) }

// AboutText reports whether the provider names a text as the reason.
func (e *Error) AboutText() bool {
	return e.Filtered() || e.refuses() && textWords.MatchString(e.reason())
}

// Unexplained reports whether the provider refuses a request and gives no reason.
func (e *Error) Unexplained() bool {
	return e.Status != 0 && e.refuses() && noReason.MatchString(e.ProviderText)
}
