package tables

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/services/internal/kit/sqldb"
)

// query is a select statement to which conditions are added.
type query struct {
	text string
	args []any
}

// filter returns a select statement that ends with its first condition.
func filter(text string, args ...any) *query { return &query{text, args} }

// and adds a condition. Each `?` in it stands for the next argument.
func (q *query) and(condition string, args ...any) {
	for _, a := range args {
		q.args = append(q.args, a)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(q.args)), 1)
	}
	q.text += " and " + condition
}

// ordered returns the whole statement.
func (q *query) ordered(by string, limit int) string {
	q.args = append(q.args, sqldb.Limit(limit))
	return fmt.Sprintf("%s order by %s limit $%d", q.text, by, len(q.args))
}
