package bundle

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/record"
	"ptah.run/ptah/qualification/report"
)

// Describe says of a bundle what its record and the profile in its evidence say. There is nothing in a description
// that was typed, so that whoever reads a bundle can make it again and compare.
func Describe(kind Kind, claims *record.Verified, d *dossier.Dossier) Description {
	summary := claims.Summary
	return Description{
		Kind: kind, Name: "ptah-qualification-" + d.RunID, Run: d.RunID, EvidenceRoot: d.Root,
		Profile: fmt.Sprintf("%s, revision %s (%s)", strings.TrimPrefix(summary.Policy.Name, "profile/"), summary.Policy.Annotations["revision"], summary.Purpose),
		Policy:  "sha256:" + summary.Policy.Digest["sha256"], Verdict: summary.Verdict.String(), Acceptance: summary.Acceptance,
		Scope: Scope{Shows: d.Profile.Summary, NotShown: summary.NotShown},
	}
}

// Sources are what a bundle is made of besides the run.
type Sources struct {
	Record  []byte
	Reports func(name string) ([]byte, error) // the rendered reports; nil to render them again
	Keys    map[string][]byte                 // public keys to enclose, by file name
}

// Assemble collects the contents of a bundle: the run, the record, which must be signed and about this run, and
// exactly the reports that the record binds.
func Assemble(kind Kind, runDir string, d *dossier.Dossier, sources Sources) (*Contents, error) {
	claims, err := record.Inspect(sources.Record)
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	if len(claims.Keys) == 0 {
		return nil, fmt.Errorf("the record is not signed, and without a signature nobody can check a bundle: sign it with ptah-qualify record sign")
	}
	if root := "sha256:" + claims.Summary.Evidence.Digest["sha256"]; root != d.Root {
		return nil, fmt.Errorf("the record is about %s with the evidence root %s, the run is %s with %s: give the run that belongs to the record", claims.Summary.Evidence.Name, root, d.RunID, d.Root)
	}
	contents, err := New(Describe(kind, claims, d))
	if err != nil {
		return nil, err
	}
	if err := contents.AddRun(runDir); err != nil {
		return nil, err
	}
	if err := contents.AddBytes(RecordFolder+"/"+record.FileName, MediaType(record.FileName), sources.Record); err != nil {
		return nil, err
	}
	for name, key := range sources.Keys {
		if err := contents.AddBytes(RecordFolder+"/"+name, "application/x-pem-file", key); err != nil {
			return nil, err
		}
	}
	return contents, contents.addReports(claims, d, sources.Reports)
}

func (c *Contents) addReports(claims *record.Verified, d *dossier.Dossier, given func(string) ([]byte, error)) error {
	if given == nil {
		files, err := report.Files(report.Build(d, d.Judge()))
		if err != nil {
			return err
		}
		given = func(name string) ([]byte, error) {
			at := slices.IndexFunc(files, func(file report.File) bool { return file.Name == name })
			if at < 0 {
				return nil, fmt.Errorf("this program renders no %s", name)
			}
			return files[at].Data, nil
		}
	}
	for _, bound := range claims.Summary.Reports {
		data, err := given(bound.Name)
		if err != nil {
			return fmt.Errorf("the record binds the report %s: %w", bound.Name, err)
		}
		if sum := sumOf(data); sum != bound.Digest["sha256"] {
			return fmt.Errorf("the report %s is not the one that the record binds (sha256 %s, bound is %s): give the folder with the reports that were rendered with the record", bound.Name, sum, bound.Digest["sha256"])
		}
		if err := c.AddBytes(ReportsFolder+"/"+bound.Name, MediaType(bound.Name), data); err != nil {
			return err
		}
	}
	return nil
}

// Extract reads a bundle and writes its evidence, record and reports under an existing empty folder. Restricted files
// are read and checked, and not written. On an error the folder holds what no one should use: remove it.
func Extract(r io.Reader, dir string) (*Index, error) {
	return Read(r, func(file File, content io.Reader) error {
		if strings.HasPrefix(file.Path, RestrictedFolder+"/") {
			return nil
		}
		return extract(filepath.Join(dir, filepath.FromSlash(file.Path)), content)
	})
}

func extract(name string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	if _, err := io.Copy(out, content); err != nil {
		_ = out.Close()
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	return nil
}

// Fits refuses an index that says something else of its bundle than the record and the evidence in it.
func (i Index) Fits(verified *record.Verified, d *dossier.Dossier) error {
	want := Describe(i.Kind, verified, d)
	if !reflect.DeepEqual(want, i.Description) {
		return refused("%s says something else than the record in the bundle: %+v, the record says %+v", IndexName, i.Description, want)
	}
	return nil
}
