package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

func (g *Gitea) me(ctx context.Context, c *sdk.Client) (string, error) {
	return g.self.Login(ctx, g.config, func(context.Context) (string, error) {
		u, resp, err := c.GetMyUserInfo()
		if err != nil {
			return "", wrap("ask who the token belongs to (it needs read:user)", resp, err)
		}
		return forge.Answered(u).UserName, nil
	})
}

// Named implements forge.Forge. In a person's repository those may write whom
// issues can be assigned to. In an organization's some of them may only read: the
// forge is asked for each, which it answers an administrator of the repository.
func (g *Gitea) Named(ctx context.Context, number int64, head string) (forge.Naming, error) {
	c, err := g.client(ctx)
	if err != nil {
		return forge.Naming{}, err
	}
	me, err := g.me(ctx, c)
	if err != nil {
		return forge.Naming{}, err
	}
	list, err := g.comments(c, number)
	if err != nil {
		return forge.Naming{}, err
	}
	var words []forge.Word
	for _, n := range list {
		if n.Poster != nil {
			words = append(words, forge.Word{ID: n.Poster.ID, Login: n.Poster.UserName, Body: n.Body, Created: n.Created, Updated: n.Updated})
		}
	}
	asked := forge.Askers(words, me, head)
	if len(asked) == 0 {
		return forge.Naming{Requests: 1}, nil
	}
	_, resp, err := c.GetRepoTeams(g.owner, g.repo)
	switch {
	case resp != nil && resp.Response != nil && resp.StatusCode == http.StatusMethodNotAllowed:
		return g.assignable(c, asked)
	case err != nil:
		return forge.Naming{}, wrap("ask whether the repository is an organization's", resp, err)
	}
	return g.permitted(c, asked)
}

// assignable is the first of those who asked whom issues can be assigned to.
func (g *Gitea) assignable(c *sdk.Client, asked []forge.Word) (forge.Naming, error) {
	out := forge.Naming{Requests: 3}
	writers, resp, err := c.GetAssignees(g.owner, g.repo)
	if err != nil {
		return out, wrap("ask who may write", resp, err)
	}
	for _, w := range asked {
		if slices.ContainsFunc(forge.Present(writers), func(u *sdk.User) bool { return u.ID == w.ID }) {
			out.By = w.Login
			return out, nil
		}
	}
	return out, nil
}

// permitted is the first of those who asked that the forge says may write.
func (g *Gitea) permitted(c *sdk.Client, asked []forge.Word) (forge.Naming, error) {
	out := forge.Naming{Requests: 2}
	for _, w := range asked {
		out.Requests++
		level, resp, err := c.CollaboratorPermission(g.owner, g.repo, w.Login)
		if err != nil && resp != nil && resp.Response != nil && resp.StatusCode == http.StatusForbidden {
			return out, fmt.Errorf("ask what %s may do: %w", w.Login, &forge.Refused{
				Status: resp.StatusCode, Words: err.Error(), Remedy: "in a repository of an organization its administrators alone may ask: make the token's user one",
			})
		}
		err = wrap("ask what "+w.Login+" may do", resp, err)
		if errors.Is(err, forge.ErrNotFound) || err == nil && level == nil {
			continue
		}
		if err != nil {
			return out, err
		}
		if m := level.Permission; m == sdk.AccessModeWrite || m == sdk.AccessModeAdmin || m == sdk.AccessModeOwner {
			out.By = w.Login
			return out, nil
		}
	}
	return out, nil
}

// comments are those of a pull request. The list has no pages here: where it is larger than
// an answer may be, those that were written or changed of late.
func (g *Gitea) comments(c *sdk.Client, number int64) ([]*sdk.Comment, error) {
	var o sdk.ListIssueCommentOptions
	for _, late := range [...]time.Duration{24 * time.Hour, time.Hour, 5 * time.Minute, 0} {
		list, resp, err := c.ListIssueComments(g.owner, g.repo, number, o)
		if late == 0 || !errors.Is(err, forge.ErrTooLarge) {
			return forge.Present(list), wrap(fmt.Sprintf("list the comments of pull request %d", number), resp, err)
		}
		o.Since = time.Now().Add(-late)
	}
	return nil, nil // the last of them returned
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
	list, err := g.comments(c, number)
	if err != nil {
		return false, err
	}
	notes := make([]forge.Note[int64], 0, len(list))
	for _, n := range list {
		if n.Poster != nil {
			notes = append(notes, forge.Note[int64]{ID: n.ID, Author: n.Poster.UserName, Body: n.Body})
		}
	}
	var resp *sdk.Response
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
		for _, n := range forge.Present(list) {
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
