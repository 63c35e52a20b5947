package forge

import (
	"context"
	"time"
)

// Forge is one repository on one forge. Errors are of the vocabulary in
// errors.go: *Refused, *Limited, ErrNotFound, ErrNotReady, ErrMoved and
// ErrUnavailable can be told apart with errors.Is and errors.As.
type Forge interface {
	// Open lists the open pull requests into a branch, by number.
	Open(ctx context.Context, base string) ([]PullRequest, error)
	// Get is one pull request, in whatever state.
	Get(ctx context.Context, number int64) (PullRequest, error)
	// WithCommit lists the pull requests that brought a commit, or whose merge it
	// is. Gitea knows only merges.
	WithCommit(ctx context.Context, commit string) ([]PullRequest, error)
	// Reviews are what people said of a pull request's newest head, the newest
	// word of each.
	Reviews(ctx context.Context, number int64) ([]Review, error)

	// Named says whether a person with write access asked in a comment for a plan
	// of exactly this head (Askers). Access is what the forge says at the moment.
	Named(ctx context.Context, number int64, head string) (Naming, error)

	// Comment writes the comment that begins with a marker, or brings our own
	// older one with that marker up to date; equal text is left alone. changed
	// reports whether anything was written.
	Comment(ctx context.Context, number int64, marker, body string) (changed bool, err error)
	// Annotate makes our comments on lines of the pull request's head those given:
	// what is there stays, what is missing is written, what is not given any more
	// is taken away. Places that the forge does not take (outside of the diff) are
	// left out and counted.
	Annotate(ctx context.Context, pr PullRequest, comments []LineComment) (left int, err error)
	// SetStatus puts a status on a commit; the newest of one context counts.
	SetStatus(ctx context.Context, commit string, s Status) error

	// Save opens a pull request for a branch of this repository, or brings title
	// and text of the open one from Head into Base up to date.
	Save(ctx context.Context, d Draft) (PullRequest, error)
	// Close closes a pull request without merging it.
	Close(ctx context.Context, number int64) error
	// Merge merges a pull request whose head is still the one named. ErrNotReady
	// says that required checks or approvals are missing yet, ErrMoved that the
	// head is another one.
	Merge(ctx context.Context, number int64, m Merge) error
}

// State of a pull request.
type State string

// The states.
const (
	Opened State = "open"
	Merged State = "merged"
	Closed State = "closed"
)

// PullRequest is one as the forge tells it; GitLab calls it a merge request.
type PullRequest struct {
	Number int64
	State  State
	Title  string
	// Author is the login of who opened it, Fork says that its branch lies in
	// another repository.
	Author string
	Fork   bool
	Draft  bool
	// URL of its page.
	URL string
	// Head is the newest commit and HeadBranch its branch; Ref is where the
	// repository that it asks to be merged into has it.
	Head, HeadBranch, Ref string
	// Base is the branch to merge into.
	Base string
	// MergeCommit is the commit of the merge, "" before; after a rebase the last
	// one. MergedAt is when, MergedBy who (a login).
	MergeCommit string
	MergedAt    time.Time
	MergedBy    string
	// Conflicts says that the forge knows it cannot be merged as it is.
	Conflicts bool
	// DiffBase and DiffStart are the commits that GitLab shows the changes
	// against; comments on lines need them there.
	DiffBase, DiffStart string
}

// Verdict is what a reviewer said.
type Verdict string

// The verdicts.
const (
	Approved Verdict = "approved"
	Rejected Verdict = "changes-requested"
)

// Review is one person's newest word on a pull request.
type Review struct {
	Author  string
	Verdict Verdict
	// Commit that was looked at; "" where the forge does not say.
	Commit string
}

// StatusState is how far a check is.
type StatusState string

// The states of a check. Failed is the author's to mend, Broken is ours.
const (
	Pending StatusState = "pending"
	Success StatusState = "success"
	Failed  StatusState = "failure"
	Broken  StatusState = "error"
)

// MaxDescription is how many characters of a status' description every forge
// takes; longer ones are cut.
const MaxDescription = 140

// Status is a check on a commit.
type Status struct {
	// Context is the check's name; branch protection requires it by this.
	Context     string
	State       StatusState
	Description string
	// URL for more; may be empty.
	URL string
}

// LineComment is a comment on a line of a file as the head has it.
type LineComment struct {
	Path string
	// Line from 1.
	Line int
	// Body is markdown.
	Body string
}

// Draft is a pull request to open or bring up to date.
type Draft struct {
	// Head and Base are branches of this repository.
	Head, Base  string
	Title, Body string
}

// Method is how a merge writes history.
type Method string

// The methods.
const (
	MergeCommit Method = "merge"
	Squash      Method = "squash"
	Rebase      Method = "rebase"
)

// Merge says how to merge.
type Merge struct {
	// Head is the commit that is meant; another one is ErrMoved.
	Head string
	// Method; "" is MergeCommit.
	Method Method
	// Title and Message of the merge's commit; "" leaves them to the forge.
	Title, Message string
	// DeleteBranch removes the head's branch afterwards.
	DeleteBranch bool
}
