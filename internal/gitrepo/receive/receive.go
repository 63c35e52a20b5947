package receive

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

const ok = "ok"

// Judge says what the server refused of a push of n refs, in its own words, by its
// report and what its hooks said; "" without an error: every ref was acknowledged. It is
// an error where the server answered nothing that counts; err is then the session's.
func Judge(n int, report *packp.ReportStatus, said string, err error) (refused string, _ error) {
	if report == nil {
		if err == nil {
			// Without report-status nothing was acknowledged; the caller looks.
			return "", errors.New("the server sent no report")
		}
		return "", err
	}
	var words []string
	if report.UnpackStatus != ok {
		words = append(words, "unpack: "+report.UnpackStatus)
	}
	for _, c := range report.CommandStatuses {
		if c.Status != ok {
			words = append(words, fmt.Sprintf("%s: %s", c.ReferenceName, c.Status))
		}
	}
	if len(words) == 0 && len(report.CommandStatuses) >= n {
		// Every command stands as done; what fails after the report (closing
		// the connection) does not undo it.
		return "", nil
	}
	if len(words) == 0 {
		return "", fmt.Errorf("the server reported on %d of %d refs", len(report.CommandStatuses), n)
	}
	if said = strings.TrimSpace(said); said != "" {
		words = append(words, said)
	}
	return strings.Join(words, "; "), nil
}

// Taken are the refs that a server moved, by its report, of a push that it refused in
// part; empty where there is no report.
func Taken(report *packp.ReportStatus) map[string]bool {
	taken := map[string]bool{}
	if report == nil || report.UnpackStatus != ok {
		return taken
	}
	for _, c := range report.CommandStatuses {
		if c.Status == ok {
			taken[c.ReferenceName.String()] = true
		}
	}
	return taken
}

// MostSaid is how many bytes are kept of what a server's hooks say.
const MostSaid = 8 << 10
