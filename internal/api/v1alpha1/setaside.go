package v1alpha1

// SetAsideFile is the name of the SetAside among the ledger's contracts.
const SetAsideFile = "_set-aside.yaml"

// SetAside lists the pieces of the inputs that are not read, because the process
// that read or built them ended twice: contracts/_set-aside.yaml.
type SetAside struct {
	TypeMeta `json:",inline"`
	// Pieces by path.
	Pieces []SetAsidePiece `json:"pieces"`
}

// SetAsidePiece is one piece: what it last said stays in force until its hash
// changes or an operator lifts it (`fleetbroker reconcile --once --lift PATH`).
type SetAsidePiece struct {
	// Path of a file; of a kustomization or a tenant's directory when it ends in '/'.
	Path string `json:"path"`
	// Hash of what was tried: the git object of a file or directory; of a kustomization, "sha256:…" over all directories that it reads.
	Hash string `json:"hash"`
	// Why it is set aside: how the process ended.
	Why string `json:"why"`
	// At is when it was set aside.
	At Time `json:"at"`
}
