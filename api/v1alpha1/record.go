package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster may have another definition of sessions than this one, as when the platform's own was
// applied over it. Its schema drops the fields of the status that it does not know, at every read and
// every write. Conditions are in each of them. So what must not be forgotten is in condition Recorded
// as well: it is written together with the phase, and whoever decodes a status has it back.

// record is what of the status other definitions may not have, and decisions rest on.
type record struct {
	Run             int64             `json:"run,omitempty"`
	RanBefore       bool              `json:"ranBefore,omitempty"`
	JobName         string            `json:"jobName,omitempty"`
	JobUID          string            `json:"jobUID,omitempty"`
	PodName         string            `json:"podName,omitempty"`
	QueuedTime      *metav1.MicroTime `json:"queuedTime,omitempty"`
	ProvisionedTime *metav1.Time      `json:"provisionedTime,omitempty"`
	HandledRequest  string            `json:"handledRequest,omitempty"`
	StoppedReason   StoppedReason     `json:"stoppedReason,omitempty"`
}

func (s *AgenticSessionStatus) record() record {
	return record{s.Run, s.RanBefore, s.JobName, s.JobUID, s.PodName, s.QueuedTime, s.ProvisionedTime, s.HandledRequest, s.StoppedReason}
}

// Record makes the message of condition Recorded: a sentence, and what it speaks of as JSON.
func (s *AgenticSessionStatus) Record(sentence string) string {
	data, err := json.Marshal(s.record())
	if err != nil {
		return sentence // none of the fields can fail
	}
	return sentence + ": " + string(data)
}

// UnmarshalJSON decodes a status and fills the fields that were dropped from it from condition
// Recorded. Dropped says whether there were any.
func (s *AgenticSessionStatus) UnmarshalJSON(data []byte) error {
	type plain AgenticSessionStatus
	stored := plain{}
	if err := json.Unmarshal(data, &stored); err != nil {
		return fmt.Errorf("decoding the status of a session: %w", err)
	}
	*s = AgenticSessionStatus(stored)
	recorded := meta.FindStatusCondition(s.Conditions, ConditionRecorded)
	if recorded == nil {
		return nil
	}
	_, kept, found := strings.Cut(recorded.Message, ": {")
	known := record{}
	if !found || json.Unmarshal([]byte("{"+kept), &known) != nil {
		return nil // somebody else wrote it; it says nothing
	}
	s.recall(&known)
	return nil
}

// recall fills every field that is empty from the record.
func (s *AgenticSessionStatus) recall(known *record) {
	was := s.record()
	fill(&s.Run, known.Run)
	fill(&s.RanBefore, known.RanBefore)
	fill(&s.JobName, known.JobName)
	fill(&s.JobUID, known.JobUID)
	fill(&s.PodName, known.PodName)
	fill(&s.QueuedTime, known.QueuedTime)
	fill(&s.ProvisionedTime, known.ProvisionedTime)
	fill(&s.HandledRequest, known.HandledRequest)
	fill(&s.StoppedReason, known.StoppedReason)
	s.Dropped = !equality.Semantic.DeepEqual(was, s.record())
}

// Drop empties every field that is recorded, as a definition that lacks them does. What is written as a
// difference to that has all of them, and so puts them back once the definition has them again.
func (s *AgenticSessionStatus) Drop() {
	s.Run, s.RanBefore, s.JobName, s.JobUID, s.PodName = 0, false, "", "", ""
	s.QueuedTime, s.ProvisionedTime, s.HandledRequest, s.StoppedReason = nil, nil, "", ""
}

func fill[T comparable](field *T, known T) {
	var empty T
	if *field == empty {
		*field = known
	}
}
