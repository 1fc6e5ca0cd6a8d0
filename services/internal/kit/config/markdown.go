package config

import (
	"fmt"
	"io"
	"strings"
)

// WriteTable writes a section of docs/configuration.md with one program's keys, as Markdown.
func WriteTable(w io.Writer, title string, rows []Row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n| key | flag | environment | type | default | meaning |\n| --- | --- | --- | --- | --- | --- |\n", title)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", code(r.Key), code(r.Flag), code(r.Env), r.Type, code(r.Default), cell(r.Help))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
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
