package transport

import (
	"strings"
	"testing"
	"time"
)

// The two commonest mistakes with a server of one's own are named with what to do.
func TestAWrongAddressAndAMissingKeyAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, key, body string
		status          int
		want            string
	}{
		{"a base URL without its /v1", "", `{"detail":"Not Found"}`, 404, "check its base URL"},
		{"a model that is not there", "", `{"error":{"message":"The model x does not exist"}}`, 404, "refused the request"},
		{"no key", "", `{"error":{"message":"Unauthorized"}}`, 401, "set key-env"},
		{"a wrong key", "k-123456789", `{"error":{"message":"Unauthorized"}}`, 401, "refused the key"},
	} {
		_, w := Begin(t.Context(), "local", c.key, time.Minute)
		if got := w.Told(ReadError([]byte(c.body)), c.status).Message; !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
		w.End()
	}
}

func TestAnErrorAboutTheKeyQuotesNothing(t *testing.T) {
	for _, status := range []int{401, 403} {
		_, w := Begin(t.Context(), "fake", "sk-1", 0)
		e := w.Told(ReadError([]byte(`{"error":{"message":"you sent hunter"}}`)), status)
		w.End()
		if strings.Contains(e.Message, "you sent") {
			t.Errorf("%d became %q", status, e.Message)
		}
	}
}
