package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "gitlab.com/gitlab-org/api/client-go"
	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// GitLab is one project on a GitLab.
type GitLab struct {
	config forge.Config
	client *sdk.Client
	self   forge.Self
}

var _ forge.Forge = (*GitLab)(nil)

// tokenHeader carries the token; the transport puts it in.
const tokenHeader = "PRIVATE-TOKEN"

// noToken keeps the SDK from holding one.
type noToken struct{}

func (noToken) Init(context.Context, *sdk.Client) error { return nil }

func (noToken) Header(context.Context) (key, value string, err error) {
	return tokenHeader, "see the transport", nil
}

// New makes a client. It sends nothing.
func New(c forge.Config) (*GitLab, error) {
	transport, err := c.Client(func(h http.Header, token string) { h.Set(tokenHeader, token) })
	if err != nil {
		return nil, err
	}
	client, err := sdk.NewAuthSourceClient(noToken{}, sdk.WithBaseURL(c.URL), sdk.WithHTTPClient(transport),
		sdk.WithoutRetries(), sdk.WithCustomLimiter(rate.NewLimiter(rate.Inf, 0)))
	if err != nil {
		return nil, fmt.Errorf("open gitlab: %w", err)
	}
	return &GitLab{config: c, client: client}, nil
}

func status(resp *sdk.Response) int {
	if resp == nil || resp.Response == nil {
		return 0
	}
	return resp.StatusCode
}

func wrap(doing string, resp *sdk.Response, err error) error {
	return forge.Wrap(doing, status(resp), err)
}

func next(resp *sdk.Response) int {
	if resp == nil {
		return 0
	}
	return int(resp.NextPage)
}

func pageOf(n int) sdk.ListOptions { return sdk.ListOptions{Page: int64(n), PerPage: forge.PageSize} }

// Open implements forge.Forge.
func (g *GitLab) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	return g.list(ctx, &sdk.ListProjectMergeRequestsOptions{State: sdk.Ptr("opened"), TargetBranch: &base})
}

