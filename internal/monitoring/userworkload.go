package monitoring

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// enableKey switches on OpenShift's monitoring of user-defined projects.
const enableKey = "enableUserWorkload"

// What stood in the administrator's configuration before the operator changed it. Where the key was
// there it is the word of its value, such as WasFalse.
const (
	WasAbsent   = "absent"   // the key was not there
	WasFalse    = "false"    // the key was there and false
	WasNoObject = "noObject" // there was no ConfigMap
	// WasTakenBack says that nothing of the operator's change is left: somebody has taken it back.
	WasTakenBack = "takenBack"
)

// words are those that OpenShift's monitoring, which reads YAML 1.1, takes for true and false.
var words = map[string]bool{
	"true": true, "True": true, "TRUE": true, "y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"false": false, "False": false, "FALSE": false, "n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// errUnreadable is for configurations that are better changed by people.
var errUnreadable = errors.New("the configuration of the cluster's monitoring cannot be changed safely by the operator; it is left as it is")

// EnableUserWorkload sets the one key in the text of the cluster's monitoring configuration and
// leaves every other byte as it is. It returns the text, and what was there before: empty means that
// it is on already. A text that is no YAML, or in which the change cannot be made for sure, is an
// error that says what to do.
func EnableUserWorkload(config string) (changed, was string, err error) {
	before, key, value, err := parse(config)
	if err != nil {
		return "", "", err
	}
	want := with(before, true)
	switch on, isBool := before[enableKey].(bool); {
	case isBool && on:
		return config, "", nil
	case key == nil && before[enableKey] != nil:
		return "", "", refusal(fmt.Errorf("%s comes from another place of it", enableKey))
	case key == nil:
		was = WasAbsent
	case isBool:
		if changed, ok := replaced(config, value, "true"); ok && reads(changed, want) {
			return changed, value.Value, nil
		}
		return "", "", refusal(fmt.Errorf("the value of %s stands in an unusual place", enableKey))
	default:
		return "", "", refusal(fmt.Errorf("the value of %s is neither true nor false", enableKey))
	}
	changed = config
	if changed != "" && !strings.HasSuffix(changed, "\n") {
		changed += "\n"
	}
	changed += enableKey + ": true\n"
	if !reads(changed, want) {
		return "", "", refusal(errors.New("a line cannot be added at its end"))
	}
	return changed, was, nil
}

// UndoUserWorkload takes back what EnableUserWorkload did, given what was there before. Where
// somebody has changed the key since, it is theirs and stays.
func UndoUserWorkload(config, was string) (string, error) {
	before, key, value, err := parse(config)
	if err != nil {
		return "", err
	}
	if on, isBool := before[enableKey].(bool); !isBool || !on || was == WasTakenBack {
		return config, nil
	}
	if key == nil {
		return "", refusal(fmt.Errorf("%s comes from another place of it", enableKey))
	}
	if on, word := words[was]; word && !on {
		if changed, ok := replaced(config, value, was); ok && reads(changed, with(before, false)) {
			return changed, nil
		}
		return "", refusal(fmt.Errorf("the value of %s stands in an unusual place", enableKey))
	}
	lines := strings.SplitAfter(config, "\n")
	if key.Line > len(lines) {
		// YAML breaks lines in more places than this does.
		return "", refusal(fmt.Errorf("%s does not stand on a line of its own", enableKey))
	}
	changed := strings.Join(append(lines[:key.Line-1:key.Line-1], lines[key.Line:]...), "")
	delete(before, enableKey)
	if !reads(changed, before) {
		return "", refusal(fmt.Errorf("%s does not stand on a line of its own", enableKey))
	}
	return changed, nil
}

// parse reads the text as one mapping, with the nodes of the key and its value.
func parse(config string) (content map[string]any, key, value *yaml.Node, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(config))
	document := &yaml.Node{}
	content = map[string]any{}
	if strings.TrimSpace(config) == "" {
		return content, nil, nil, nil
	}
	if err := yaml.Unmarshal([]byte(config), &content); err != nil {
		return nil, nil, nil, refusal(fmt.Errorf("it is not a YAML mapping: %w", err))
	}
	if content == nil {
		content = map[string]any{}
	}
	if err := decoder.Decode(document); err != nil {
		return content, nil, nil, nil // only comments: an empty mapping
	}
	if decoder.Decode(&yaml.Node{}) == nil {
		return nil, nil, nil, refusal(errors.New("it has several YAML documents"))
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return content, nil, nil, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key, value := root.Content[i], root.Content[i+1]; key.Value == enableKey {
			if on, word := words[value.Value]; word && value.Kind == yaml.ScalarNode && value.Style == 0 {
				content[enableKey] = on
			}
			return content, key, value, nil
		}
	}
	return content, nil, nil, nil
}

func refusal(why error) error {
	return fmt.Errorf("%w (%w); edit it yourself: oc -n %s edit configmap %s", errUnreadable, why, MonitoringNamespace, UserWorkloadConfig)
}

func with(content map[string]any, on bool) map[string]any {
	all := map[string]any{}
	for key, value := range content {
		all[key] = value
	}
	all[enableKey] = on
	return all
}

// replaced puts another word where a plain one stands.
func replaced(config string, node *yaml.Node, word string) (string, bool) {
	lines := strings.SplitAfter(config, "\n")
	if node.Line < 1 || node.Line > len(lines) {
		return "", false
	}
	line := lines[node.Line-1]
	from := node.Column - 1
	if from < 0 || from+len(node.Value) > len(line) || line[from:from+len(node.Value)] != node.Value {
		return "", false
	}
	lines[node.Line-1] = line[:from] + word + line[from+len(node.Value):]
	return strings.Join(lines, ""), true
}

// reads says that a text means this and nothing else.
func reads(config string, want map[string]any) bool {
	have, _, _, err := parse(config)
	return err == nil && reflect.DeepEqual(have, want)
}
