package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/search"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Indexed is the search entry of a message.
type Indexed struct {
	store.Key
	ID    string
	Time  time.Time
	Words []string // letters and digits only, with the tenant's mark
}

// IndexRows returns the search entries of messages, given their bodies.
func IndexRows(k store.Key, bodies [][]byte) ([]Indexed, error) {
	messages, err := Decode[sessionv1.Message](bodies)
	if err != nil {
		return nil, err
	}
	rows := make([]Indexed, 0, len(messages))
	for _, m := range messages {
		id, err := MessageID(k.Session, m.GetName())
		if err != nil {
			return nil, err
		}
		words := search.Words(Text(m))
		for i := range words {
			words[i] = mark(k.Tenant) + words[i]
		}
		rows = append(rows, Indexed{Key: k, ID: id, Time: Micros(m.GetCreateTime().AsTime()), Words: words})
	}
	return rows, nil
}

// mark returns the prefix of a tenant's words. If two tenants ever have the same
// prefix, the tenant column still keeps their messages apart.
func mark(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:6]) + "x"
}

// Text returns the searchable text of a message: its words and the answers of
// tools, up to a bound.
func Text(m *sessionv1.Message) string {
	var b strings.Builder
	add := func(c *commonv1.Content) {
		if t := c.GetText().GetText() + c.GetResource().GetText(); t != "" && b.Len() < search.MaxText {
			b.WriteString(strings.ToValidUTF8(t[:min(len(t), search.MaxText-b.Len())], ""))
			b.WriteByte('\n')
		}
	}
	for _, block := range m.GetBlocks() {
		add(block.GetContent())
		for _, c := range block.GetToolResult().GetContent() {
			add(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// TSQuery returns the query in the syntax of Postgres.
func TSQuery(s store.MessageSearch) string { return query(s, "'%s'", "'%s':*", " & ") }

// FTSQuery returns the query in the syntax of SQLite.
func FTSQuery(s store.MessageSearch) string { return query(s, `"%s"`, `"%s"*`, " AND ") }

func query(s store.MessageSearch, whole, prefix, and string) string {
	terms := make([]string, 0, len(s.Words))
	for _, w := range s.Words {
		form := whole
		if w.Prefix {
			form = prefix
		}
		terms = append(terms, fmt.Sprintf(form, mark(s.Tenant)+w.Text))
	}
	return strings.Join(terms, and)
}
