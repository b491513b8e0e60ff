package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzStatus decodes statuses as anybody may have written them, records among them: what is stored
// counts before what is recorded, and a field is called dropped when the record had to fill one.
func FuzzStatus(f *testing.F) {
	whole := recordedStatus()
	text, err := json.Marshal(&whole)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, message := range []string{"", "x: {", "x: {}", `x: {"run":1}`, `x: {"run":-9223372036854775808,"jobUID":"u"}`, `x: {"run":2}: {"run":3}`, `x: {"queuedTime":"2026-03-01T12:00:00.000001Z"}`,
		`x: {"queuedTime":"9999-12-31T23:59:59.999999Z","provisionedTime":null,"stoppedReason":"x"}`, `x: {"handledRequest":"Stopped@{\": {\"}"}`} {
		text, err := json.Marshal(map[string]any{"phase": "Running", "run": 7, "podName": "p", "conditions": []any{map[string]any{"type": ConditionRecorded, "message": message}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`null`))
	f.Add([]byte(`{"conditions":[{"type":"Recorded","message":"x: {\"run\":1}"},{"type":"Recorded","message":"x: {\"run\":2}"}],"queuedTime":"0001-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		type plain AgenticSessionStatus
		stored, read := plain{}, AgenticSessionStatus{}
		plainly := json.Unmarshal(text, &stored)
		if err := json.Unmarshal(text, &read); (err == nil) != (plainly == nil) {
			t.Fatalf("a status is decoded with %v, without its record with %v", err, plainly)
		} else if err != nil {
			return
		}
		was := AgenticSessionStatus(stored)
		overridden(t, was.record(), read.record())
		if read.Dropped == equality.Semantic.DeepEqual(was.record(), read.record()) {
			t.Errorf("Dropped is %t: %+v is read as %+v", read.Dropped, was.record(), read.record())
		}
		read.Dropped = false
		again := was
		again.recall(new(read.record()))
		again.Dropped = false
		if !equality.Semantic.DeepEqual(again, read) {
			t.Errorf("beside what is recorded, %+v is read as %+v", was, read)
		}
	})
}

// overridden complains about a field that was stored and is read as another.
func overridden(t *testing.T, was, is record) {
	t.Helper()
	fields := func(r record) map[string]any {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]any{}
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	read := fields(is)
	for name, value := range fields(was) {
		if read[name] != value {
			t.Errorf("%s is stored as %v and read as %v", name, value, read[name])
		}
	}
}

// FuzzRecord forgets what a definition of sessions has no place for: whatever it is, it comes back out
// of the record.
func FuzzRecord(f *testing.F) {
	f.Add(int64(1), true, "a-run-1", "u", "p", int64(1767322445000006), int64(1767322446), "Stopped@2026-03-01T12:00:00Z", "user", "what is remembered")
	f.Add(int64(0), false, "", "", "", int64(0), int64(0), "", "", "")
	f.Add(int64(-1), false, `": {"`, "\\", "\x00", int64(-62135596800000000), int64(253402300799), `Running@: {"run":9}`, "<&>\u2028", "x: {")
	f.Fuzz(func(t *testing.T, run int64, ran bool, job, uid, pod string, queued, provisioned int64, handled, stopped, sentence string) {
		s := AgenticSessionStatus{Phase: PhaseRunning, Run: run, RanBefore: ran, JobName: valid(job), JobUID: valid(uid), PodName: valid(pod), HandledRequest: valid(handled), StoppedReason: StoppedReason(valid(stopped))}
		// Years that a time in JSON can have.
		const first, last = -62135596800, 253402300799
		if queued != 0 && queued/1_000_000 > first && queued/1_000_000 < last {
			s.QueuedTime = new(metav1.NewMicroTime(time.UnixMicro(queued)))
		}
		if provisioned != 0 && provisioned > first && provisioned < last {
			s.ProvisionedTime = new(metav1.Unix(provisioned, 0))
		}
		s.Conditions = []metav1.Condition{{Type: "Other"}, {Type: ConditionRecorded, Message: s.Record(strings.ReplaceAll(valid(sentence), ": {", ""))}}
		kept := s.DeepCopy()
		s.Drop()
		read := decode(t, &s)
		if want := kept.record() != (record{}); read.Dropped != want {
			t.Errorf("Dropped is %t of %+v", read.Dropped, kept.record())
		}
		read.Dropped = false
		if !equality.Semantic.DeepEqual(read, kept) {
			t.Errorf("out of the record %q comes %+v, not %+v", meta.FindStatusCondition(s.Conditions, ConditionRecorded).Message, read.record(), kept.record())
		}
	})
}

// valid is a text as the API server lets it be.
func valid(s string) string { return strings.ToValidUTF8(s, "?") }
