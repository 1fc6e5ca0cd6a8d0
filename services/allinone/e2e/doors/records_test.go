package doors

import (
	"regexp"
	"strings"
	"testing"
)

var webhookSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/]{8}`)

// checkRecords checks that no credential is in the log or in a span.
func (w *world) checkRecords(t *testing.T) {
	t.Helper()
	var spans strings.Builder
	n := 0
	for _, s := range w.spans.GetSpans() {
		n++
		spans.WriteString(s.Name + " " + s.Status.Description)
		for _, a := range s.Attributes {
			spans.WriteString(" " + string(a.Key) + "=" + a.Value.String())
		}
		for _, e := range s.Events {
			spans.WriteString(" " + e.Name)
			for _, a := range e.Attributes {
				spans.WriteString(" " + string(a.Key) + "=" + a.Value.String())
			}
		}
	}
	if n < 100 || len(w.log.String()) < 10_000 {
		t.Errorf("there are %d spans and %d bytes of the log", n, len(w.log.String()))
	}
	for where, text := range map[string]string{"the log": w.log.String(), "the spans": spans.String()} {
		for _, secret := range w.secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("a credential is in %s: %s", where, text[max(0, at-200):min(len(text), at+len(secret)+50)])
			}
		}
		if found := webhookSecret.FindString(text); found != "" {
			t.Errorf("a webhook's secret is in %s", where)
		}
	}
}
