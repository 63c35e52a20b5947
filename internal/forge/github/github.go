package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/google/go-github/v88/github"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// GitHub is one repository on GitHub.
type GitHub struct {
	config      forge.Config
	client      *sdk.Client
	owner, repo string
	self        forge.Self
}

var _ forge.Forge = (*GitHub)(nil)

// New makes a client. It sends nothing.
func New(c forge.Config) (*GitHub, error) {
	transport, err := c.Client(func(h http.Header, token string) { h.Set("Authorization", "Bearer "+token) })
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(c.URL, "/") + "/"
	client, err := sdk.NewClient(sdk.WithHTTPClient(transport), sdk.WithURLs(&base, &base), sdk.WithDisableRateLimitCheck())
	if err != nil {
		return nil, fmt.Errorf("open github: %w", err)
	}
	g := &GitHub{config: c, client: client}
	g.owner, g.repo = c.Owner()
	return g, nil
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
	return resp.NextPage
}

func last(resp *sdk.Response) int {
	if resp == nil {
		return 0
	}
	return resp.LastPage
}

func pageOf(n int) sdk.ListOptions { return sdk.ListOptions{Page: n, PerPage: forge.PageSize} }

// Open implements forge.Forge.
func (g *GitHub) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	return g.list(ctx, &sdk.PullRequestListOptions{State: "open", Base: base})
}

func (g *GitHub) list(ctx context.Context, o *sdk.PullRequestListOptions) ([]forge.PullRequest, error) {
	list, err := forge.Pages(func(page int) ([]*sdk.PullRequest, int, error) {
		o.ListOptions = pageOf(page)
		list, resp, err := g.client.PullRequests.List(ctx, g.owner, g.repo, o)
		return list, next(resp), wrap("list pull requests", resp, err)
	})
	if err != nil {
		return nil, err
	}
	out := make([]forge.PullRequest, 0, len(list))
	for _, p := range list {
		out = append(out, pull(p))
	}
	slices.SortFunc(out, func(a, b forge.PullRequest) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// Get implements forge.Forge.
func (g *GitHub) Get(ctx context.Context, number int64) (forge.PullRequest, error) {
	p, resp, err := g.client.PullRequests.Get(ctx, g.owner, g.repo, int(number))
	if err != nil {
		return forge.PullRequest{}, wrap(fmt.Sprintf("get pull request %d", number), resp, err)
	}
	return pull(p), nil
}

// WithCommit implements forge.Forge.
func (g *GitHub) WithCommit(ctx context.Context, commit string) ([]forge.PullRequest, error) {
	list, err := forge.Pages(func(page int) ([]*sdk.PullRequest, int, error) {
		o := pageOf(page)
		list, resp, err := g.client.PullRequests.ListPullRequestsWithCommit(ctx, g.owner, g.repo, commit, &o)
		return list, next(resp), wrap("find the pull requests of "+commit, resp, err)
	})
	var out []forge.PullRequest
	for _, p := range list {
		out = append(out, pull(p))
	}
	return out, err
}

func pull(p *sdk.PullRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: int64(p.GetNumber()), State: forge.Opened, Title: p.GetTitle(), Author: p.GetUser().GetLogin(), Draft: p.GetDraft(),
		URL: p.GetHTMLURL(), Head: p.GetHead().GetSHA(), HeadBranch: p.GetHead().GetRef(),
		Ref: fmt.Sprintf("refs/pull/%d/head", p.GetNumber()), Base: p.GetBase().GetRef(),
		Conflicts: p.GetMergeableState() == "dirty",
	}
	// A fork that was deleted has no repository any more.
	out.Fork = p.GetHead().GetRepo() == nil || p.GetHead().GetRepo().GetID() != p.GetBase().GetRepo().GetID()
	switch {
	case p.GetMerged() || !p.GetMergedAt().IsZero():
		out.State, out.MergeCommit, out.MergedAt, out.MergedBy = forge.Merged, p.GetMergeCommitSHA(), p.GetMergedAt().Time, p.GetMergedBy().GetLogin()
	case p.GetState() == "closed":
		out.State = forge.Closed
	}
	return out
}

// SetStatus implements forge.Forge.
func (g *GitHub) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	state, text := string(s.State), forge.Cut(s.Description, forge.MaxDescription)
	st := sdk.RepoStatus{State: &state, Context: &s.Context, Description: &text}
	if s.URL != "" {
		st.TargetURL = &s.URL
	}
	_, resp, err := g.client.Repositories.CreateStatus(ctx, g.owner, g.repo, commit, st)
	return wrap("set the status of "+commit, resp, err)
}

