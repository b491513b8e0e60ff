package v1alpha1

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recordedStatus has a value in every field that is recorded.
func recordedStatus() AgenticSessionStatus {
	micro, second := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)), metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC))
	s := AgenticSessionStatus{
		Phase: PhaseRunning, ObservedGeneration: 3,
		Run: 4, RanBefore: true, JobName: "a-run-4", JobUID: "u", PodName: "a-run-4-x",
		QueuedTime: &micro, ProvisionedTime: &second, HandledRequest: `Stopped@{": {"}`, StoppedReason: StoppedByInactivity,
	}
	s.Conditions = []metav1.Condition{{Type: ConditionRecorded, Status: metav1.ConditionTrue, Reason: ReasonPresent, Message: s.Record("what is remembered")}}
	return s
}

// decode reads a status without some of its fields.
func decode(t *testing.T, s *AgenticSessionStatus, without ...string) *AgenticSessionStatus {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	for _, field := range without {
		delete(fields, field)
	}
	if data, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	read := &AgenticSessionStatus{PodName: "of before"}
	if err := json.Unmarshal(data, read); err != nil {
		t.Fatal(err)
	}
	return read
}

// TestStatusSurvivesForeignDefinitions: fields that a definition drops are back when a status is
// decoded, one by one and all together.
func TestStatusSurvivesForeignDefinitions(t *testing.T) {
	whole := recordedStatus()
	kind := reflect.TypeFor[record]()
	if read := decode(t, &whole); !equality.Semantic.DeepEqual(read, &whole) {
		t.Errorf("a whole status is read as %+v", read)
	}
	var all []string
	want := whole.DeepCopy()
	want.Dropped = true
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		all = append(all, name)
		if read := decode(t, &whole, name); !equality.Semantic.DeepEqual(read, want) {
			t.Errorf("without %s a status is read as %+v", name, read)
		}
	}
	dropped := whole.DeepCopy()
	dropped.Drop()
	if dropped.record() != (record{}) {
		t.Errorf("of the record %+v is left", dropped.record())
	}
	if read := decode(t, &whole, all...); !equality.Semantic.DeepEqual(read, want) {
		t.Errorf("without all that is recorded a status is read as %+v", read)
	}
}

// TestRecordsOfOthersAreIgnored: what is no record changes nothing and stops nothing.
func TestRecordsOfOthersAreIgnored(t *testing.T) {
	for _, message := range []string{"", "none", "x: {", "x: {}", `x: {"run":"many"}`, `x: [1]`, `x: {"phase":"Failed"}`, "x: {\"run\":1e99}"} {
		s := AgenticSessionStatus{Phase: PhaseRunning, Conditions: []metav1.Condition{{Type: ConditionRecorded, Message: message}}}
		read := decode(t, &s)
		read.PodName = ""
		if !equality.Semantic.DeepEqual(read, &s) {
			t.Errorf("with the record %q a status is read as %+v", message, read)
		}
	}
}
