package state

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
	plainRun            Run
	plainCounted        Counted
	plainQuestion       Question
	plainAnswer         Answer
	plainBudget         Budget
	plainBudgetQuestion BudgetQuestion
	plainFiles          Files
	plainAbove          Above
)

// UnmarshalJSON keeps the fields that this version does not know.
func (r *Run) UnmarshalJSON(b []byte) error { return decode(b, (*plainRun)(r), &r.unknown) }

// UnmarshalJSON keeps the fields that this version does not know.
func (c *Counted) UnmarshalJSON(b []byte) error { return decode(b, (*plainCounted)(c), &c.unknown) }

// UnmarshalJSON keeps the fields that this version does not know.
func (q *Question) UnmarshalJSON(b []byte) error { return decode(b, (*plainQuestion)(q), &q.unknown) }

// UnmarshalJSON keeps the fields that this version does not know.
func (a *Answer) UnmarshalJSON(b []byte) error { return decode(b, (*plainAnswer)(a), &a.unknown) }

// UnmarshalJSON keeps the fields that this version does not know.
func (s *Budget) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainBudget)(s), &s.unknown)
}

// UnmarshalJSON keeps the fields that this version does not know.
func (q *BudgetQuestion) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainBudgetQuestion)(q), &q.unknown)
}

// UnmarshalJSON keeps the fields that this version does not know.
func (f *Files) UnmarshalJSON(b []byte) error {
	return decode(b, (*plainFiles)(f), &f.unknown)
}

// UnmarshalJSON keeps the fields that this version does not know.
func (a *Above) UnmarshalJSON(b []byte) error { return decode(b, (*plainAbove)(a), &a.unknown) }

// MarshalJSON writes the kept fields, too.
func (a Above) MarshalJSON() ([]byte, error) { return encode(plainAbove(a), a.unknown) }

// MarshalJSON writes the kept fields, too.
func (r Run) MarshalJSON() ([]byte, error) { return encode(plainRun(r), r.unknown) }

// MarshalJSON writes the kept fields, too.
func (c Counted) MarshalJSON() ([]byte, error) { return encode(plainCounted(c), c.unknown) }

// MarshalJSON writes the kept fields, too.
func (q Question) MarshalJSON() ([]byte, error) { return encode(plainQuestion(q), q.unknown) }

// MarshalJSON writes the kept fields, too.
func (a Answer) MarshalJSON() ([]byte, error) { return encode(plainAnswer(a), a.unknown) }

// MarshalJSON writes the kept fields, too.
func (f Files) MarshalJSON() ([]byte, error) { return encode(plainFiles(f), f.unknown) }

// MarshalJSON writes the kept fields, too.
func (s Budget) MarshalJSON() ([]byte, error) { return encode(plainBudget(s), s.unknown) }

// MarshalJSON writes the kept fields, too.
func (q BudgetQuestion) MarshalJSON() ([]byte, error) {
	return encode(plainBudgetQuestion(q), q.unknown)
}
