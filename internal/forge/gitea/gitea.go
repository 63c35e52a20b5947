package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// Gitea is one repository on a Gitea or Forgejo.
type Gitea struct {
	config      forge.Config
	http        *http.Client
	owner, repo string
	self        forge.Self
}

// New makes a client. It sends nothing.
func New(c forge.Config) (*Gitea, error) {
	client, err := c.Client(func(h http.Header, token string) { h.Set("Authorization", "token "+token) })
	if err != nil {
		return nil, err
	}
	g := &Gitea{config: c, http: client}
	g.owner, g.repo = c.Owner()
	return g, nil
}

// client is the SDK's, whose context is one for each client.
func (g *Gitea) client(ctx context.Context) (*sdk.Client, error) {
	c, err := sdk.NewClient(g.config.URL, sdk.SetHTTPClient(g.http), sdk.SetContext(ctx), sdk.SetGiteaVersion(""))
	if err != nil {
		return nil, fmt.Errorf("open gitea: %w", err)
	}
	return c, nil
}

// wrap puts an answer of the SDK into the forge's words.
func wrap(doing string, resp *sdk.Response, err error) error {
	status := 0
	if resp != nil && resp.Response != nil {
		status = resp.StatusCode
	}
	return forge.Wrap(doing, status, err)
}

func next(resp *sdk.Response) int {
	if resp == nil {
		return 0
	}
	return resp.NextPage
}

// Open implements forge.Forge.
func (g *Gitea) Open(ctx context.Context, base string) ([]forge.PullRequest, error) {
	c, err := g.client(ctx)
	if err != nil {
		return nil, err
	}
	list, err := forge.Pages(func(page int) ([]*sdk.PullRequest, int, error) {
		list, resp, err := c.ListRepoPullRequests(g.owner, g.repo, sdk.ListPullRequestsOptions{
			ListOptions: sdk.ListOptions{Page: page, PageSize: forge.PageSize}, State: sdk.StateOpen,
		})
		return list, next(resp), wrap("list pull requests", resp, err)
	})
	if err != nil {
		return nil, err
	}
	var out []forge.PullRequest
	for _, p := range list {
		if pr := pull(p); pr.Base == base {
			out = append(out, pr)
		}
	}
	slices.SortFunc(out, func(a, b forge.PullRequest) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// Get implements forge.Forge.
func (g *Gitea) Get(ctx context.Context, number int64) (forge.PullRequest, error) {
	c, err := g.client(ctx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	p, resp, err := c.GetPullRequest(g.owner, g.repo, number)
	if err != nil {
		return forge.PullRequest{}, wrap(fmt.Sprintf("get pull request %d", number), resp, err)
	}
	return pull(p), nil
}

// WithCommit implements forge.Forge.
func (g *Gitea) WithCommit(ctx context.Context, commit string) ([]forge.PullRequest, error) {
	c, err := g.client(ctx)
	if err != nil {
		return nil, err
	}
	p, resp, err := c.GetCommitPullRequest(g.owner, g.repo, commit)
	if err := wrap("find the pull request of "+commit, resp, err); err != nil {
		if errors.Is(err, forge.ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	return []forge.PullRequest{pull(p)}, nil
}

func pull(p *sdk.PullRequest) forge.PullRequest {
	p = forge.Answered(p)
	out := forge.PullRequest{
		Number: p.Index, State: forge.Opened, Title: p.Title, Draft: p.Draft, URL: p.HTMLURL,
		Ref: fmt.Sprintf("refs/pull/%d/head", p.Index), Conflicts: !p.Mergeable && p.State == sdk.StateOpen && !p.Draft,
	}
	if p.Poster != nil {
		out.Author = p.Poster.UserName
	}
	if p.Head != nil {
		out.Head, out.HeadBranch = p.Head.Sha, p.Head.Ref
	}
	if p.Base != nil {
		out.Base = p.Base.Ref
	}
	out.Fork = p.Head == nil || p.Base == nil || p.Head.RepoID != p.Base.RepoID
	switch {
	case p.HasMerged:
		out.State = forge.Merged
		if p.MergedCommitID != nil {
			out.MergeCommit = *p.MergedCommitID
		}
		if p.Merged != nil {
			out.MergedAt = *p.Merged
		}
		if p.MergedBy != nil {
			out.MergedBy = p.MergedBy.UserName
		}
	case p.State == sdk.StateClosed:
		out.State = forge.Closed
	}
	return out
}

// SetStatus implements forge.Forge.
func (g *Gitea) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	c, err := g.client(ctx)
	if err != nil {
		return err
	}
	_, resp, err := c.CreateStatus(g.owner, g.repo, commit, sdk.CreateStatusOption{
		State: sdk.StatusState(s.State), TargetURL: s.URL, Context: s.Context, Description: forge.Cut(s.Description, forge.MaxDescription),
	})
	return wrap("set the status of "+commit, resp, err)
}

// Reviews implements forge.Forge.
func (g *Gitea) Reviews(ctx context.Context, number int64) ([]forge.Review, error) {
	list, err := g.reviews(ctx, number)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b *sdk.PullReview) int { return a.Submitted.Compare(b.Submitted) })
	newest := map[string]forge.Review{}
	for _, r := range list {
		if r.Reviewer == nil || r.Dismissed {
			continue
		}
		rev := forge.Review{Author: r.Reviewer.UserName, Commit: r.CommitID}
		switch r.State {
		case sdk.ReviewStateApproved:
			rev.Verdict = forge.Approved
		case sdk.ReviewStateRequestChanges:
			rev.Verdict = forge.Rejected
		default:
			continue
		}
		newest[rev.Author] = rev
	}
	return forge.SortReviews(newest), nil
}

func (g *Gitea) reviews(ctx context.Context, number int64) ([]*sdk.PullReview, error) {
	c, err := g.client(ctx)
	if err != nil {
		return nil, err
	}
	return forge.Pages(func(page int) ([]*sdk.PullReview, int, error) {
		list, resp, err := c.ListPullReviews(g.owner, g.repo, number, sdk.ListPullReviewsOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: forge.PageSize}})
		return list, next(resp), wrap(fmt.Sprintf("list the reviews of pull request %d", number), resp, err)
	})
}

