package transport

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// ErrorReport is an error as a provider reports it.
type ErrorReport struct {
	// Message is the provider's own text, not yet fit for people: see Quote.
	Message string
	// Status is the HTTP status of 400 and above that the body names, or 0.
	Status int
	// Page is set for a web page; Message is then its title.
	Page bool

	words []string // codes and types: lower case, letters only
}

// ReportedError is a provider's error, as the cause of the model's error.
type ReportedError struct{ ErrorReport }

// Error returns the codes. The message may contain text that must not be
// logged.
func (e *ReportedError) Error() string {
	return "the provider reported an error: " + strings.Join(e.words, " ")
}

// is reports whether one of the codes and types is among words.
func (t ErrorReport) is(words ...string) bool {
	return slices.ContainsFunc(t.words, func(w string) bool { return slices.Contains(words, w) })
}

// ReadError reads the body of an error in any form. Text and web pages are
// errors, too.
func ReadError(body []byte) ErrorReport {
	if t, ok := FindError(body); ok {
		return t
	}
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '<' {
		return ErrorReport{Message: title(body), Page: true}
	}
	if json.Valid(body) && len(body) > 0 && body[0] != '"' {
		return ErrorReport{}
	}
	return ErrorReport{Message: string(bytes.Trim(body, `"`))}
}

// FindError looks for an error in a JSON value that may be something else. It
// recognizes an `error`, or `errors`, that is an object, a list or a text; an
// object whose `object` or `type` is `error`; and an object that has only a
// message and codes: `detail` as text or list, `message`, `error_msg`.
func FindError(body []byte) (ErrorReport, bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return ErrorReport{}, false
	}
	r := errorReader{}
	if list, ok := v.([]any); ok {
		for _, e := range list {
			r.top(e)
		}
	} else {
		r.top(v)
	}
	r.report.Message = strings.Join(r.texts, "; ")
	return r.report, r.found
}

// errorReader collects the content of an error.
type errorReader struct {
	report ErrorReport
	texts  []string
	found  bool
	depth  int
}

const (
	maxDepth = 6 // of errors inside others
	maxTexts = 8 // of one error
)

// top reads an object that may be an error.
func (r *errorReader) top(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, key := range []string{"error", "errors", "err"} {
		if e := m[key]; !blank(e) {
			r.found = true
			r.value(e)
		}
	}
	if _, answer := m["choices"]; answer {
		return
	}
	marked := r.found || word(m["object"]) == "error" || word(m["type"]) == "error"
	_, said := m["message"].(string)
	if marked || m["id"] == nil && (m["type"] == nil || said) {
		before := len(r.texts)
		r.object(m)
		r.found = marked || len(r.texts) > before
	}
}

// blank reports whether a field stands for no error.
func blank(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return strings.TrimSpace(v) == ""
	case json.Number:
		return v == "0"
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// value reads a message, or an error that is an object, a list or a text.
func (r *errorReader) value(v any) {
	if r.depth++; r.depth > maxDepth {
		r.depth--
		return
	}
	defer func() { r.depth-- }()
	switch v := v.(type) {
	case string:
		r.text(v)
	case map[string]any:
		r.object(v)
	case []any:
		for _, e := range v {
			r.value(e)
		}
	}
}

// text handles a message, which may itself be the JSON of an error.
func (r *errorReader) text(s string) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "{") {
		var inner map[string]any
		if json.Unmarshal([]byte(s), &inner) == nil {
			before := len(r.texts)
			r.value(inner)
			if len(r.texts) > before {
				return
			}
		}
	}
	if s != "" && len(r.texts) < maxTexts && !slices.Contains(r.texts, s) {
		r.texts = append(r.texts, s)
	}
}

// object reads the fields of an error.
func (r *errorReader) object(m map[string]any) {
	for _, key := range []string{"code", "type", "status", "error_code", "error_type", "errorcode", "status_code", "statuscode"} {
		r.code(m[key])
	}
	if d, ok := m["details"].(map[string]any); ok {
		r.code(d["error_code"])
	}
	before := len(r.texts)
	for _, key := range []string{"message", "Message", "msg", "detail", "error_msg", "error_message", "error_description", "title", "metadata", "raw"} {
		if v := m[key]; v != nil && (key != "title" || len(r.texts) == before) {
			r.value(v)
		}
	}
	if e := m["error"]; r.depth > 0 && !blank(e) {
		r.value(e)
	}
	if where := path(m["loc"]); where != "" && len(r.texts) == before+1 {
		r.texts[before] = where + ": " + r.texts[before]
	}
}

// path returns the position of a field, as `messages.0.content`.
func path(v any) string {
	list, _ := v.([]any)
	var parts []string
	for _, e := range list {
		switch e := e.(type) {
		case string:
			parts = append(parts, e)
		case json.Number:
			parts = append(parts, e.String())
		}
	}
	return strings.Join(parts, ".")
}

// code handles a word, a number, or a number written as text.
func (r *errorReader) code(v any) {
	s, ok := v.(string)
	if n, number := v.(json.Number); number {
		s, ok = n.String(), true
	}
	if f, float := v.(float64); float && f >= 400 && f < 600 {
		r.report.Status = int(f)
	}
	if !ok {
		return
	}
	if s = strings.TrimSpace(s); len(s) == 3 && (s[0] == '4' || s[0] == '5') && s[1] >= '0' && s[1] <= '9' && s[2] >= '0' && s[2] <= '9' {
		r.report.Status = int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
		return
	}
	if w := word(s); w != "" {
		r.report.words = append(r.report.words, w)
	}
}

// word reduces a code to lower-case letters: servers differ in the rest.
func word(v any) string {
	s, _ := v.(string)
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

var (
	pageTitle = regexp.MustCompile(`(?is)<(?:title|h1)[^>]*>(.*?)</(?:title|h1)>`)
	pageTag   = regexp.MustCompile(`(?s)<[^>]*>`)
)

// title returns the title of a web page, or its text without one.
func title(page []byte) string {
	text := string(page)
	if m := pageTitle.FindStringSubmatch(text); m != nil && strings.TrimSpace(m[1]) != "" {
		text = m[1]
	}
	return html.UnescapeString(pageTag.ReplaceAllString(text, " "))
}
