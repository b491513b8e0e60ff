package observability

// GrafanaDashboard is the dashboard for today's Grafana, with the same panels and queries.
func GrafanaDashboard() ([]byte, error) {
	var panels []any
	id, y := 0, 0
	for _, row := range Board {
		id++
		panels = append(panels, map[string]any{
			"id": id, "type": "row", "title": row.Title, "collapsed": false,
			"gridPos": map[string]int{"x": 0, "y": y, "w": 24, "h": 1}, "panels": []any{},
		})
		y++
		x, high := 0, 0
		for i := range row.Panels {
			p := &row.Panels[i]
			if x+2*p.Span > 24 {
				x, y, high = 0, y+high, 0
			}
			id++
			drawn := p.grafana()
			drawn["id"] = id
			drawn["gridPos"] = map[string]int{"x": x, "y": y, "w": 2 * p.Span, "h": p.height()}
			panels = append(panels, drawn)
			x, high = x+2*p.Span, max(high, p.height())
		}
		y += high
	}
	return indented(map[string]any{
		"uid": "agentic-operator-sessions", "title": Title, "tags": []string{"agentic-operator"},
		"schemaVersion": 41, "version": 1, "editable": true, "refresh": "30s",
		"time":       map[string]string{"from": "now-3h", "to": "now"},
		"templating": map[string]any{"list": grafanaVariables()},
		"panels":     panels,
	})
}

// source is the data source that whoever looks has chosen.
var source = map[string]string{"type": "prometheus", "uid": "${datasource}"}

func grafanaVariables() []any {
	query := scope(projectsQuery, "")
	return []any{
		map[string]any{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
		map[string]any{
			"name": projects, "label": "Project", "type": "query", "datasource": source,
			"definition": query, "query": map[string]any{"query": query, "refId": "projects"},
			"includeAll": true, "allValue": ".+", "multi": true, "refresh": 2, "sort": 1,
			"current": map[string]any{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
		},
	}
}

func (p *Panel) height() int {
	if p.Kind == Number {
		return 4
	}
	return 8
}

func (p *Panel) grafana() map[string]any {
	var targets []any
	for i, target := range p.Targets {
		drawn := map[string]any{
			"refId": refID(i), "datasource": source, "expr": scope(target.Expr, ""), "legendFormat": target.Legend,
			"editorMode": "code", "range": p.Kind == Graph, "instant": p.Kind != Graph,
		}
		if p.Kind == Table {
			drawn["format"] = "table"
		}
		targets = append(targets, drawn)
	}
	defaults := map[string]any{"unit": string(p.Unit), "min": 0}
	drawn := map[string]any{
		"title": p.Title, "description": p.About, "datasource": source, "targets": targets,
		"fieldConfig": map[string]any{"defaults": defaults, "overrides": []any{}},
	}
	switch p.Kind {
	case Graph:
		drawn["type"] = "timeseries"
		mode := "none"
		if p.Stacked {
			mode = "normal"
		}
		defaults["custom"] = map[string]any{
			"fillOpacity": 10, "showPoints": "never", "lineWidth": 1,
			"stacking": map[string]string{"mode": mode, "group": "A"},
		}
		drawn["options"] = map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": map[string]string{"mode": "multi", "sort": "desc"},
		}
	case Number:
		drawn["type"] = "stat"
		if p.Unit == Count {
			defaults["decimals"] = 0
		}
		defaults["noValue"] = "none"
		drawn["options"] = map[string]any{
			"colorMode": "none", "graphMode": "none",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case Table:
		drawn["type"], drawn["options"] = "table", map[string]any{"showHeader": true}
		drawn["transformations"] = p.columns()
	}
	return drawn
}

// columns joins the targets of a table by their labels and names the columns.
func (p *Panel) columns() []any {
	names := map[string]string{}
	for _, label := range p.Labels {
		names[label] = heading(label)
	}
	for i, target := range p.Targets {
		names["Value #"+refID(i)] = target.Legend
	}
	if len(p.Targets) == 1 {
		names["Value"] = p.Targets[0].Legend
	}
	return []any{
		map[string]any{"id": "merge", "options": map[string]any{}},
		map[string]any{"id": "organize", "options": map[string]any{
			"excludeByName": map[string]bool{"Time": true}, "renameByName": names,
		}},
	}
}
