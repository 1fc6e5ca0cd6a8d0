package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// budgets shows budgets.
type budgets struct {
	Session string `placeholder:"ID" help:"Also the budget of this session."`
	JSON    bool   `name:"json" help:"Print one JSON budget per line."`
}

func (f budgets) request() proto.Message {
	r := &sessionv1.ListBudgetsRequest{}
	if f.Session != "" {
		r.Session = sessionName(f.Session)
	}
	return r
}

func (f budgets) show(s stdio, found *sessionv1.ListBudgetsResponse) error {
	if f.JSON {
		return printJSON(s.out, found.GetBudgets())
	}
	return listBudgets(s.out, found.GetBudgets())
}

func listBudgets(w io.Writer, all []*sessionv1.BudgetStatus) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "There are no budgets; the operator sets them under budgets in the configuration.")
		return err
	}
	rows := [][]string{{"BUDGET", "TOKENS", "COST", "TIME", "RESERVED", "UNTIL"}}
	for _, b := range all {
		until := "for ever"
		if b.GetWindowEnd() != nil {
			until = stamp(b.GetWindowEnd())
		}
		l := b.GetLimits()
		rows = append(rows, []string{
			b.GetScope() + " " + bare(b.GetSubject()),
			of(strconv.FormatInt(b.GetUsedTokens(), 10), strconv.FormatInt(l.GetMaxTokens(), 10), l.GetMaxTokens() > 0),
			of(usd(b.GetUsedCostNanoUsd()), usd(l.GetMaxCostNanoUsd()), l.GetMaxCostNanoUsd() > 0),
			of(b.GetUsedWallTime().AsDuration().Round(time.Second/10).String(), l.GetMaxWallTime().AsDuration().String(), l.GetMaxWallTime() != nil),
			usd(b.GetReservedCostNanoUsd()), until,
		})
	}
	return columns(w, rows)
}

// of formats the used amount and the limit, if there is one.
func of(used, limit string, bounded bool) string {
	if bounded {
		return used + " of " + limit
	}
	return used
}

func usd(nano int64) string { return "$" + strconv.FormatFloat(float64(nano)/1e9, 'f', 4, 64) }
