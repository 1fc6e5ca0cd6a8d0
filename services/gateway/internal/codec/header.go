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

// Prefer returns the offer that Accept names with the highest quality; of equal ones, the first. If Accept
// names no offer, it returns fallback.
func Prefer(accept []string, fallback string, offers ...string) string {
	best, quality := fallback, 0.0
	for _, offer := range offers {
		if q := qualityOf(accept, offer); q > quality {
			best, quality = offer, q
		}
	}
	return best
}

// qualityOf returns the q of a type that Accept names in full, 0 if it does not name it.
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

// formType is the type that curl sends by default with -d.
const formType = "application/x-www-form-urlencoded"

// CheckContentType refuses a body whose type is none of types and not JSON under another name
// (application/…+json). A body without a type, or with curl's default type, is accepted and read as one of
// types. The pages of other sites could send such a body without a preflight; their origin is refused
// earlier.
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

// CheckContentEncoding refuses a compressed or otherwise encoded body.
func CheckContentEncoding(h http.Header) error {
	all := strings.Join(h.Values("Content-Encoding"), ", ")
	for coding := range strings.SplitSeq(all, ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return problem.UnsupportedEncoding(all)
		}
	}
	return nil
}

// ResumePoint returns the sequence number after which a stream resumes, and whether the request has one: in
// the header Last-Event-ID, otherwise in the query parameter after_seq.
func ResumePoint(h http.Header, query url.Values) (seq int64, ok bool, err error) {
	// In the event-stream specification, an empty header means no id.
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

// ParseSeq parses a sequence number: only decimal digits, at most 9223372036854775807. Otherwise it returns
// the fault.
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
