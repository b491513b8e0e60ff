package main

import (
	"slices"
	"strings"
)

// table writes a Markdown table. An empty cell becomes a dash, so that a reader sees that it is
// meant.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	write := func(cells []string) {
		for _, cell := range cells {
			if cell == "" {
				cell = "–"
			}
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	write(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		write(row)
	}
	return b.String()
}

// code sets a word in the typewriter face; empty stays empty.
func code(word string) string {
	if word == "" {
		return ""
	}
	return "`" + word + "`"
}

// codes sets each of several words in the typewriter face.
func codes[T ~string](words []T) string {
	set := make([]string, len(words))
	for i, word := range words {
		set[i] = code(string(word))
	}
	return strings.Join(set, ", ")
}

// sorted is a sorted copy.
func sorted(words []string) []string {
	return slices.Sorted(slices.Values(words))
}

// section is a heading with what stands under it.
func section(title, text string) string {
	return "\n## " + title + "\n\n" + text
}

// fenced is a block of another language.
func fenced(language, text string) string {
	return "```" + language + "\n" + strings.TrimRight(text, "\n") + "\n```\n"
}
