package github

import (
	"context"
	"fmt"
	"net/http"

	sdk "github.com/google/go-github/v88/github"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

func (g *GitHub) me(ctx context.Context) (string, error) {
	return g.self.Login(ctx, g.config, func(ctx context.Context) (string, error) {
		u, resp, err := g.client.Users.Get(ctx, "")
		if err != nil {
			return "", wrap("ask who the token belongs to (name its login with --forge-user if it may not ask)", resp, err)
		}
		return u.GetLogin(), nil
	})
}

// Named implements forge.Forge. Apps are users of the type Bot.
func (g *GitHub) Named(ctx context.Context, number int64, head string) (forge.Naming, error) {
	me, err := g.me(ctx)
	if err != nil {
		return forge.Naming{}, err
	}
	list, requests, err := forge.NewestOfOldest(func(page int) ([]*sdk.IssueComment, int, error) {
		list, resp, err := g.page(ctx, number, page)
		return list, last(resp), err
	})
	if err != nil {
		return forge.Naming{}, err
	}
	words := make([]forge.Word, len(list))
	for i, n := range list {
		words[i] = forge.Word{
			Login: n.GetUser().GetLogin(), Machine: n.GetUser().GetType() == "Bot", Body: n.GetBody(),
			Created: n.GetCreatedAt().Time, Updated: n.GetUpdatedAt().Time,
		}
	}
	for _, w := range forge.Askers(words, me, head) {
		requests++
		level, resp, err := g.client.Repositories.GetPermissionLevel(ctx, g.owner, g.repo, w.Login)
		if err != nil && status(resp) == http.StatusNotFound {
			continue
		}
		if err != nil {
			return forge.Naming{}, wrap("ask what "+w.Login+" may do", resp, err)
		}
		if p := level.GetPermission(); p == "admin" || p == "write" {
			return forge.Naming{By: w.Login, Requests: requests}, nil
		}
	}
	return forge.Naming{Requests: requests}, nil
}

// comments gets a page of a pull request's comments, for Pages.
func (g *GitHub) comments(ctx context.Context, number int64) func(page int) ([]*sdk.IssueComment, int, error) {
	return func(page int) ([]*sdk.IssueComment, int, error) {
		list, resp, err := g.page(ctx, number, page)
		return list, next(resp), err
	}
}

// page of a pull request's comments, the oldest on the first.
func (g *GitHub) page(ctx context.Context, number int64, page int) ([]*sdk.IssueComment, *sdk.Response, error) {
	list, resp, err := g.client.Issues.ListComments(ctx, g.owner, g.repo, int(number), &sdk.IssueListCommentsOptions{ListOptions: pageOf(page)})
	return list, resp, wrap(fmt.Sprintf("list the comments of pull request %d", number), resp, err)
}

// Comment implements forge.Forge.
func (g *GitHub) Comment(ctx context.Context, number int64, marker, body string) (bool, error) {
	me, err := g.me(ctx)
	if err != nil {
		return false, err
	}
	list, err := forge.Pages(g.comments(ctx, number))
	if err != nil {
		return false, err
	}
	notes := make([]forge.Note[int64], 0, len(list))
	for _, n := range list {
		notes = append(notes, forge.Note[int64]{ID: n.GetID(), Author: n.GetUser().GetLogin(), Body: n.GetBody()})
	}
	var resp *sdk.Response
	own := forge.Own(notes, me, marker)
	switch {
	case own == nil:
		_, resp, err = g.client.Issues.CreateComment(ctx, g.owner, g.repo, int(number), &sdk.IssueComment{Body: &body})
	case forge.Same(own.Body, body):
		return false, nil
	default:
		_, resp, err = g.client.Issues.EditComment(ctx, g.owner, g.repo, own.ID, &sdk.IssueComment{Body: &body})
	}
	return err == nil, wrap(fmt.Sprintf("comment on pull request %d", number), resp, err)
}

// Annotate implements forge.Forge.
func (g *GitHub) Annotate(ctx context.Context, pr forge.PullRequest, comments []forge.LineComment) (left int, err error) {
	me, err := g.me(ctx)
	if err != nil {
		return 0, err
	}
	list, err := forge.Pages(func(page int) ([]*sdk.PullRequestComment, int, error) {
		list, resp, err := g.client.PullRequests.ListComments(ctx, g.owner, g.repo, int(pr.Number), &sdk.PullRequestListCommentsOptions{ListOptions: pageOf(page)})
		return list, next(resp), wrap(fmt.Sprintf("list the line comments of pull request %d", pr.Number), resp, err)
	})
	if err != nil {
		return 0, err
	}
	notes := make([]forge.Note[int64], 0, len(list))
	for _, n := range list {
		notes = append(notes, forge.Note[int64]{ID: n.GetID(), Author: n.GetUser().GetLogin(), Body: n.GetBody(), Path: n.GetPath(), Line: n.GetLine()})
	}
	add, gone := forge.Lines(notes, me, comments)
	for _, n := range gone {
		if resp, err := g.client.PullRequests.DeleteComment(ctx, g.owner, g.repo, n.ID); err != nil && status(resp) != http.StatusNotFound {
			return left, wrap(fmt.Sprintf("take a line comment of pull request %d away", pr.Number), resp, err)
		}
	}
	side := "RIGHT"
	for _, c := range add {
		_, resp, err := g.client.PullRequests.CreateComment(ctx, g.owner, g.repo, int(pr.Number), &sdk.PullRequestComment{
			Body: &c.Body, Path: &c.Path, Line: &c.Line, Side: &side, CommitID: &pr.Head,
		})
		if err != nil && status(resp) == http.StatusUnprocessableEntity {
			left++ // not a line of the diff
			continue
		}
		if err != nil {
			return left, wrap(fmt.Sprintf("comment on lines of pull request %d", pr.Number), resp, err)
		}
	}
	return left, nil
}
