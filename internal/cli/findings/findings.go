// Package findings prints what `validate` found: for people, as JSON, and in the formats
// by which GitHub, Gitea, GitLab and code scanning show problems beside their lines.
//
// Texts are untrusted: each is escaped for its format. `validate` of internal/cli calls
// it; its functions keep nothing and are safe for concurrent use.
package findings

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Finding is one problem in one file; lines and columns are from 1.
type Finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
	Code     string `json:"code,omitempty"`
}

// Of is a diagnostic as a finding.
func Of(d fleet.Diagnostic) Finding {
	return Finding{d.File, max(d.Line, 1), max(d.Column, 1), d.Message, string(d.Severity), d.Code}
}

// Unknown are revocations of a trust root after commits that are not there. They are
// warnings: a checkout may lack the branch of which the commit is.
func Unknown(root *trust.Root, list []trust.Unknown) []Finding {
	out := make([]Finding, len(list))
	for i, u := range list {
		out[i] = Finding{root.File, u.Line, u.Column, u.What + ": " + u.Remedy, string(fleet.Warning), "RevokedAfterUnknown"}
	}
	return out
}

// Generated are the files of the daemon in which two trees differ.
func Generated(before, after tree.Tree) (list []Finding, err error) {
	err = tree.Diff(before, after, func(path string, _, _ tree.Entry) error {
		if fleet.IsGenerated(path) {
			list = append(list, Finding{
				File: path, Line: 1, Column: 1, Severity: string(fleet.Error), Code: "GeneratedPath",
				Message: "this file is written by fleetbroker alone, and a change of it would be undone; change the intent instead (or overlays/ for manifests)",
			})
		}
		return nil
	})
	return list, err
}

// IsError tells an error from a warning.
func (f Finding) IsError() bool { return f.Severity == string(fleet.Error) }

// Forms are the forms of `validate`: for people, programs, and the
// annotations of forges.
var Forms = []string{"text", "json", "yaml", "github", "gitlab", "sarif"}

// Print writes findings in one of Forms.
func Print(w io.Writer, form string, list []Finding) error {
	data := struct {
		Findings []Finding `json:"findings"`
	}{append([]Finding{}, list...)}
	switch form {
	case "json":
		return escape.WriteJSON(w, data)
	case "yaml":
		text, err := yaml.Marshal(data)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	case "github":
		return githubFindings(w, list)
	case "gitlab":
		return escape.WriteJSON(w, gitlabFindings(list))
	case "sarif":
		return escape.WriteJSON(w, sarifFindings(list))
	}
	var b strings.Builder
	for _, f := range list {
		word := ""
		if !f.IsError() {
			word = f.Severity + ": "
		}
		b.WriteString(escape.Line(fmt.Sprintf("%s:%d:%d: %s%s", f.File, f.Line, f.Column, word, f.Message)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// githubFindings are workflow commands, which GitHub and Gitea show beside the
// line (docs: "Workflow commands for GitHub Actions").
func githubFindings(w io.Writer, list []Finding) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range list {
		if _, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d::%s\n", f.Severity, property.Replace(escape.Line(f.File)), f.Line, f.Column, data.Replace(escape.Lines(f.Message))); err != nil {
			return err
		}
	}
	return nil
}

// gitlabFinding is an entry of a Code Quality report (GitLab docs, "Code
// Quality report format").
type gitlabFinding struct {
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string `json:"path"`
	Lines struct {
		Begin int `json:"begin"`
	} `json:"lines"`
}

func gitlabFindings(list []Finding) []gitlabFinding {
	out := []gitlabFinding{}
	seen := map[string]int{}
	for _, f := range list {
		// The fingerprint leaves the line out, so that a problem that moved is
		// the same problem; the second of its kind in a file is told by its number,
		// because GitLab shows each fingerprint once.
		same := f.File + "\x00" + f.Code + "\x00" + f.Message
		seen[same]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", same, seen[same]))
		g := gitlabFinding{
			Description: f.Message, CheckName: "fleetbroker/" + codeOr(f), Fingerprint: hex.EncodeToString(sum[:]),
			Severity: map[bool]string{true: "major", false: "minor"}[f.IsError()],
		}
		g.Location.Path = f.File
		g.Location.Lines.Begin = f.Line
		out = append(out, g)
	}
	return out
}

func codeOr(f Finding) string {
	if f.Code == "" {
		return "Problem"
	}
	return f.Code
}

// sarif is as much of SARIF 2.1.0 as code scanning needs.
type sarif struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		URI     string `json:"informationUri"`
	} `json:"driver"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifLocation struct {
	Physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine   int `json:"startLine"`
			StartColumn int `json:"startColumn"`
		} `json:"region"`
	} `json:"physicalLocation"`
}

func sarifFindings(list []Finding) sarif {
	run := sarifRun{Results: []sarifResult{}, ColumnKind: "unicodeCodePoints"}
	run.Tool.Driver.Name, run.Tool.Driver.Version = "fleetbroker", version.Text()
	run.Tool.Driver.URI = "https://github.com/fleetbroker/fleetbroker"
	for _, f := range list {
		var at sarifLocation
		at.Physical.Artifact.URI = (&url.URL{Path: f.File}).String()
		at.Physical.Region.StartLine, at.Physical.Region.StartColumn = f.Line, f.Column
		run.Results = append(run.Results, sarifResult{
			RuleID: codeOr(f), Level: f.Severity, Message: sarifText{f.Message}, Locations: []sarifLocation{at},
		})
	}
	return sarif{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	}
}