// Save implements forge.Forge.
func (g *Gitea) Save(ctx context.Context, d forge.Draft) (forge.PullRequest, error) {
	c, err := g.client(ctx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	open, err := g.Open(ctx, d.Base)
	if err != nil {
		return forge.PullRequest{}, err
	}
	for _, pr := range open {
		if pr.HeadBranch != d.Head || pr.Fork {
			continue
		}
		p, resp, err := c.EditPullRequest(g.owner, g.repo, pr.Number, sdk.EditPullRequestOption{Title: d.Title, Body: &d.Body})
		if err != nil {
			return forge.PullRequest{}, wrap(fmt.Sprintf("bring pull request %d up to date", pr.Number), resp, err)
		}
		return pull(p), nil
	}
	p, resp, err := c.CreatePullRequest(g.owner, g.repo, sdk.CreatePullRequestOption{Head: d.Head, Base: d.Base, Title: d.Title, Body: d.Body})
	if err != nil {
		return forge.PullRequest{}, wrap("open a pull request for "+d.Head, resp, err)
	}
	return pull(p), nil
}

// Close implements forge.Forge.
func (g *Gitea) Close(ctx context.Context, number int64) error {
	c, err := g.client(ctx)
	if err != nil {
		return err
	}
	closed := sdk.StateClosed
	_, resp, err := c.EditPullRequest(g.owner, g.repo, number, sdk.EditPullRequestOption{State: &closed})
	return wrap(fmt.Sprintf("close pull request %d", number), resp, err)
}

// Merge implements forge.Forge.
func (g *Gitea) Merge(ctx context.Context, number int64, m forge.Merge) error {
	ctx, said := forge.Listen(ctx) // the SDK drops what a refused merge says
	c, err := g.client(ctx)
	if err != nil {
		return err
	}
	style := sdk.MergeStyle(cmp.Or(m.Method, forge.MergeCommit))
	ok, resp, err := c.MergePullRequest(g.owner, g.repo, number, sdk.MergePullRequestOption{
		Style: style, Title: m.Title, Message: m.Message, HeadCommitId: m.Head, DeleteBranchAfterMerge: &m.DeleteBranch,
	})
	doing := fmt.Sprintf("merge pull request %d", number)
	if err == nil && !ok {
		err = errors.New(cmp.Or(said(), "it did not say why"))
	}
	if err == nil {
		return nil
	}
	status := 0
	if resp != nil && resp.Response != nil {
		status = resp.StatusCode
	}
	return forge.WrapMerge(doing, status, err)
}

var _ forge.Forge = (*Gitea)(nil)
