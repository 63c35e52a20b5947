package lifecycle

// Codes of decisions and states, for programs.
const (
	CodeNothingFits   = "NothingFits"
	CodeGang          = "GangIncomplete"
	CodeQuota         = "QuotaExceeded"
	CodeLimit         = "LimitExceeded"
	CodeBudget        = "BudgetExceeded"
	CodeIntentBudget  = "IntentBudgetExceeded"
	CodeNotBefore     = "NotBefore"
	CodeWindow        = "WindowClosed"
	CodeQueueTimeout  = "QueueTimeout"
	CodeInvalid       = "Invalid"
	CodeUnknownTenant = "UnknownTenant"
	CodeConsumer      = "ConsumerNotAllowed"
	CodeSuspended     = "Suspended"
	CodeTermEnded     = "TermEnded"
	CodeRemoved       = "IntentRemoved"
	CodeProviderLost  = "ProviderLost"
	CodeSliceDenied   = "SliceDenied"
	CodeRefused       = "ProviderRefused"
	CodeShrunk        = "FlavorShrunk"
	CodeNode          = "NodeShrunk"
	CodeRemapped      = "NodeReplaced"
	CodeConsolidated  = "Consolidated"
	CodeDrain         = "Drain"
	CodeFrozen        = "Frozen"
	CodeDeaf          = "Deaf"
	CodeChanged       = "IntentChanged"
	CodeUpdating      = "Updating"
	CodeFewer         = "FewerReplicas"
	CodeForced        = "ForcedByOperator"
	CodeHeldBack      = "HeldBack"
	CodeDuplicate     = "Duplicate"
	CodeStageFind     = "StageFind"
	CodeSpread        = "SpreadUnsatisfied"
	CodeWithin        = "WithinUnsatisfied"
	CodeSLA           = "SLABroken"
	// The ends of ReqRemoteNamespace and ReqSecret.
	CodeRemoteNamespace = "RemoteNamespaceTaken"
	CodeSecret          = "SecretNotEntitled"
	CodeTogether        = "NotTogether"
	CodeApart           = "NotApart"
	CodeInvariant       = "InvariantViolated"
	// CodeBooked: others have booked it. The following are why a booking is not made, not
	// kept, or not kept where it is.
	CodeBooked       = "Booked"
	CodeNotBookable  = "BookingNotAllowed"
	CodeBookingShort = "BookingShort"
	CodeBookingLost  = "BookingLost"
	CodePreempting   = "Preempting"
	CodeReclaiming   = "Reclaiming"
	// CodeMakingRoom: a contract has moved for it, and is waited for to be seen gone.
	CodeMakingRoom = "MakingRoom"
	// What conditions may cost a round is used up: it is looked at in a later one.
	CodeConditions = "ConditionsBudget"
	// What looking for offers may cost a round is used up: it is looked at in a
	// later one. CodeWork: its tenant has used up its own; CodePlanning: all tenants together
	// have used up the round's.
	CodeWork     = "WorkBudget"
	CodePlanning = "Planning"
)

// AwaitsTurn reports whether an intent waits because it was not looked at in a round.
func AwaitsTurn(code string) bool { return code == CodeWork || code == CodePlanning }
