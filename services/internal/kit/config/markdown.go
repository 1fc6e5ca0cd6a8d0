package config

import (
	"fmt"
	"io"
	"strings"
)

// minSection is the number of keys from which a section of a configuration has a table of its own.
const minSection = 4

// WriteTable writes a section of docs/configuration.md with one program's keys, as Markdown.
// Each section of at least minSection keys has its own table, if its name has at most depth parts.
func WriteTable(w io.Writer, title string, depth int, rows []Row) error {
	sections, order := sectionsOf(rows, depth)
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", title)
	for _, name := range order {
		if name != "" {
			fmt.Fprintf(&b, "### `%s`\n\n", name)
		}
		b.WriteString("| key | flag | environment | type | default | meaning |\n| --- | --- | --- | --- | --- | --- |\n")
		for _, r := range sections[name] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", code(r.Key), code(r.Flag), code(r.Env), r.Type, code(r.Default), cell(r.Help))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sectionsOf groups rows by the section that documents them, and returns the names of these sections in the
// order of their first keys.
func sectionsOf(rows []Row, depth int) (sections map[string][]Row, order []string) {
	count := map[string]int{}
	for _, r := range rows {
		for _, name := range above(r.Key, depth) {
			count[name]++
		}
	}
	sections = map[string][]Row{}
	for _, r := range rows {
		name := ""
		for _, at := range above(r.Key, depth) {
			if count[at] >= minSection {
				name = at
			}
		}
		if len(sections[name]) == 0 {
			order = append(order, name)
		}
		sections[name] = append(sections[name], r)
	}
	return sections, order
}

// above returns the names of the outermost sections around a key, at most depth: `session`, `session.budgets`.
func above(key string, depth int) []string {
	var names []string
	for i, r := range key {
		if r == '.' && len(names) < depth {
			names = append(names, key[:i])
		}
	}
	return names
}

// WriteEntries writes a subsection with the keys of each mapping and list of mappings.
func WriteEntries(w io.Writer, rows []Row) error {
	var b strings.Builder
	for _, r := range rows {
		if len(r.Entry) == 0 {
			continue
		}
		title := r.Key + "[]"
		if r.Type == "mapping" {
			title = r.Key + ".NAME"
		}
		fmt.Fprintf(&b, "### `%s`\n\n| key | type | meaning |\n| --- | --- | --- |\n", title)
		for _, e := range r.Entry {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", code(e.Key), e.Type, cell(e.Help))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell keeps a text within its cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
