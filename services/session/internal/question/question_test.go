package question_test

import (
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/session/internal/question"
)

const asked = `{"questions":[
	{"question":"Which database?","header":"Database","options":[{"label":"Postgres","description":"many replicas"},{"label":"SQLite","description":"one file"}]},
	{"question":"Which parts?","header":"Parts","multiSelect":true,"options":[{"label":"API","description":""},{"label":"UI","description":""}]}
]}`

func TestAnswersAreCheckedAndTold(t *testing.T) {
	q, err := question.Parse(asked)
	if err != nil || len(q.Items) != 2 || q.Items[0].Header != "Database" || q.Items[0].Multiple || !q.Items[1].Multiple || q.Items[1].Options[1].Label != "UI" {
		t.Fatal(q, err)
	}
	form := &commonv1.Question{SchemaJson: `{"type":"object","properties":{"port":{"type":"integer","minimum":1}},"required":["port"]}`}
	for _, c := range []struct {
		name    string
		q       *commonv1.Question
		content string
		fault   string // a part of it; empty: none
	}{
		{"one label, several labels", q, `{"answers":{"Which database?":"Postgres","Which parts?":["API","UI"]}}`, ""},
		{"other text, and one of several", q, `{"answers":{"Which database?":"MySQL, please","Which parts?":"UI"}}`, ""},
		{"a list of one", q, `{"answers":{"Which database?":["Postgres"],"Which parts?":["API"]}}`, ""},
		{"two of one", q, `{"answers":{"Which database?":["Postgres","SQLite"],"Which parts?":["API"]}}`, "one may be chosen"},
		{"one question without an answer", q, `{"answers":{"Which database?":"Postgres"}}`, `"Which parts?" has no answer`},
		{"an empty answer", q, `{"answers":{"Which database?":" ","Which parts?":["API"]}}`, "neither text nor a list"},
		{"an empty list", q, `{"answers":{"Which database?":"x","Which parts?":[]}}`, "neither text nor a list"},
		{"a number", q, `{"answers":{"Which database?":1,"Which parts?":["API"]}}`, "neither text nor a list"},
		{"another question", q, `{"answers":{"Which?":"x"}}`, "there is no question"},
		{"no answers", q, `{"database":"Postgres"}`, "not of the form"},
		{"nothing", q, "", "not of the form"},
		{"a form", form, `{"port":8080}`, ""},
		{"a form with a wrong value", form, `{"port":0}`, "port"},
		{"a form without a value", form, `{}`, "port"},
		{"a form without content", form, "", "port"},
		{"a page", &commonv1.Question{Url: "https://example.org"}, "", ""},
		{"a page with text that is no object", &commonv1.Question{Url: "https://example.org"}, `"done"`, "object"},
	} {
		err := question.Check(c.q, c.content)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for want, a := range map[string]*commonv1.QuestionAnswer{
		"The user answered:\n- Which database? SQLite\n- Which parts? API, UI": {Action: 1, ContentJson: `{"answers":{"Which database?":"SQLite","Which parts?":["API","UI"]}}`},
		"does not want to answer": {Action: 2}, "closed the question": {Action: 3},
	} {
		if got := question.Told(q, a); !strings.Contains(got, want) {
			t.Errorf("the model reads %q, want %q", got, want)
		}
	}
}

func TestTwoEqualQuestionsAreRefused(t *testing.T) {
	if _, err := question.Parse(`{"questions":[{"question":"Which?"},{"question":"Which?"}]}`); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}
