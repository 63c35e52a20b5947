package v1alpha1

// TrustRoot is the root of trust of a fleet: whose signatures count before the
// repository has said anything. It is a file next to the daemon and never lies in
// the repository that it guards.
type TrustRoot struct {
	TypeMeta `json:",inline"`
	// Metadata names the file, for people.
	Metadata Metadata `json:"metadata"`
	// Spec is the root.
	Spec TrustRootSpec `json:"spec"`
}

// TrustRootSpec is whose signatures count.
type TrustRootSpec struct {
	// FleetID names the fleet in every ledger commit: ten base32hex characters that init makes and nobody changes.
	FleetID string `json:"fleetID"`
	// Policy are the keys of people who may change what gives rights: fleet.yaml, tenants, clusters, flavors, prices, pki, bases and overlays.
	Policy []RootKey `json:"policy,omitempty"`
	// Ledger are the daemons' keys: one shared key, or one a replica. None of them may be in policy as well.
	Ledger []RootKey `json:"ledger,omitempty"`
	// Unsigned asks for no signature at all. Every page of status shows it.
	Unsigned bool `json:"unsigned,omitempty"`
	// Accept are rewritten heads that an operator accepts, for every replica and auditor that has this file. It is read again while a daemon runs.
	Accept []AcceptedHead `json:"accept,omitempty"`
}

// AcceptedHead is a rewritten head that an operator accepts. It lets go of one head and what that contains, so an entry that stays excuses no later rewrite.
type AcceptedHead struct {
	// Branch whose history was rewritten, as fleet.yaml and the daemon's flags name it; empty: whichever contains the commit.
	Branch string `json:"branch,omitempty"`
	// Commit (40 hexadecimal digits) that is accepted: the branch's head, or an ancestor of it. What comes after it is held to the rules.
	Commit string `json:"commit"`
	// Drops is the head (40 hexadecimal digits) that had been accepted before and need not be contained any more. Without it nothing is let go of: the entry only states to a daemon without state that the commit is the ledger's.
	Drops string `json:"drops,omitempty"`
}

// RootKey is a key of a trust root.
type RootKey struct {
	// Principal is the person or program, usually an e-mail address.
	Principal string `json:"principal"`
	// PublicKey in OpenSSH's or OpenPGP's text form, without options of authorized_keys.
	PublicKey string `json:"publicKey"`
	// Revoked limits the key to what was signed before a commit, whatever the repository says of it.
	Revoked *Revocation `json:"revoked,omitempty"`
}

// Revocation ends what a key may sign.
type Revocation struct {
	// After is the newest commit (40 hexadecimal digits) that counts: the key signs nothing but it and its ancestors. Empty revokes the key from the beginning.
	After string `json:"after,omitempty"`
}
