package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Known is how an intent waits that holds nothing, asks for one replica, and for facts
// that no offer has. Nothing that is placed, ends or is given back changes that: as long
// as its request class is what it was, its turns find what they found.
//
// It is a memo of a job and no mode of it: whoever asks Job.Known takes from it what he
// would have worked out to the same (TestKnownWaitsAsFromNothing), so that no result
// depends on it and only its cost does; nil is always right. That is why it is a field of
// the job, as what is found out of a class is kept at the class (match.Class.Memo), and no
// value that is handed in: it stands for the turn itself, before there is a Request, and
// settle, contend and explain each skip another part of that. Nothing sets it but
// Settler.KnownJob, where the job is made, and a change of the job's facts drops it
// (package planner, known.go).
type Known struct {
	// Class that it asks for, when its Changes were these.
	Class   *match.Class
	Changes int
	// Size is what it asks for in total: GPUs, then cores.
	Size [2]int64
	// State is what the ledger remembers of it.
	State *v1alpha1.IntentState
	// Open is what its turn found.
	Open Failure
	// Text is why it waits, which the ledger states already.
	Text string
	// Far: no offer nearly does, as of so many descriptions.
	Far       bool
	Described uint64
}

// Lasts reports whether a class still comes to what was known.
func (k *Known) Lasts(m *match.Matcher) bool {
	return k.Class.Lasts(m) && k.Class.Changes() == k.Changes
}

// Plain reports whether a job is one of which it can be known how it waits: its file asks
// for nothing that depends on the time, on money, or on other intents.
func (j *Job) Plain() bool {
	if j.In == nil || j.State == nil || len(j.All) > 0 || j.Warm() || j.Finding() || j.Offered() || j.Displaced || j.Senior {
		return false
	}
	s, p := &j.In.Spec, &j.In.Spec.Placement
	return j.In.Where == nil && j.In.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom] == "" && !s.Replicas.Range && j.Replicas() == 1 && len(s.Alternatives) == 0 &&
		s.Split == nil && s.Budget == nil && s.Preemption == nil && s.Update == nil && s.SLA == nil && s.Schedule.Duration.Duration == 0 && s.Schedule.NotBefore.IsZero() &&
		s.Schedule.Deadline.IsZero() && len(s.Schedule.Windows) == 0 && !s.Schedule.Book && s.Queue == (v1alpha1.Queue{}) &&
		len(p.Spread)+len(p.Together)+len(p.Apart) == 0 && p.Within == nil
}

// Asks reports whether all that a job still has to do is to place its one replica, which
// never had a place.
func (j *Job) Asks() bool {
	return len(j.Tasks) == 1 && j.Tasks[0].Kind == TaskFresh && j.Tasks[0].Old == nil && len(j.Live)+len(j.Booked)+j.Releasing == 0 && j.Seconds == 0
}
