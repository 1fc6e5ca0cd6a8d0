package scripted_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/services/session/internal/model/scripted"
)

const page = "../../../../../docs/scripted.md"

func TestTheScenarioOfThePageCanBePlayed(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatal("the page has no scenario")
	}
	if _, err := scripted.Parse(m[1]); err != nil {
		t.Error(err)
	}
}

func TestThePageNamesEveryKey(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{scripted.Scenario{}, scripted.Turn{}, scripted.Step{}, scripted.ToolCall{}, scripted.Failure{}, scripted.Usage{}} {
		for i := range reflect.TypeOf(v).NumField() {
			key := reflect.TypeOf(v).Field(i).Tag.Get("yaml")
			if key != "" && !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("%T: the page does not name `%s`", v, key)
			}
		}
	}
}
