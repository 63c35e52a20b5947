package gitea

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

func (g *Gitea) me(ctx context.Context, c *sdk.Client) (string, error) {
	return g.self.Login(ctx, g.config, func(context.Context) (string, error) {
		u, resp, err := c.GetMyUserInfo()
		if err != nil {
			return "", wrap("ask who the token belongs to (it needs read:user)", resp, err)
		}
		return u.UserName, nil
	})
}

// Comment implements forge.Forge.
func (g *Gitea) Comment(ctx context.Context, number int64, marker, body string) (bool, error) {
	c, err := g.client(ctx)
	if err != nil {
		return false, err
	}
	me, err := g.me(ctx, c)
	if err != nil {
		return false, err
	}
	// The list of an issue's comments has no pages here.
	list, resp, err := c.ListIssueComments(g.owner, g.repo, number, sdk.ListIssueCommentOptions{})
	if err != nil {
		return false, wrap(fmt.Sprintf("list the comments of pull request %d", number), resp, err)
	}
	notes := make([]forge.Note[int64], 0, len(list))
	for _, n := range list {
		if n.Poster != nil {
			notes = append(notes, forge.Note[int64]{ID: n.ID, Author: n.Poster.UserName, Body: n.Body})
		}
	}
	own := forge.Own(notes, me, marker)
	switch {
	case own == nil:
		_, resp, err = c.CreateIssueComment(g.owner, g.repo, number, sdk.CreateIssueCommentOption{Body: body})
	case forge.Same(own.Body, body):
		return false, nil
	default:
		_, resp, err = c.EditIssueComment(g.owner, g.repo, own.ID, sdk.EditIssueCommentOption{Body: body})
	}
	return err == nil, wrap(fmt.Sprintf("comment on pull request %d", number), resp, err)
}

// Annotate implements forge.Forge.
func (g *Gitea) Annotate(ctx context.Context, pr forge.PullRequest, comments []forge.LineComment) (int, error) {
	c, err := g.client(ctx)
	if err != nil {
		return 0, err
	}
	me, err := g.me(ctx, c)
	if err != nil {
		return 0, err
	}
	reviews, err := g.reviews(ctx, pr.Number)
	if err != nil {
		return 0, err
	}
	var notes []forge.Note[int64] // by review
	for _, r := range reviews {
		if r.Reviewer == nil || !strings.EqualFold(r.Reviewer.UserName, me) || r.CodeCommentsCount == 0 {
			continue
		}
		list, resp, err := c.ListPullReviewComments(g.owner, g.repo, pr.Number, r.ID)
		if err != nil {
			return 0, wrap(fmt.Sprintf("list the line comments of pull request %d", pr.Number), resp, err)
		}
		for _, n := range list {
			notes = append(notes, forge.Note[int64]{ID: r.ID, Author: me, Body: n.Body, Path: n.Path, Line: int(n.LineNum)}) //nolint:gosec // a line of a bounded file
		}
	}
	add, gone := forge.Lines(notes, me, comments)
	if len(add)+len(gone) == 0 {
		return 0, nil
	}
	// A review goes as a whole, and with it what should have stayed.
	deleted := map[int64]bool{}
	for _, n := range notes {
		if deleted[n.ID] || !strings.HasPrefix(n.Body, forge.LineMarker) {
			continue
		}
		deleted[n.ID] = true
		if resp, err := c.DeletePullReview(g.owner, g.repo, pr.Number, n.ID); err != nil {
			return 0, wrap(fmt.Sprintf("take older line comments of pull request %d away", pr.Number), resp, err)
		}
	}
	add, _ = forge.Lines[int64](nil, me, comments)
	if len(add) == 0 {
		return 0, nil
	}
	err = g.write(c, pr, add...)
	if err == nil || errors.As(err, new(*forge.Limited)) {
		return 0, err
	}
	// A place that the file does not have fails the whole review, with 500: each
	// is tried alone.
	left := 0
	for _, a := range add {
		if g.write(c, pr, a) != nil {
			left++
		}
	}
	if left == len(add) && left > 1 {
		return left, err
	}
	return left, nil
}

// write writes comments on lines as one review.
func (g *Gitea) write(c *sdk.Client, pr forge.PullRequest, comments ...forge.LineComment) error {
	review := sdk.CreatePullReviewOptions{State: sdk.ReviewStateComment, CommitID: pr.Head}
	for _, a := range comments {
		review.Comments = append(review.Comments, sdk.CreatePullReviewComment{Path: a.Path, Body: a.Body, NewLineNum: int64(a.Line)})
	}
	_, resp, err := c.CreatePullReview(g.owner, g.repo, pr.Number, review)
	return wrap(fmt.Sprintf("comment on lines of pull request %d", pr.Number), resp, err)
}