func (g *GitLab) list(ctx context.Context, o *sdk.ListProjectMergeRequestsOptions) ([]forge.PullRequest, error) {
	list, err := forge.Pages(func(page int) ([]*sdk.BasicMergeRequest, int, error) {
		o.ListOptions = pageOf(page)
		list, resp, err := g.client.MergeRequests.ListProjectMergeRequests(g.config.Repo, o, sdk.WithContext(ctx))
		return list, next(resp), wrap("list merge requests", resp, err)
	})
	if err != nil {
		return nil, err
	}
	out := make([]forge.PullRequest, 0, len(list))
	for _, m := range list {
		out = append(out, pull(m, sdk.MergeRequestDiffRefs{}))
	}
	slices.SortFunc(out, func(a, b forge.PullRequest) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// Get implements forge.Forge.
func (g *GitLab) Get(ctx context.Context, number int64) (forge.PullRequest, error) {
	m, resp, err := g.client.MergeRequests.GetMergeRequest(g.config.Repo, number, nil, sdk.WithContext(ctx))
	if err != nil {
		return forge.PullRequest{}, wrap(fmt.Sprintf("get merge request %d", number), resp, err)
	}
	return whole(m), nil
}

// WithCommit implements forge.Forge.
func (g *GitLab) WithCommit(ctx context.Context, commit string) ([]forge.PullRequest, error) {
	list, resp, err := g.client.Commits.ListMergeRequestsByCommit(g.config.Repo, commit, sdk.WithContext(ctx))
	if err != nil {
		return nil, wrap("find the merge requests of "+commit, resp, err)
	}
	var out []forge.PullRequest
	for _, m := range forge.Present(list) {
		out = append(out, pull(m, sdk.MergeRequestDiffRefs{}))
	}
	return out, nil
}

// whole is a merge request that was asked for alone.
func whole(m *sdk.MergeRequest) forge.PullRequest {
	m = forge.Answered(m)
	return pull(&m.BasicMergeRequest, m.DiffRefs)
}

func pull(m *sdk.BasicMergeRequest, refs sdk.MergeRequestDiffRefs) forge.PullRequest {
	out := forge.PullRequest{
		Number: m.IID, State: forge.Opened, Title: m.Title, Draft: m.Draft, URL: m.WebURL,
		Head: m.SHA, HeadBranch: m.SourceBranch, Ref: fmt.Sprintf("refs/merge-requests/%d/head", m.IID), Base: m.TargetBranch,
		Fork: m.SourceProjectID != m.TargetProjectID, Conflicts: m.HasConflicts, DiffBase: refs.BaseSha, DiffStart: refs.StartSha,
	}
	if m.Author != nil {
		out.Author = m.Author.Username
	}
	switch m.State {
	case "merged":
		out.State = forge.Merged
		out.MergeCommit = cmp.Or(m.MergeCommitSHA, m.SquashCommitSHA, m.SHA) // fast-forward: the head itself
		out.MergedAt = at(m.MergedAt)
		if m.MergeUser != nil {
			out.MergedBy = m.MergeUser.Username
		}
	case "closed":
		out.State = forge.Closed
	}
	return out
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// states in GitLab's words.
var states = map[forge.StatusState]sdk.BuildStateValue{
	forge.Pending: sdk.Pending, forge.Success: sdk.Success, forge.Failed: sdk.Failed, forge.Broken: sdk.Failed,
}

// SetStatus implements forge.Forge.
func (g *GitLab) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	o := &sdk.SetCommitStatusOptions{State: states[s.State], Name: &s.Context, Description: sdk.Ptr(forge.Cut(s.Description, forge.MaxDescription))}
	if s.URL != "" {
		o.TargetURL = &s.URL
	}
	_, resp, err := g.client.Commits.SetCommitStatus(g.config.Repo, commit, o, sdk.WithContext(ctx))
	if err != nil && status(resp) == http.StatusBadRequest && strings.Contains(err.Error(), "Cannot transition status") {
		return nil // it is in that state already
	}
	return wrap("set the status of "+commit, resp, err)
}

// Reviews implements forge.Forge.
func (g *GitLab) Reviews(ctx context.Context, number int64) ([]forge.Review, error) {
	a, resp, err := g.client.MergeRequestApprovals.GetConfiguration(g.config.Repo, number, sdk.WithContext(ctx))
	if err != nil {
		return nil, wrap(fmt.Sprintf("list the approvals of merge request %d", number), resp, err)
	}
	newest := map[string]forge.Review{}
	for _, by := range forge.Present(forge.Answered(a).ApprovedBy) {
		if by.User != nil {
			newest[by.User.Username] = forge.Review{Author: by.User.Username, Verdict: forge.Approved}
		}
	}
	return forge.SortReviews(newest), nil
}

// Save implements forge.Forge.
func (g *GitLab) Save(ctx context.Context, d forge.Draft) (forge.PullRequest, error) {
	open, err := g.list(ctx, &sdk.ListProjectMergeRequestsOptions{State: sdk.Ptr("opened"), TargetBranch: &d.Base, SourceBranch: &d.Head})
	if err != nil {
		return forge.PullRequest{}, err
	}
	for _, pr := range open {
		if pr.HeadBranch != d.Head || pr.Fork {
			continue
		}
		m, resp, err := g.client.MergeRequests.UpdateMergeRequest(g.config.Repo, pr.Number, &sdk.UpdateMergeRequestOptions{Title: &d.Title, Description: &d.Body}, sdk.WithContext(ctx))
		if err != nil {
			return forge.PullRequest{}, wrap(fmt.Sprintf("bring merge request %d up to date", pr.Number), resp, err)
		}
		return whole(m), nil
	}
	m, resp, err := g.client.MergeRequests.CreateMergeRequest(g.config.Repo, &sdk.CreateMergeRequestOptions{
		Title: &d.Title, Description: &d.Body, SourceBranch: &d.Head, TargetBranch: &d.Base,
	}, sdk.WithContext(ctx))
	if err != nil {
		return forge.PullRequest{}, wrap("open a merge request for "+d.Head, resp, err)
	}
	return whole(m), nil
}

// Close implements forge.Forge.
func (g *GitLab) Close(ctx context.Context, number int64) error {
	_, resp, err := g.client.MergeRequests.UpdateMergeRequest(g.config.Repo, number, &sdk.UpdateMergeRequestOptions{StateEvent: sdk.Ptr("close")}, sdk.WithContext(ctx))
	return wrap(fmt.Sprintf("close merge request %d", number), resp, err)
}

// Merge implements forge.Forge. Whether a merge rebases is the project's
// setting on GitLab; Rebase is merged as the project says.
func (g *GitLab) Merge(ctx context.Context, number int64, m forge.Merge) error {
	o := &sdk.AcceptMergeRequestOptions{SHA: &m.Head, Squash: sdk.Ptr(m.Method == forge.Squash), ShouldRemoveSourceBranch: &m.DeleteBranch}
	if text := strings.TrimSpace(m.Title + "\n\n" + m.Message); text != "" {
		o.MergeCommitMessage, o.SquashCommitMessage = &text, &text
	}
	_, resp, err := g.client.MergeRequests.AcceptMergeRequest(g.config.Repo, number, o, sdk.WithContext(ctx))
	if err != nil {
		return forge.WrapMerge(fmt.Sprintf("merge merge request %d", number), status(resp), err)
	}
	return nil
}
