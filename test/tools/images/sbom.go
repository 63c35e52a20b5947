package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"regexp"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// sbomOf says what a binary was linked from, by what Go wrote into it: each module with
// its version, and Go itself. It is in what, an image or a file of that digest.
func sbomOf(src source, program, binary string, p v1.Platform, what string, digest v1.Hash) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read what %s was linked from: %w", program, err)
	}
	main := &spdx.Package{
		PackageName: program, PackageSPDXIdentifier: "Package-" + common.ElementID(program),
		PackageVersion: src.version, PackageDownloadLocation: "https://" + module,
		PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: "NOASSERTION",
		PrimaryPackagePurpose: "APPLICATION",
		PackageSourceInfo:     "commit " + src.revision,
		PackageComment:        fmt.Sprintf("%s, %s %s", p, what, digest),
	}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      program + " " + src.version + " " + p.String(),
		DocumentNamespace: "https://" + module + "/spdx/" + program + "/" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created:  src.time.Format("2006-01-02T15:04:05Z"),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "fleetbroker-images-" + src.version}},
		},
		Packages: []*spdx.Package{main},
	}
	relate := func(from, to common.ElementID, how string) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to}, Relationship: how,
		})
	}
	relate("DOCUMENT", main.PackageSPDXIdentifier, common.TypeRelationshipDescribe)
	add := func(path, version string) {
		id := "Package-" + unfit.ReplaceAllString(path, "-")
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName: path, PackageSPDXIdentifier: common.ElementID(id), PackageVersion: version,
			PackageDownloadLocation: "NOASSERTION",
			PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
			PackageExternalReferences: []*spdx.PackageExternalReference{{
				Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
				Locator: "pkg:golang/" + path + "@" + version,
			}},
		})
		relate(main.PackageSPDXIdentifier, common.ElementID(id), common.TypeRelationshipDependsOn)
	}
	add("stdlib", info.GoVersion)
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		add(dep.Path, dep.Version)
	}
	var out bytes.Buffer
	if err := spdxjson.Write(doc, &out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unfit is what an identifier of SPDX may not have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9.-]`)
