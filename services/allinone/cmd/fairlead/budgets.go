package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// budgetsCommand shows budgets.
type budgetsCommand struct {
	Session string `placeholder:"ID" help:"Also the budget of this session."`
	JSON    bool   `name:"json" help:"Print one JSON budget per line."`
	target
}

// Run shows budgets.
func (c budgetsCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.ListBudgetsRequest{}
	if c.Session != "" {
		r.Session = sessionName(c.Session)
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		resp, err := b.budgets.ListBudgets(ctx, r)
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, resp.GetBudgets())
		}
		return listBudgets(s.out, resp.GetBudgets())
	})
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
