// Package question reads what agents ask people, checks the answers, and tells agents of them.
package question

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/internal/kit/schema"
)

// Parse reads the arguments of a call of AskUserQuestion, which fit the tool's schema.
func Parse(arguments string) (*commonv1.Question, error) {
	var asked struct {
		Questions []struct {
			Question string `json:"question"`
			Header   string `json:"header"`
			Options  []struct {
				Label       string `json:"label"`
				Description string `json:"description"`
			} `json:"options"`
			MultiSelect bool `json:"multiSelect"`
		} `json:"questions"`
	}
	if err := json.Unmarshal([]byte(arguments), &asked); err != nil {
		return nil, fmt.Errorf("the questions cannot be read: %w", err)
	}
	q := &commonv1.Question{Id: "1"}
	for _, a := range asked.Questions {
		if find(q, a.Question) != nil {
			return nil, fmt.Errorf("the question %q is there twice; an answer could not be told from the other", a.Question)
		}
		item := &commonv1.QuestionItem{Question: a.Question, Header: a.Header, Multiple: a.MultiSelect}
		for _, o := range a.Options {
			item.Options = append(item.Options, &commonv1.QuestionOption{Label: o.Label, Description: o.Description})
		}
		q.Items = append(q.Items, item)
	}
	return q, nil
}

func find(q *commonv1.Question, text string) *commonv1.QuestionItem {
	i := slices.IndexFunc(q.Items, func(i *commonv1.QuestionItem) bool { return i.Question == text })
	if i < 0 {
		return nil
	}
	return q.Items[i]
}

// Check returns why a person's answer does not fit the question.
func Check(q *commonv1.Question, content string) error {
	switch {
	case len(q.Items) > 0:
		_, err := chosen(q, content)
		return err
	case q.SchemaJson != "":
		args, err := schema.ParseArguments(content)
		if err != nil {
			return err
		}
		form, err := schema.Compile(q.SchemaJson)
		if err != nil {
			return fmt.Errorf("the form of the question is %w; decline it", err)
		}
		return form.CheckArguments(args)
	case content != "":
		_, err := schema.ParseArguments(content)
		return err
	}
	return nil
}

// chosen reads the answers to the items of a question.
func chosen(q *commonv1.Question, content string) (map[string][]string, error) {
	var given struct {
		Answers map[string]json.RawMessage `json:"answers"`
	}
	if json.Unmarshal([]byte(content), &given) != nil || given.Answers == nil {
		return nil, errors.New(`the answer is not of the form {"answers": {"the question's text": "the label"}}`)
	}
	all := map[string][]string{}
	for text, answer := range given.Answers {
		item := find(q, text)
		if item == nil {
			return nil, fmt.Errorf("there is no question %.100q", text)
		}
		labels, err := labelsOf(answer, item.Multiple)
		if err != nil {
			return nil, fmt.Errorf("the answer to %.100q %w", text, err)
		}
		all[text] = labels
	}
	for _, item := range q.Items {
		if len(all[item.Question]) == 0 {
			return nil, fmt.Errorf("the question %.100q has no answer", item.Question)
		}
	}
	return all, nil
}

// labelsOf reads the answer to one item: a text, or a list of texts.
func labelsOf(answer json.RawMessage, multiple bool) ([]string, error) {
	var one string
	if json.Unmarshal(answer, &one) == nil && strings.TrimSpace(one) != "" {
		return []string{one}, nil
	}
	var several []string
	switch {
	case json.Unmarshal(answer, &several) != nil || slices.ContainsFunc(several, func(s string) bool { return strings.TrimSpace(s) == "" }) || len(several) == 0:
		return nil, errors.New("is neither text nor a list of texts")
	case len(several) > 1 && !multiple:
		return nil, errors.New("has several options, and one may be chosen")
	}
	return several, nil
}

// Told returns the model's text for an answer.
func Told(q *commonv1.Question, a *commonv1.QuestionAnswer) string {
	switch a.Action {
	case commonv1.QuestionAction_QUESTION_ACTION_ACCEPT:
	case commonv1.QuestionAction_QUESTION_ACTION_DECLINE:
		return "The user does not want to answer. Go on without an answer, or ask in another way."
	default:
		return "The user closed the question without an answer. Go on without an answer."
	}
	answers, err := chosen(q, a.ContentJson)
	if err != nil {
		return "The user answered: " + a.ContentJson
	}
	var b strings.Builder
	b.WriteString("The user answered:")
	for _, item := range q.Items {
		b.WriteString("\n- " + item.Question + " " + strings.Join(answers[item.Question], ", "))
	}
	return b.String()
}
