package observability

// Kind is how a panel is drawn.
type Kind string

const (
	// Graph draws every series over time.
	Graph Kind = "graph"
	// Number shows the value of the only target's only series, now.
	Number Kind = "number"
	// Table shows a row for each combination of labels, and a column for each target.
	Table Kind = "table"
)

// Unit is what a value is.
type Unit string

const (
	// Count is a plain number.
	Count Unit = "short"
	// Seconds is a duration.
	Seconds Unit = "s"
	// Share is a fraction of one, shown as per cent.
	Share Unit = "percentunit"
	// Bytes is an amount of memory.
	Bytes Unit = "bytes"
)

// Target is a query of a panel. Its expression is PromQL with $job, and with $session_namespace for
// the projects that whoever looks has chosen.
type Target struct {
	Expr string
	// Legend names a series of a graph, as in {{label}}, and the column of a table.
	Legend string
}

// Panel is one picture of the dashboard.
type Panel struct {
	Title string
	// About says what to see in it.
	About   string
	Kind    Kind
	Unit    Unit
	Stacked bool
	// Span is the width in twelfths.
	Span int
	// Labels are those that make the rows of a table.
	Labels  []string
	Targets []Target
}

// Row is a titled part of the dashboard.
type Row struct {
	Title  string
	Panels []Panel
}

// Title is the name of the dashboard.
const Title = "Agentic Operator / Sessions"

// projects is the variable that narrows the dashboard to projects.
const projects = "session_namespace"

// projectsQuery lists what can be chosen. The space behind the comma is needed by the Console.
const projectsQuery = `label_values(ambient_sessions{$job}, session_namespace)`

// Board is the dashboard, which is drawn in two ways: by console.go and by grafana.go.
var Board = []Row{nowRow, flowRow, startRow, troubleRow, operatorRow}

func number(title, about string, unit Unit, expr string) Panel {
	return Panel{Title: title, About: about, Kind: Number, Unit: unit, Span: 4, Targets: []Target{{Expr: expr}}}
}

func graph(title, about string, unit Unit, targets ...Target) Panel {
	return Panel{Title: title, About: about, Kind: Graph, Unit: unit, Span: 6, Targets: targets}
}

func stacked(p Panel) Panel {
	p.Stacked = true
	return p
}

// Targets lists the expressions of all panels, as they stand in the dashboards.
func Targets() []string {
	var all []string
	for _, row := range Board {
		for _, panel := range row.Panels {
			for _, target := range panel.Targets {
				all = append(all, scope(target.Expr, ""))
			}
		}
	}
	return all
}
