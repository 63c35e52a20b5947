package changes

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// How forges name a pull request in the commit that merges it: in its subject, or in a
// line of its own.
var (
	mergesPull = regexp.MustCompile(`^Merged? (?:pull request|PR) (?:'.*' )?\(?#?(\d{1,9})\b`) // GitHub, Gitea, Azure DevOps
	endsInPull = regexp.MustCompile(`\((?:pull request )?[#!](\d{1,9})\)$`)                    // squashed; Bitbucket
	givesPull  = regexp.MustCompile(`^See merge request \S*!(\d{1,9})$`)                       // GitLab
)

// PullOf is the number of the pull request that a commit names, 0 for none. Whoever wrote
// the commit chose its words.
func PullOf(c *gitrepo.Commit) int {
	subject := c.Subject()
	found := mergesPull.FindStringSubmatch(subject)
	if found == nil {
		found = endsInPull.FindStringSubmatch(subject)
	}
	if found == nil {
		for line := range strings.Lines(c.Message) {
			if found = givesPull.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
				break
			}
		}
	}
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return n
}