// Reviews implements forge.Forge.
func (g *GitHub) Reviews(ctx context.Context, number int64) ([]forge.Review, error) {
	// Oldest first.
	list, err := forge.Pages(func(page int) ([]*sdk.PullRequestReview, int, error) {
		o := pageOf(page)
		list, resp, err := g.client.PullRequests.ListReviews(ctx, g.owner, g.repo, int(number), &o)
		return list, next(resp), wrap(fmt.Sprintf("list the reviews of pull request %d", number), resp, err)
	})
	if err != nil {
		return nil, err
	}
	newest := map[string]forge.Review{}
	for _, r := range list {
		rev := forge.Review{Author: r.GetUser().GetLogin(), Commit: r.GetCommitID()}
		switch r.GetState() {
		case "APPROVED":
			rev.Verdict = forge.Approved
		case "CHANGES_REQUESTED":
			rev.Verdict = forge.Rejected
		case "DISMISSED":
			delete(newest, rev.Author)
			continue
		default:
			continue
		}
		newest[rev.Author] = rev
	}
	return forge.SortReviews(newest), nil
}

// Save implements forge.Forge.
func (g *GitHub) Save(ctx context.Context, d forge.Draft) (forge.PullRequest, error) {
	open, err := g.list(ctx, &sdk.PullRequestListOptions{State: "open", Base: d.Base, Head: g.owner + ":" + d.Head})
	if err != nil {
		return forge.PullRequest{}, err
	}
	for _, pr := range open {
		if pr.HeadBranch != d.Head || pr.Fork {
			continue
		}
		p, resp, err := g.client.PullRequests.Edit(ctx, g.owner, g.repo, int(pr.Number), &sdk.PullRequest{Title: &d.Title, Body: &d.Body})
		if err != nil {
			return forge.PullRequest{}, wrap(fmt.Sprintf("bring pull request %d up to date", pr.Number), resp, err)
		}
		return pull(p), nil
	}
	p, resp, err := g.client.PullRequests.Create(ctx, g.owner, g.repo, &sdk.NewPullRequest{Title: &d.Title, Head: &d.Head, Base: &d.Base, Body: &d.Body})
	if err != nil {
		return forge.PullRequest{}, wrap("open a pull request for "+d.Head, resp, err)
	}
	return pull(p), nil
}

// Close implements forge.Forge.
func (g *GitHub) Close(ctx context.Context, number int64) error {
	closed := "closed"
	_, resp, err := g.client.PullRequests.Edit(ctx, g.owner, g.repo, int(number), &sdk.PullRequest{State: &closed})
	return wrap(fmt.Sprintf("close pull request %d", number), resp, err)
}

// Merge implements forge.Forge.
func (g *GitHub) Merge(ctx context.Context, number int64, m forge.Merge) error {
	doing := fmt.Sprintf("merge pull request %d", number)
	_, resp, err := g.client.PullRequests.Merge(ctx, g.owner, g.repo, int(number), m.Message, &sdk.PullRequestOptions{
		CommitTitle: m.Title, SHA: m.Head, MergeMethod: string(cmp.Or(m.Method, forge.MergeCommit)),
	})
	if err != nil {
		return forge.WrapMerge(doing, status(resp), err)
	}
	if !m.DeleteBranch {
		return nil
	}
	p, err := g.Get(ctx, number)
	if err != nil || p.Fork {
		return err
	}
	resp, err = g.client.Git.DeleteRef(ctx, g.owner, g.repo, "heads/"+p.HeadBranch)
	return wrap("delete the branch of pull request "+fmt.Sprint(number), resp, err)
}
