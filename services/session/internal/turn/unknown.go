package turn

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// unknown has the fields of a stored object that this version does not know, as
// they were read. During a rolling upgrade a turn moves between replicas of two
// versions, and the older one must write back the fields of the newer one. Every
// object in a turn's state has an unknown of its own, so that the fields stay
// with their object.
type unknown map[string]json.RawMessage

// decode reads an object into known, a pointer to a struct, and keeps the other fields.
func decode(b []byte, known any, kept *unknown) error {
	if err := json.Unmarshal(b, known); err != nil {
		return err
	}
	*kept = nil
	if err := json.Unmarshal(b, kept); err != nil {
		return err
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(known).Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		delete(*kept, name)
	}
	if len(*kept) == 0 {
		*kept = nil // an object without unknown fields is zero when all of its fields are
	}
	return nil
}

// encode writes an object together with its kept fields.
func encode(known any, kept unknown) ([]byte, error) {
	b, err := json.Marshal(known)
	if err != nil || len(kept) == 0 {
		return b, err
	}
	more, err := json.Marshal(kept)
	if err != nil || string(b) == "{}" {
		return more, err
	}
	return slices.Concat(b[:len(b)-1], []byte(","), more[1:]), nil
}

// The types without methods are what encoding/json reads and writes field by field.
type (
	plainRun            run
	plainCounted        counted
	plainQuestion       question
	plainAnswer         answer
	plainBudgetState    budgetState
	plainBudgetQuestion budgetQuestion
	plainFilesKept      filesKept
)

func (r *run) UnmarshalJSON(b []byte) error      { return decode(b, (*plainRun)(r), &r.unknown) }
func (c *counted) UnmarshalJSON(b []byte) error  { return decode(b, (*plainCounted)(c), &c.unknown) }
func (q *question) UnmarshalJSON(b []byte) error { return decode(b, (*plainQuestion)(q), &q.unknown) }
func (a *answer) UnmarshalJSON(b []byte) error   { return decode(b, (*plainAnswer)(a), &a.unknown) }
func (s *budgetState) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainBudgetState)(s), &s.unknown)
}
func (q *budgetQuestion) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainBudgetQuestion)(q), &q.unknown)
}

func (f *filesKept) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainFilesKept)(f), &f.unknown)
}

func (r run) MarshalJSON() ([]byte, error)         { return encode(plainRun(r), r.unknown) }
func (c counted) MarshalJSON() ([]byte, error)     { return encode(plainCounted(c), c.unknown) }
func (q question) MarshalJSON() ([]byte, error)    { return encode(plainQuestion(q), q.unknown) }
func (a answer) MarshalJSON() ([]byte, error)      { return encode(plainAnswer(a), a.unknown) }
func (f filesKept) MarshalJSON() ([]byte, error)   { return encode(plainFilesKept(f), f.unknown) }
func (s budgetState) MarshalJSON() ([]byte, error) { return encode(plainBudgetState(s), s.unknown) }
func (q budgetQuestion) MarshalJSON() ([]byte, error) {
	return encode(plainBudgetQuestion(q), q.unknown)
}
