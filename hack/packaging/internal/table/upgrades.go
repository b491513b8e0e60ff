package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// upgrades are the sessions before and after each upgrade of the last run on a cluster.
func upgrades(root string) (Section, error) {
	shown := Section{Title: "Sessions before and after upgrades by OLM"}
	content, err := os.ReadFile(filepath.Join(root, "bin", "upgrades.json"))
	if errors.Is(err, os.ErrNotExist) {
		shown.Rows = []Row{{"upgrades", notRun}}
		return shown, nil
	}
	var hops []struct {
		From, To, Took, LeaderGap string
		Sessions                  []struct{ Name, Before, After string }
	}
	if err == nil {
		err = json.Unmarshal(content, &hops)
	}
	if err != nil {
		return shown, fmt.Errorf("reading the report of the upgrades: %w", err)
	}
	for _, hop := range hops {
		name := hop.From + " to " + hop.To
		shown.Rows = append(shown.Rows, Row{name, fmt.Sprintf("took %s, %s without a leader", hop.Took, hop.LeaderGap)})
		for _, s := range hop.Sessions {
			shown.Rows = append(shown.Rows, Row{name + ": " + s.Name, "before  " + s.Before}, Row{"", "after   " + s.After})
		}
	}
	return shown, nil
}
