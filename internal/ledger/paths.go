package ledger

import (
	"crypto/sha256"
	"encoding/base32"
	"path"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Root is the directory of all contracts, StateFile the name of an intent's
// state beside its contracts, SetAsideFile that of the list in Root of what of
// the inputs is set aside.
const (
	Root         = "contracts"
	RequestsRoot = "requests"
	StateFile    = "_intent.yaml"
	SetAsideFile = v1alpha1.SetAsideFile

	spendPrefix = "spend-"
	fileSuffix  = ".yaml"
	monthLayout = "2006-01"
)

// Shard is the directory in which an intent's contracts lie: the first two
// hexadecimal digits of the SHA-256 of its name. It keeps directories small,
// because a commit rewrites every tree on the way to a changed file.
func Shard(intent string) string { return v1alpha1.IntentShard(intent) }

// IntentDir is the directory of an intent's contracts and state.
func IntentDir(tenant, intent string) string {
	return path.Join(Root, tenant, Shard(intent), intent)
}

// ContractPath is where a contract's file lies.
func ContractPath(c *v1alpha1.Contract) string {
	return path.Join(IntentDir(c.Metadata.Namespace, c.Spec.Intent.Name), c.Metadata.Name+fileSuffix)
}

// StatePath is where an intent's state lies.
func StatePath(tenant, intent string) string {
	return path.Join(IntentDir(tenant, intent), StateFile)
}

// SpendPath is where a tenant's spend of a month ("2026-11") lies.
func SpendPath(tenant, month string) string {
	return path.Join(Root, tenant, spendPrefix+month+fileSuffix)
}

// RequestPath is where an intent lies that came through the API: a directory a
// month, so that none grows without end.
func RequestPath(tenant, id string, at v1alpha1.Time) string {
	return path.Join(RequestsRoot, tenant, at.UTC().Format("200601"), id+fileSuffix)
}

// maxName is the longest name of a contract: slice, virtual node and Node bear
// it, and Liqo appends to it (63 is Kubernetes' limit of a label).
const maxName = 50

// nameDigits spells hashes: RFC 4648's base32hex in lower case.
var nameDigits = base32.HexEncoding.WithPadding(base32.NoPadding)

// ContractName derives a contract's name from what it serves, so that a daemon
// that starts again gives the same contract the same name:
// <tenant>-<intent>-<replica>-<hash>. Only the readable prefix is cut when the
// whole would be longer than 50 characters; the hash alone tells contracts
// apart. An intent that was deleted and comes again has another first commit,
// and so other names.
func ContractName(tenant, intent string, first v1alpha1.FirstSeen, replica, part, ordinal int32) string {
	// Each contract of a round is named here: no formatting.
	key := make([]byte, 0, 160)
	for _, part := range []string{tenant, intent, first.Commit} {
		key = append(append(key, part...), 0)
	}
	key = append(strconv.AppendInt(key, int64(replica), 10), 0)
	key = append(strconv.AppendInt(key, int64(part), 10), 0)
	key = strconv.AppendInt(key, int64(ordinal), 10)
	sum := sha256.Sum256(key)

	var digits [8]byte
	nameDigits.Encode(digits[:], sum[:5])
	tail := "-" + strconv.Itoa(int(replica)) + "-" + strings.ToLower(string(digits[:]))
	prefix := tenant + "-" + intent
	if room := maxName - len(tail); len(prefix) > room {
		prefix = prefix[:room]
	}
	return strings.TrimRight(prefix, "-") + tail
}
