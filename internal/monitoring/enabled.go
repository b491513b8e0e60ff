package monitoring

import (
	"fmt"
	"slices"
	"strings"
)

// Setting is what the cluster's monitoring configuration says of the monitoring of user-defined
// projects.
type Setting string

// The settings.
const (
	// SettingUnknown is that of a configuration that was not read.
	SettingUnknown Setting = ""
	// SettingNoObject says that there is no ConfigMap, SettingBlank that there is no text in it.
	SettingNoObject Setting = "NoObject"
	SettingBlank    Setting = "Blank"
	// SettingAbsent says that the text does not have the key.
	SettingAbsent Setting = "Absent"
	SettingOff    Setting = "Off"
	SettingOn     Setting = "On"
	// SettingUnreadable says that the text is none that OpenShift's monitoring could read.
	SettingUnreadable Setting = "Unreadable"
)

// UserWorkload is what is known of the monitoring of user-defined projects beside the Prometheus
// that does it.
type UserWorkload struct {
	Setting Setting
	// TakenBack says that the operator had switched it on and somebody has switched it off again.
	TakenBack bool
	// Problem is what keeps the operator from switching it on as it was asked to; nil for nothing.
	Problem *Condition
}

// SettingOf reads the text of the cluster's monitoring configuration.
func SettingOf(config string) Setting {
	if strings.TrimSpace(config) == "" {
		return SettingBlank
	}
	content, _, _, err := parse(config)
	if err != nil {
		return SettingUnreadable
	}
	value, found := content[enableKey]
	switch on, isBool := value.(bool); {
	case !found || value == nil:
		return SettingAbsent
	case !isBool:
		return SettingUnreadable
	case on:
		return SettingOn
	default:
		return SettingOff
	}
}

// userWorkload is the condition of the monitoring of user-defined projects.
func (w *World) userWorkload() Condition {
	known := w.UserWorkload
	switch {
	case !w.OpenShift:
		return condition(PartUserWorkload, false, "NotOpenShift", "the cluster does not have OpenShift's monitoring")
	case w.userWorkloadRuns():
		return condition(PartUserWorkload, true, "Enabled", "the monitoring of user-defined projects is on")
	case known.Problem != nil:
		return *known.Problem
	case known.Setting == SettingOn:
		return condition(PartUserWorkload, false, "Starting", "the monitoring of user-defined projects is switched on and has not started yet; look at: oc -n openshift-user-workload-monitoring get pods")
	case w.Mode() == ModePlatform:
		return condition(PartUserWorkload, false, "NotNeeded", "the platform's own monitoring looks at this namespace")
	case known.TakenBack:
		return missing(PartUserWorkload, "TakenBack", fmt.Sprintf(
			"somebody has switched the monitoring of user-defined projects off since the operator switched it on, and the operator does not overrule that; to have it on, %s; to have it off, no longer ask for it: %s",
			known.Setting.remedy(), w.setting("ENABLE_USER_WORKLOAD_MONITORING", "false")))
	case w.EnableUserWorkload:
		return missing(PartUserWorkload, "Disabled", "the monitoring of user-defined projects is off and the operator has not switched it on yet; "+known.Setting.remedy())
	default:
		return missing(PartUserWorkload, "Disabled", fmt.Sprintf("the monitoring of user-defined projects is off; %s; or let the operator do it: %s",
			known.Setting.remedy(), w.setting("ENABLE_USER_WORKLOAD_MONITORING", "true")))
	}
}

// remedy is the command that switches it on, given how it is set.
func (s Setting) remedy() string {
	const at = "oc -n " + MonitoringNamespace + " %s configmap " + UserWorkloadConfig
	switch s {
	case SettingNoObject:
		return "run: " + fmt.Sprintf(at, "create") + " --from-literal=config.yaml='" + enableKey + ": true'"
	case SettingBlank:
		return "run: " + fmt.Sprintf(at, "patch") + ` --type merge -p '{"data":{"config.yaml":"` + enableKey + `: true\n"}}'`
	case SettingOff:
		return "replace false by true in the line of \"" + enableKey + "\" of its configuration: " + fmt.Sprintf(at, "edit")
	case SettingUnreadable:
		return "mend its configuration, which is not readable, and have the line \"" + enableKey + ": true\" in it: " + fmt.Sprintf(at, "edit")
	default:
		return "add the line \"" + enableKey + ": true\" to its configuration: " + fmt.Sprintf(at, "edit")
	}
}

// userWorkloadRuns says that there is the Prometheus of user-defined projects. One that is switched
// off is on its way out.
func (w *World) userWorkloadRuns() bool {
	return w.UserWorkload.Setting != SettingOff && slices.ContainsFunc(w.Prometheuses, func(p Prometheus) bool { return p.userWorkload() })
}
