package agui

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestARequestNamesItsThreadInTheQueryOrTheBody(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		body  []string
		want  string
	}{
		"in the query":                     {"?threadId=t%201", []string{"", ""}, "t 1"},
		"in the query, the other spelling": {"?thread_id=t1", nil, "t1"},
		"in the body":                      {"", []string{"t1", ""}, "t1"},
		"in the body, the other spelling":  {"", []string{"", "t1"}, "t1"},
		"everywhere":                       {"?threadId=t1&thread_id=t1", []string{"t1", "t1"}, "t1"},
		"nowhere":                          {"?taskId=x", []string{"", ""}, ""},
		"another one in the body":          {"?threadId=t1", []string{"t2"}, ""},
		"two in the body":                  {"", []string{"t1", "t2"}, ""},
		"two in the query":                 {"?threadId=t1&thread_id=t2", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := thread(httptest.NewRequest(http.MethodPost, "/v1/agui/coder/interrupt"+c.query, nil), c.body...)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
