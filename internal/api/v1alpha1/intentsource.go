package v1alpha1

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/reach"
)

// Names of copies of sources on the ledger: sources/<name>/source.yaml beside
// sources/<name>/intents/<tenant>/.
const (
	SourcesRoot = "sources"
	SourceFile  = "source.yaml"
)

// LabelSource must be on a Secret with credentials of a source, with the source's
// name: whoever writes an entry cannot point at any other Secret, and no source reads
// another's.
const LabelSource = Group + "/source"

// Bounds of sources.
const (
	// MaxSources is how many a fleet may name.
	MaxSources = 200
	// MaxSourceFiles, MaxSourceBytes and MaxSourceFile bound what is read of one:
	// files, bytes together, bytes of a file.
	MaxSourceFiles = 2000
	MaxSourceBytes = 8 << 20
	MaxSourceFile  = 1 << 20
	// MaxSourceVolume bounds what is copied of one to the ledger, whose history keeps it:
	// bytes a day.
	MaxSourceVolume = 64 << 20
)

// IntentSource is a git repository in which tenants keep intents of their own, in
// the layout of the fleet repo: intents/<tenant>/**/*.yaml. Nothing else of it is
// read. What is acted on is copied to the ledger.
type IntentSource struct {
	// Name of the source: a DNS label, unique in the fleet. Its copy on the ledger is sources/<name>/.
	Name string `json:"name"`
	// URL of the repository: https or ssh, without credentials, on a host that the daemon's --source-hosts allows.
	URL string `json:"url"`
	// Branch that is read (default main).
	Branch string `json:"branch,omitempty"`
	// Tenants whose intents may come from it; directories of others are ignored.
	Tenants []string `json:"tenants"`
	// CredentialsRef names the Secret with the credentials, in the daemon's namespace and labelled fleetbroker.io/source: <name>. Without it, the directory <name> in the daemon's --source-credentials-dir is used, if there is one.
	CredentialsRef *SourceCredentialsRef `json:"credentialsRef,omitempty"`
	// Signers of the source: when there are any, its head is acted on only if one of them signed it. Required where intents must be signed.
	Signers []Signer `json:"signers,omitempty"`
	// Forge where its pull requests are planned, as those of the fleet repo; without it, they are left alone.
	Forge *SourceForge `json:"forge,omitempty"`
}

// SourceForge is where the pull requests of a source are. Its token is the key
// forge-token of the source's credentials.
type SourceForge struct {
	// Type of the forge: github, gitlab or gitea (Forgejo too).
	// +kubebuilder:validation:Enum=github;gitlab;gitea
	Type string `json:"type"`
	// URL of the forge, https; on GitHub of its API (default: derived from the source's url). Its host must be one that the daemon's --source-hosts allows.
	URL string `json:"url,omitempty"`
	// Repository on the forge, owner/name (default: derived from the source's url).
	Repository string `json:"repository,omitempty"`
	// User is the login that the token belongs to, for tokens that may not ask (GitHub Apps).
	User string `json:"user,omitempty"`
}

// Check says what is wrong with it, and of which field; nil when nothing is.
func (f *SourceForge) Check() (field string, err error) {
	if f == nil {
		return "", nil
	}
	if f.Type != "github" && f.Type != "gitlab" && f.Type != "gitea" {
		return "type", fmt.Errorf("%q is no type of forge; write github, gitlab or gitea", f.Type)
	}
	if f.URL == "" {
		return "", nil
	}
	u, err := url.Parse(f.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return "url", errors.New("it is no https URL with a host")
	case u.User != nil:
		return "url", errors.New("it holds credentials; put the token into the source's Secret, under the key forge-token")
	}
	return "", nil
}

// SourceCredentialsRef names a Secret with the keys username and password, or
// bearer, and ca.crt (https), or ssh-privatekey and known_hosts (ssh); forge-token and
// webhook-secret for its pull requests and webhooks.
type SourceCredentialsRef struct {
	// Name of the Secret.
	Name string `json:"name"`
}

// Ref is the branch that is read.
func (s *IntentSource) Ref() string { return cmp.Or(s.Branch, "main") }

// Source is the entry of a name, nil when there is none.
func (s *FleetSpec) Source(name string) *IntentSource {
	i := slices.IndexFunc(s.Sources, func(e IntentSource) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Sources[i]
}

// SourceCopy says what of a source the copy next to it is: sources/<name>/source.yaml.
type SourceCopy struct {
	TypeMeta `json:",inline"`
	// Metadata has the source's name.
	Metadata Metadata `json:"metadata"`
	// URL and Branch that were read.
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Commit of the branch that was copied.
	Commit string `json:"commit"`
	// Signer is the principal whose key signed the commit; empty where no signature is asked for.
	Signer string `json:"signer,omitempty"`
	// ReadAt is when it was read.
	ReadAt Time `json:"readAt"`
	// Volume is how many bytes of copies the source has put into the ledger's history of late, this copy's among them: what changed, less 64 MiB a day. With more than 64 MiB nothing new is copied.
	Volume int64 `json:"volume,omitempty"`
	// Files that were copied, by path in the source.
	Files []SourceCopyFile `json:"files,omitempty"`
}

// SourceCopyFile is one file of a copy.
type SourceCopyFile struct {
	// Path in the source, which is its path below sources/<name>/.
	Path string `json:"path"`
	// Hash of its content: the git object.
	Hash string `json:"hash"`
	// Commit that last changed it.
	Commit string `json:"commit"`
	// Author of that commit.
	Author string `json:"author"`
}

// Of reports whether the copy is one of what an entry names.
func (c *SourceCopy) Of(e *IntentSource) bool {
	return c != nil && e != nil && c.Metadata.Name == e.Name && c.URL == e.URL && c.Branch == e.Ref()
}

// File is the entry of a path in the source, nil when there is none.
func (c *SourceCopy) File(path string) *SourceCopyFile {
	i, found := slices.BinarySearchFunc(c.Files, path, func(f SourceCopyFile, p string) int { return cmp.Compare(f.Path, p) })
	if !found {
		return nil
	}
	return &c.Files[i]
}

// Host is the host that the URL names; an error says what is wrong with the URL.
func (s *IntentSource) Host() (string, error) {
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return "", errors.New("it is missing; write https://host/path or ssh://git@host/path")
	case err != nil || u.Scheme == "" || u.Opaque != "":
		return "", errors.New("it is not a URL; write https://host/path or ssh://git@host/path")
	case u.Scheme != "https" && u.Scheme != "ssh":
		return "", fmt.Errorf("scheme %q is not allowed; use https or ssh", u.Scheme)
	case u.Hostname() == "":
		return "", errors.New("it names no host")
	case u.User != nil && (u.Scheme == "https" || hasPassword(u)):
		return "", errors.New("it holds credentials; name their Secret under credentialsRef")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("it has a query or a fragment; leave it out")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !reach.Allowed(ip) {
		return "", fmt.Errorf("%s is an address that no source may have: link-local, multicast, unspecified, or of a cloud's metadata", ip)
	}
	return strings.ToLower(u.Hostname()), nil
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has
}
