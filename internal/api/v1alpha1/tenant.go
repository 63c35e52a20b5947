package v1alpha1

// Tenant is a team.
type Tenant struct {
	TypeMeta `json:",inline"`
	// Metadata names the tenant.
	Metadata Metadata `json:"metadata"`
	// Spec is its rights and limits.
	Spec TenantSpec `json:"spec"`
}

// TenantSpec is a tenant's rights and limits. A limit that is absent does not
// limit.
type TenantSpec struct {
	// Consumers are the clusters in which the tenant may have capacity; the first is the default.
	Consumers []string `json:"consumers"`
	// Providers the tenant may or may not use.
	Providers ClusterLists `json:"providers,omitzero"`
	// Namespaces its intents may offload, exact or with a * pattern; default its own name.
	Namespaces []string `json:"namespaces,omitempty"`
	// RemoteNamespaces are names at providers that its intents may give their namespaces (EnforceSameName, SelectedName), exact or with a * pattern, beside its own name, names that begin with it and a dash, and the exact ones of namespaces.
	RemoteNamespaces []string `json:"remoteNamespaces,omitempty"`
	// Secrets that its intents may make virtual nodes with (virtualNode.kubeconfigSecretRef); no others.
	Secrets []TenantSecret `json:"secrets,omitempty"`
	// Quota bounds what the tenant holds at a time.
	Quota *TenantQuota `json:"quota,omitempty"`
	// Budget bounds what the tenant spends.
	Budget *TenantBudget `json:"budget,omitempty"`
	// MaxPriority caps the priority of its intents.
	MaxPriority *int32 `json:"maxPriority,omitempty"`
	// Weight of the tenant's fair share (default 1): of intents of equal priority those go first whose tenant holds the smallest share of the fleet's GPUs, CPU or memory, whichever is largest, divided by its weight.
	Weight int32 `json:"weight,omitempty"`
	// Approvers may approve its intents, by the principal of their key under signers, usually an e-mail address. With verification.mode: signed a change of intents counts when one of them signed it or merged it with a signed merge commit; empty: any of the signers will do.
	Approvers []string `json:"approvers,omitempty"`
	// Signers may sign commits to its intents, where verification.mode is signed.
	Signers []Signer `json:"signers,omitempty"`
	// Members are groups whose members see the tenant on the dashboard: those of their login (OIDC) or of their token of the daemon's cluster. Who is in no group of any tenant sees totals only.
	Members []string `json:"members,omitempty"`
	// Notify says who is told of what.
	Notify []Notify `json:"notify,omitempty"`
}

// ConsumerOf is the cluster in which an intent of the tenant wants its capacity:
// the one it names, else the tenant's first; empty where there is neither.
func (t *TenantSpec) ConsumerOf(in *IntentSpec) string {
	if in.Consumer == "" && len(t.Consumers) > 0 {
		return t.Consumers[0]
	}
	return in.Consumer
}

// TenantSecret names a Secret in one of Liqo's tenant namespaces of a consumer.
type TenantSecret struct {
	// Consumer cluster in which it stands.
	Consumer string `json:"consumer"`
	// Namespace of it: Liqo's for the provider that it leads to, such as liqo-tenant-paris.
	Namespace string `json:"namespace"`
	// Name of the Secret.
	Name string `json:"name"`
}

// TenantQuota bounds what a tenant holds at a time: what it gave up counts until it is seen gone.
type TenantQuota struct {
	// GPU cards; units of shared cards count as fractions.
	GPU *int64 `json:"gpu,omitempty"`
	// CPU cores.
	CPU *Quantity `json:"cpu,omitempty"`
	// Memory.
	Memory *Quantity `json:"memory,omitempty"`
	// ByModel bounds the cards of one model.
	ByModel map[string]int64 `json:"byModel,omitempty"`
	// Contracts it may hold at a time; less than limits.contracts of the fleet.
	Contracts *int64 `json:"contracts,omitempty"`
	// MaxBorrow is what may be held above the quota (gpu, cpu, memory) out of what the tenants with a quota of it leave unused all together. What is borrowed is marked in its contract and gives way, with its intent's grace, whatever its priority, when an intent within its own tenant's quota fits nowhere else.
	MaxBorrow Resources `json:"maxBorrow,omitempty"`
	// MaxDuration of any one intent.
	MaxDuration Duration `json:"maxDuration,omitzero"`
	// Book lets the tenant's intents book capacity ahead (schedule.book). What is booked counts against the quota for its own term.
	Book bool `json:"book,omitempty"`
}

// TenantBudget bounds what a tenant spends.
type TenantBudget struct {
	// Monthly is the most per calendar month in the fleet's timezone.
	Monthly *Decimal `json:"monthly,omitempty"`
	// Hourly is the most per hour at any time.
	Hourly *Decimal `json:"hourly,omitempty"`
	// Currency of the limits; default the fleet's.
	Currency string `json:"currency,omitempty"`
	// AtLimit says what happens: warn, stop (default: place nothing new) or end.
	AtLimit string `json:"atLimit,omitempty"`
}

// Signer is a key that may sign.
type Signer struct {
	// Principal is the person or program, usually an e-mail address.
	Principal string `json:"principal"`
	// PublicKey in OpenSSH's or OpenPGP's text form, without options of authorized_keys.
	PublicKey string `json:"publicKey"`
	// Dropped takes the key away, one of the trust root included: it signs nothing from here on. For the fleet's signers only.
	Dropped bool `json:"dropped,omitempty"`
}

// NotifyAll subscribes to all events.
const NotifyAll = "all"

// NotifyEvents are the events that can be subscribed to.
var NotifyEvents = []string{
	"placed", "active", "degraded", "moved", "preempted", "interrupted", "queued", "expiring", "completed", "extended", "budget", "refused", "sla", "frozen",
}

// Notify is one subscription to events.
type Notify struct {
	// Events to be told of: placed, active, degraded, moved, preempted, interrupted, queued, expiring, completed, extended, budget (80 and 100 % of a month's), refused, sla (broken), frozen (its file cannot be read while it holds contracts; told at once, then once a day; or its own repository is frozen, told once, and when it is read again), or all.
	Events []string `json:"events"`
	// URLSecretRef names the Secret that holds the destination (key url): https://… gets CloudEvents, hooks.slack.com and slack+https://… a chat message, teams+https://… a card of Microsoft Teams, pagerduty+https://…/?routing_key=… an alert, smtp:// and smtps:// with ?from=…&to=… a mail.
	URLSecretRef SecretKeyRef `json:"urlSecretRef"`
	// AllowInsecure lets the destination be http:// or slack+http://, which sends events in clear text. Default: refused.
	AllowInsecure bool `json:"allowInsecure,omitempty"`
}
