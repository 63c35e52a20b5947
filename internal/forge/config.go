package forge

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Kind is a forge's API.
type Kind string

// The kinds. Gitea is Forgejo's API too.
const (
	GitHub Kind = "github"
	GitLab Kind = "gitlab"
	Gitea  Kind = "gitea"
)

// Config says which repository on which forge, and where the token is. It
// never holds a secret.
type Config struct {
	Kind Kind
	// URL of the forge: its API's on github (https://api.github.com/,
	// https://host/api/v3/), its page's on gitlab and gitea.
	URL string
	// Repo is "owner/name", on gitlab with all groups.
	Repo string
	// TokenFile holds the access token. It is read at each request.
	TokenFile string
	// User is the login that the token belongs to, for tokens that may not ask
	// (those of GitHub Apps: "<app>[bot]"). "" asks the forge.
	User string
	// CAFile holds further certificate authorities (PEM); "" is the system's.
	CAFile string
	// Limits of the transport; the zero value is for production.
	Limits Limits
	// Read reads the files that are named above; nil is os.ReadFile.
	Read func(file string) ([]byte, error)
	// Answer, when set, is called with each answer of the forge. It leaves the body alone.
	Answer func(*http.Response)
	// Guard, when set, refuses addresses before they are connected to; then no proxy is
	// used, which would be connected to instead.
	Guard func(ip netip.Addr) error
}

// Complete fills in what the URL of the git remote tells: the forge's URL and
// the repository. An error says what must be named.
func (c Config) Complete(remote string) (Config, error) {
	switch c.Kind {
	case GitHub, GitLab, Gitea:
	default:
		return c, fmt.Errorf("no forge is called %q: want github, gitlab or gitea (Forgejo is gitea)", c.Kind)
	}
	host, repo := split(remote)
	if c.Repo == "" {
		c.Repo = repo
	}
	if strings.Count(c.Repo, "/") < 1 || (c.Kind != GitLab && strings.Count(c.Repo, "/") != 1) {
		return c, fmt.Errorf("cannot determine the repository's name on the forge from %s: name it as owner/name", redact(remote))
	}
	if c.URL == "" {
		if host == "" {
			return c, fmt.Errorf("cannot determine the forge's URL from %s: name it", redact(remote))
		}
		c.URL = defaultURL(c.Kind, host, strings.HasPrefix(remote, "http://"))
	}
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil {
		return c, errors.New("the forge's URL must be http or https, with a host and without a user")
	}
	if c.TokenFile == "" {
		return c, errors.New("name the file that holds the forge's token")
	}
	_, err = c.Token()
	return c, err
}

// GitHubAPI is the URL of GitHub's API: as it was named, else that of a git remote's host.
func GitHubAPI(named, remote string) string {
	if named != "" {
		return named
	}
	host, _ := split(remote)
	return defaultURL(GitHub, host, strings.HasPrefix(remote, "http://"))
}

// defaultURL is plain where git is.
func defaultURL(kind Kind, host string, plain bool) string {
	if kind != GitHub {
		return map[bool]string{true: "http://", false: "https://"}[plain] + host
	}
	if host == "github.com" {
		return "https://api.github.com/"
	}
	return "https://" + host + "/api/v3/"
}

// KindOf is the kind of forge that a git remote's host is known for; "" where its name
// tells nothing.
func KindOf(remote string) Kind {
	host, _ := split(remote)
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	switch host {
	case "github.com", "ssh.github.com":
		return GitHub
	case "gitlab.com", "altssh.gitlab.com":
		return GitLab
	}
	return ""
}

// CommitPage is the address of a commit's page on the forge of a git remote; "" where the
// kind of forge is unknown or the remote is none's. A forge that is reached by SSH is taken
// to have its pages at https on the same host.
func CommitPage(kind Kind, remote, commit string) string {
	part := "/commit/"
	if kind == GitLab || kind == "" && KindOf(remote) == GitLab {
		part = "/-/commit/"
	}
	if repo := repoPage(kind, remote); repo != "" {
		return repo + part + url.PathEscape(commit)
	}
	return ""
}

// PullPage is the address of a pull request's page, as CommitPage is of a commit's.
func PullPage(kind Kind, remote string, number int) string {
	if kind == "" {
		kind = KindOf(remote)
	}
	repo := repoPage(kind, remote)
	if repo == "" {
		return ""
	}
	part := map[Kind]string{GitHub: "/pull/", GitLab: "/-/merge_requests/"}[kind]
	return repo + cmp.Or(part, "/pulls/") + strconv.Itoa(number)
}

// repoPage is the address of a repository's page, "" where it is not known.
func repoPage(kind Kind, remote string) string {
	host, repo := split(remote)
	if kind == "" {
		kind = KindOf(remote)
	}
	if host == "" || repo == "" || !strings.Contains(repo, "/") || kind == "" {
		return ""
	}
	switch host { // SSH over the port of HTTPS
	case "ssh.github.com":
		host = "github.com"
	case "altssh.gitlab.com":
		host = "gitlab.com"
	}
	u := url.URL{Scheme: "https", Host: host, Path: "/" + repo}
	if strings.HasPrefix(remote, "http://") {
		u.Scheme = "http"
	}
	return u.String()
}

// split is host and path of a git remote: a URL, or user@host:path.
func split(remote string) (host, repo string) {
	var path string
	if before, after, scp := strings.Cut(remote, ":"); scp && !strings.HasPrefix(after, "//") && !strings.Contains(before, "/") {
		host, path = before[strings.LastIndex(before, "@")+1:], after
	} else if u, err := url.Parse(remote); err == nil && u.Host != "" {
		path = u.Path
		host = u.Hostname()
		if strings.HasPrefix(u.Scheme, "http") {
			host = u.Host
		}
	}
	return host, strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// redact takes user and password out of a remote's URL.
func redact(remote string) string {
	u, err := url.Parse(remote)
	if err != nil {
		return "the remote's URL"
	}
	u.User = nil
	return u.String()
}

// Owner and name of the repository.
func (c Config) Owner() (owner, name string) {
	i := strings.LastIndex(c.Repo, "/")
	return c.Repo[:i], c.Repo[i+1:]
}

func (c Config) read(file string) ([]byte, error) {
	if c.Read != nil {
		return c.Read(file)
	}
	return os.ReadFile(file)
}

// Token reads the token. An error names the file, never what is in it.
func (c Config) Token() (string, error) {
	b, err := c.read(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the forge's token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, " \r\n\t") {
		return "", fmt.Errorf("read the forge's token: %s must hold one token and nothing else", c.TokenFile)
	}
	return token, nil
}
