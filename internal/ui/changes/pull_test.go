package changes

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

func TestPullOf(t *testing.T) {
	for message, want := range map[string]int{
		"Merge pull request #12 from ada/train\n\nvision trains\n":                           12,
		"Merge pull request 'vision trains (#9)' (#12) from ada/train into main\n":           12,
		"Merge pull request 'vision trains' (#12) from ada/train into main\n":                12,
		"Merged PR 12: vision trains\n":                                                      12,
		"Merged in train (pull request #12)\n":                                               12,
		"vision trains (#12)\n":                                                              12,
		"vision trains (!12)\n":                                                              12,
		"Merge branch 'train' into 'main'\n\nvision trains\n\nSee merge request acme/f!12\n": 12,
		"Merge branch 'train' into 'main'\n\nSee merge request acme/f!12 and more\n":         0,
		"vision trains, see #12\n":                                                           0,
		"vision trains (#12) again\n":                                                        0,
		"vision trains (#99999999999999999999)\n":                                            0,
		"Merge pull request #x\n":                                                            0,
		"Merge pull request #0\n":                                                            0,
		"":                                                                                   0,
		strings.Repeat("Merge pull request 'a", 50_000):                                      0,
	} {
		if got := PullOf(&gitrepo.Commit{Message: message}); got != want {
			t.Errorf("%.60q: %d, want %d", message, got, want)
		}
	}
}
