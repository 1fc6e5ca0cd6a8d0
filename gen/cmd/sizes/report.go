package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// finding is a size above its limit.
type finding struct {
	what     string
	n, limit int
}

func (f finding) String() string { return fmt.Sprintf("%s: %d, the limit is %d", f.what, f.n, f.limit) }

func (s *survey) exceed(what string, n, limit int) {
	if n > limit {
		s.found = append(s.found, finding{what, n, limit})
	}
}

// report names all that exceeds a limit, but for exceptions, and exceptions without use.
func (s *survey) report() []string {
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		methods, fields := s.whole(name, map[string]bool{})
		most := maxMethods
		if strings.Contains(name, "/internal/store") {
			most = maxStore
		}
		s.exceed(name+" methods", len(methods), most)
		s.exceed(name+" fields", fields, maxFields)
	}
	s.exceed("lines wider than "+strconv.Itoa(maxColumns)+" columns", s.wide, 0)
	lines := map[string]int{}
	for _, dir := range slices.Sorted(maps.Keys(s.packages)) {
		p := s.packages[dir]
		s.exceed(dir+" files", p.files, maxFiles)
		s.exceed(dir+" package", p.lines, maxPackage)
		limit := maxImports
		if root(dir) {
			limit = maxRootImports
		}
		s.exceed(dir+" imports", len(p.imports), limit)
		for of := range budgets {
			if dir == of || strings.HasPrefix(dir, of+"/") {
				lines[of] += p.lines
			}
		}
	}
	for _, of := range slices.Sorted(maps.Keys(budgets)) {
		s.exceed(of+" budget", lines[of], budgets[of])
	}
	allowed := maps.Clone(debts)
	for _, e := range exceptions {
		allowed[e.what] = e.most
	}
	return allow(s.found, allowed)
}

// allow takes what is allowed from what was found.
func allow(found []finding, allowed map[string]int) (out []string) {
	used := map[string]bool{}
	for _, f := range found {
		if most, ok := allowed[f.what]; ok {
			used[f.what] = true
			if f.n <= most {
				continue
			}
			f.limit = most
		}
		out = append(out, f.String())
	}
	for _, what := range slices.Sorted(maps.Keys(allowed)) {
		if !used[what] {
			out = append(out, what+": it is within its limit: take it out of limits.go")
		}
	}
	return out
}

// weigh names the programs in a folder that are larger than they may be, need a library of the system, or have tables for
// debuggers. A program that is not built is left out.
func weigh(folder string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		at := filepath.Join(folder, name)
		info, err := os.Stat(at) //nolint:gosec // the caller names the folder
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p, err := elf.Open(at)
		if err != nil {
			out = append(out, fmt.Sprintf("%s cannot be read: %v", name, err))
			continue
		}
		if info.Size() > programs[name] {
			out = append(out, fmt.Sprintf("%s has %d bytes, the limit is %d", name, info.Size(), programs[name]))
		}
		if slices.ContainsFunc(p.Progs, func(s *elf.Prog) bool { return s.Type == elf.PT_INTERP }) {
			out = append(out, name+" needs a library of the system: build it with CGO_ENABLED=0")
		}
		if p.Section(".symtab") != nil {
			out = append(out, name+" has tables for debuggers: build it with -ldflags \"-s -w\"")
		}
		_ = p.Close()
	}
	return out
}
