package state

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// ofTomorrow makes a JSON value for a type in which every object has a field that the type does not know, and every
// field of the type is set.
func ofTomorrow(t *testing.T, typ reflect.Type) any {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer:
		return ofTomorrow(t, typ.Elem())
	case reflect.Struct:
		object := map[string]any{"of_tomorrow": map[string]any{"in": typ.Name(), "list": []any{1.5, "two"}}}
		for _, f := range reflect.VisibleFields(typ) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				object[name] = ofTomorrow(t, f.Type)
			}
		}
		return object
	case reflect.Map:
		return map[string]any{"one": ofTomorrow(t, typ.Elem()), "two": ofTomorrow(t, typ.Elem())}
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "" // no bytes: an empty message
		}
		return []any{ofTomorrow(t, typ.Elem())}
	case reflect.Bool:
		return true
	case reflect.String:
		return "text"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return 7.0
	default:
		t.Fatalf("the state of a turn has a %v, which this test does not know", typ)
		return nil
	}
}

func TestAStateOfANewerVersionIsWrittenBackWithAllThatOnlyThatVersionKnows(t *testing.T) {
	want := ofTomorrow(t, reflect.TypeFor[Run]()).(map[string]any)
	delete(want, "finished") // empty bytes are left out
	delete(want, "resume_point")
	state, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewTurn("t1", &sessionv1.Turn{Name: "sessions/s/turns/t1"}, state)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(a.Row().Run, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("the state changed (-was +is):\n%s", diff)
	}
}

func TestWhatANewerVersionKnowsOfAnObjectGoesWithTheObject(t *testing.T) {
	a, err := NewTurn("t1", &sessionv1.Turn{}, []byte(`{"request":"","user":"u","new":1,
		"asked":{"a":{"digest":"d","rule":"r","new":2},"b":{"digest":"d","rule":"r","new":3}},
		"budget":{"new":4,"question":{"call_id":"a","limit":"l","new":5}}}`))
	if err != nil {
		t.Fatal(err)
	}
	delete(a.Run.Asked, "a")
	a.Run.Budget.Question = &BudgetQuestion{CallID: "c", Limit: "l"}
	a.Run.Attempt, a.Since = 2, time.Now()
	const want = `{"request":"","user":"u","attempt":2,"budget":{"question":{"call_id":"c","limit":"l"},"new":4},"asked":{"b":{"digest":"d","rule":"r","new":3}},"new":1}`
	if got := string(a.Row().Run); got != want {
		t.Errorf("the state is\n%s\nwant\n%s", got, want)
	}
}
