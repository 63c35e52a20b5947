package planner

// Step is a part of making a plan, in their order; serve and batch take turns. Decide reads no clock: who wants to know
// how long a step takes is called as each begins (Session.Step).
type Step int

// The steps: what each does is at round.decide.
const (
	StepObserve Step = iota
	StepGuard
	StepSettle
	StepServe
	StepBatch
	StepConsolidate
	StepConclude
	StepCheck
	// Steps is how many there are.
	Steps
)

// String is the step's name, as metrics have it.
func (s Step) String() string {
	return [Steps]string{"observe", "guard", "settle", "serve", "batch", "consolidate", "conclude", "check"}[s]
}

// begin calls who wants to know, if anybody does.
func (s Step) begin(f func(Step)) {
	if f != nil {
		f(s)
	}
}
