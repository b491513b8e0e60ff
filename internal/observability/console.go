package observability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The Console draws only what Grafana had years ago: rows of panels with a span, of the types graph,
// singlestat and table. Whatever else stands in the JSON it passes over in silence.
type consoleBoard struct {
	Title         string            `json:"title"`
	SchemaVersion int               `json:"schemaVersion"`
	Tags          []string          `json:"tags"`
	Templating    consoleTemplating `json:"templating"`
	Rows          []consoleRow      `json:"rows"`
}

type consoleTemplating struct {
	List []consoleVariable `json:"list"`
}

type consoleVariable struct {
	Name       string `json:"name"`
	Label      string `json:"label"`
	Type       string `json:"type"`
	Query      string `json:"query"`
	IncludeAll bool   `json:"includeAll"`
	AllValue   string `json:"allValue"`
	Multi      bool   `json:"multi"`
	Refresh    int    `json:"refresh"`
	Sort       int    `json:"sort"`
}

type consoleRow struct {
	Title     string         `json:"title"`
	ShowTitle bool           `json:"showTitle"`
	Collapse  bool           `json:"collapse"`
	Panels    []consolePanel `json:"panels"`
}

type consolePanel struct {
	ID          int             `json:"id"`
	Title       string          `json:"title"`
	Description string          `json:"description,omitempty"`
	Type        string          `json:"type"`
	Span        int             `json:"span"`
	Targets     []consoleTarget `json:"targets"`
	// Of a graph.
	Stack  bool           `json:"stack,omitempty"`
	Legend *consoleLegend `json:"legend,omitempty"`
	YAxes  []consoleAxis  `json:"yaxes,omitempty"`
	// Of a number.
	Format    Unit              `json:"format,omitempty"`
	Decimals  *int              `json:"decimals,omitempty"`
	ValueMaps []consoleValueMap `json:"valueMaps,omitempty"`
	// Of a table.
	Transform string         `json:"transform,omitempty"`
	Styles    []consoleStyle `json:"styles,omitempty"`
}

type consoleTarget struct {
	Expr         string `json:"expr"`
	RefID        string `json:"refId"`
	LegendFormat string `json:"legendFormat"`
	Format       string `json:"format"`
	Instant      bool   `json:"instant,omitempty"`
}

type consoleLegend struct {
	Show bool `json:"show"`
}

type consoleAxis struct {
	Format Unit `json:"format"`
}

type consoleValueMap struct {
	Op    string `json:"op"`
	Text  string `json:"text"`
	Value string `json:"value"`
}

type consoleStyle struct {
	Alias    string `json:"alias"`
	Pattern  string `json:"pattern"`
	Type     string `json:"type"`
	Unit     Unit   `json:"unit,omitempty"`
	Decimals *int   `json:"decimals,omitempty"`
}

// ConsoleDashboard is the dashboard as the OpenShift Console draws it: the value of the one key that
// a ConfigMap labelled as a dashboard may have.
func ConsoleDashboard() ([]byte, error) {
	board := consoleBoard{
		Title: Title, SchemaVersion: 22, Tags: []string{"agentic-operator"},
		Templating: consoleTemplating{List: []consoleVariable{{
			Name: projects, Label: "Project", Type: "query", Query: scope(projectsQuery, ""),
			IncludeAll: true, AllValue: ".+", Refresh: 2, Sort: 1,
		}}},
	}
	id := 0
	for _, row := range Board {
		drawn := consoleRow{Title: row.Title, ShowTitle: true}
		for i := range row.Panels {
			id++
			drawn.Panels = append(drawn.Panels, row.Panels[i].console(id))
		}
		board.Rows = append(board.Rows, drawn)
	}
	return indented(board)
}

func (p *Panel) console(id int) consolePanel {
	drawn := consolePanel{ID: id, Title: p.Title, Description: p.About, Span: p.Span}
	for i, target := range p.Targets {
		drawn.Targets = append(drawn.Targets, consoleTarget{
			Expr: scope(target.Expr, ""), RefID: refID(i), LegendFormat: target.Legend, Format: "time_series",
		})
	}
	whole := 0
	switch p.Kind {
	case Graph:
		drawn.Type, drawn.Stack, drawn.Legend = "graph", p.Stacked, &consoleLegend{Show: true}
		drawn.YAxes = []consoleAxis{{p.Unit}, {Count}}
	case Number:
		drawn.Type, drawn.Format = "singlestat", p.Unit
		if p.Unit == Count {
			drawn.Decimals = &whole
		}
		drawn.ValueMaps = []consoleValueMap{{Op: "=", Text: "none", Value: "null"}}
	case Table:
		drawn.Type, drawn.Transform = "table", "table"
		for i := range drawn.Targets {
			drawn.Targets[i].Format, drawn.Targets[i].Instant = "table", true
		}
		for _, label := range p.Labels {
			drawn.Styles = append(drawn.Styles, consoleStyle{Alias: heading(label), Pattern: label, Type: "string"})
		}
		for i, target := range p.Targets {
			drawn.Styles = append(drawn.Styles, consoleStyle{Alias: target.Legend, Pattern: "Value #" + refID(i), Type: "number", Unit: p.Unit, Decimals: &whole})
		}
	}
	return drawn
}

// refID names a target within its panel: A, B, C.
func refID(i int) string { return string(rune('A' + i)) }

// heading is the heading of a table's column for a label.
func heading(label string) string {
	if label == projects {
		return "Project"
	}
	return strings.ToUpper(label[:1]) + label[1:]
}

func indented(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("writing the dashboard as JSON: %w", err)
	}
	return out.Bytes(), nil
}
