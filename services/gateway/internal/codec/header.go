package codec

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/services/gateway/internal/problem"
)

// Media types of streams.
const (
	SSE    = "text/event-stream"
	NDJSON = "application/x-ndjson"
)

// Prefer returns the first of offers, the best first, that Accept names with the highest quality. Without any of them by
// name it returns fallback: a client that takes anything, or nothing that there is, gets what is usual.
func Prefer(accept []string, fallback string, offers ...string) string {
	best, quality := fallback, 0.0
	for _, offer := range offers {
		if q := qualityOf(accept, offer); q > quality {
			best, quality = offer, q
		}
	}
	return best
}

// qualityOf returns the q that Accept gives a type by its full name, 0 when it does not name it.
func qualityOf(accept []string, offer string) float64 {
	best := 0.0
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			name, params, err := mime.ParseMediaType(item)
			if err != nil || name != offer {
				continue
			}
			q := 1.0
			if s, ok := params["q"]; ok {
				if q, err = strconv.ParseFloat(s, 64); err != nil || q < 0 || q > 1 {
					continue
				}
			}
			best = max(best, q)
		}
	}
	return best
}

// formType is what curl says of every body that it is given with -d.
const formType = "application/x-www-form-urlencoded"

// CheckContentType refuses a body that says to be something else than one of the types, or JSON under another name
// (application/…+json). A body that says nothing, or what curl says by default, is taken for one of the types, and read as
// such. Pages of other sites, which could send that without asking first, are refused by their origin before.
func CheckContentType(h http.Header, types ...string) error {
	values := h.Values("Content-Type")
	if len(values) == 0 || len(values) == 1 && values[0] == formType {
		return nil
	}
	if len(values) == 1 {
		name, _, err := mime.ParseMediaType(values[0])
		if err == nil {
			for _, t := range types {
				if name == t {
					return nil
				}
			}
			if strings.HasPrefix(name, "application/") && strings.HasSuffix(name, "+json") {
				return nil
			}
		}
	}
	return problem.UnsupportedMediaType(strings.Join(values, ", "), types[0])
}

// CheckContentEncoding refuses a body that is compressed, or encoded in another way.
func CheckContentEncoding(h http.Header) error {
	all := strings.Join(h.Values("Content-Encoding"), ", ")
	for coding := range strings.SplitSeq(all, ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return problem.UnsupportedEncoding(all)
		}
	}
	return nil
}

// ResumePoint returns the sequence number that a stream shall resume after, and whether the request says one: in the
// header Last-Event-ID, else in the query parameter after_seq.
func ResumePoint(h http.Header, query url.Values) (seq int64, ok bool, err error) {
	// An empty header is what the event-stream specification calls no id.
	if values := h.Values("Last-Event-ID"); len(values) > 1 {
		return 0, false, problem.BadLastEventID(strings.Join(values, ", "), "is given more than once")
	} else if len(values) == 1 && values[0] != "" {
		seq, what := ParseSeq(values[0])
		if what != "" {
			return 0, false, problem.BadLastEventID(values[0], what)
		}
		return seq, true, nil
	}
	for _, name := range []string{"after_seq", "afterSeq"} {
		if !query.Has(name) {
			continue
		}
		seq, what := ParseSeq(query.Get(name))
		if what != "" {
			return 0, false, problem.BadParameter(name, what)
		}
		return seq, true, nil
	}
	return 0, false, nil
}

// ParseSeq reads a sequence number: decimal digits alone, at most 9223372036854775807. Else it says what is wrong.
func ParseSeq(s string) (seq int64, what string) {
	const want = "is not a sequence number: decimal digits, at most 9223372036854775807"
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, want
		}
	}
	seq, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, want
	}
	return seq, ""
}
