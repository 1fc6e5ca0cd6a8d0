package wire

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestJSONKeepsEveryDigit(t *testing.T) {
	var to struct {
		Input any             `json:"input"`
		Raw   json.RawMessage `json:"raw"`
	}
	if err := DecodeJSON([]byte(`{"input":{"n":9007199254740993},"raw":{"n":9007199254740993},"other":1}`), &to); err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(to)
	if string(b) != `{"input":{"n":9007199254740993},"raw":{"n":9007199254740993}}` {
		t.Errorf("%s", b)
	}
}

func TestBadJSONIsNamed(t *testing.T) {
	for body, want := range map[string][2]string{
		`{"id":5}`:     {"id", "number"},
		``:             {"", "empty"},
		`{"id":"a`:     {"", "unexpected EOF"},
		`{} {}`:        {"", "more after"},
		"{\"\xff\"":    {"", "UTF-8"},
		`{"n":"five"}`: {"", "no number"},
	} {
		var to struct {
			ID string      `json:"id"`
			N  json.Number `json:"n"`
		}
		f := FaultOf(DecodeJSON([]byte(body), &to))
		if f.Status != 400 || f.Field != want[0] || !strings.Contains(f.Message, want[1]) || strings.Contains(f.Message, "json:") {
			t.Errorf("%q: %+v", body, f)
		}
	}
}

func TestKeysFitTheSession(t *testing.T) {
	fits := regexp.MustCompile(`^[!-~]{1,128}$`)
	keys := map[string]string{}
	for _, id := range []string{"a", "A b", "ü", strings.Repeat("x", 96), strings.Repeat("x", 97), "sha256:" + strings.Repeat("0", 64), "x\ny"} {
		key := Place{Wire: "ai-sdk", ID: id}.key()
		if !fits.MatchString(key) {
			t.Errorf("%q: %q", id, key)
		}
		if other, ok := keys[key]; ok {
			t.Errorf("%q and %q have one key", id, other)
		}
		keys[key] = id
	}
	if RequestID("a", "bc") == RequestID("ab", "c") || !fits.MatchString(RequestID("ü")) {
		t.Error("request ids collide or do not fit")
	}
}
