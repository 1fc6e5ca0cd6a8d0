package model

import (
	"net/http"
	"regexp"
)

// Providers have no common code for refused content, only words.
var (
	mediaWords = regexp.MustCompile(`(?i)image|picture|photo|vision|modal|media|pdf|document|base64|pixel|attachment|data.?ur[il]|content.?(part|type)`)
	textWords  = regexp.MustCompile(`(?i)content.?(filter|policy|management)|moderation|safety|unicode|utf-?8|surrogate|null (byte|char)|\\u0000|control char|invalid char|too long|above_max_length|messages?[\[.]\d+[\].]+content`)
	otherWords = regexp.MustCompile(`(?i)\btools?\b|tool_(use|call|choice)|function|schema|max_(completion_)?tokens|temperature|reasoning|thinking|signature|parameter|unknown model|model_not_found|does not exist`)
)

// AboutMedia reports whether the provider names an image or a document as the reason.
func (e *Error) AboutMedia() bool {
	return (e.Kind == Refused || e.Kind == Unavailable && e.Status >= 500) && mediaWords.MatchString(e.Message)
}

// AboutText reports whether the provider names a text as the reason.
func (e *Error) AboutText() bool {
	return e.Kind == Refused && textWords.MatchString(e.Message) && !otherWords.MatchString(e.Message)
}

// Unexplained reports whether the provider refuses a request without a known reason.
func (e *Error) Unexplained() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return e.Kind == Refused && !textWords.MatchString(e.Message) && !otherWords.MatchString(e.Message)
	}
	return false
}
