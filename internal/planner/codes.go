package planner

import "github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"

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
	CodeDeadline      = lifecycle.CodeDeadline
	CodeMaxDuration   = lifecycle.CodeMaxDuration
	CodeSuspended     = "Suspended"
	CodeTermEnded     = "TermEnded"
	CodeRemoved       = "IntentRemoved"
	CodeProviderLost  = "ProviderLost"
	CodeSliceDenied   = "SliceDenied"
	CodeRefused       = "ProviderRefused"
	CodeShrunk        = "FlavorShrunk"
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
	CodeSLA           = "SLABroken"
	// The ends of ReqRemoteNamespace and ReqSecret.
	CodeRemoteNamespace = "RemoteNamespaceTaken"
	CodeSecret          = "SecretNotEntitled"
	CodeTogether        = "NotTogether"
	CodeApart           = "NotApart"
	CodeInvariant       = "InvariantViolated"
	CodePreempting      = "Preempting"
	CodeReclaiming      = "Reclaiming"
	// What conditions may cost a round is used up: it is looked at in a later one.
	CodeConditions = "ConditionsBudget"
	// What looking for offers may cost a round is used up: it is looked at in a
	// later one.
	CodeWork = "WorkBudget"
)

// reqOther is what all offers but one fail while that one is tried; no plan ever
// shows it.
const reqOther = "other"
