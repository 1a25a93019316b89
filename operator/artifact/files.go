package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ptah.run/ptah/operator/plan/report"
)

// markerSuffix is put behind a folder's path for the file that a pull leaves beside it. The file says which artifact
// the folder's files are, and by their digests that they still are. It stands outside, so that the folder holds nothing
// but the artifact.
const markerSuffix = ".artifact.json"

func markerPath(dir string) string { return filepath.Clean(dir) + markerSuffix }

type markerContent struct {
	Digest string            `json:"digest"`
	Files  map[string]string `json:"files"`
}

// ReadFiles reads a schema from one file, or from the files of a folder whose names end in .sql, .hcl or .rows.yaml, in lexical
// order. Other files of the folder are passed over; a folder inside it, or a link, is refused where its name ends so.
func ReadFiles(path string) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fail(report.CodeInvalidInput, fmt.Sprintf("the schema %s cannot be read: %v", path, pathError(err)))
	}
	paths := []string{path}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fail(report.CodeInvalidInput, fmt.Sprintf("the schema folder %s cannot be read: %v", path, pathError(err)))
		}
		paths = nil
		for _, entry := range entries {
			if layerType(entry.Name()) == "" {
				continue
			}
			if !entry.Type().IsRegular() {
				return nil, fail(report.CodeInvalidInput, fmt.Sprintf("%s in the schema folder is not a regular file", entry.Name()))
			}
			paths = append(paths, filepath.Join(path, entry.Name()))
		}
	}
	var files []File
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Size() > MaxFileBytes {
			return nil, fail(report.CodeInvalidArtifact, fmt.Sprintf("a schema holds files of at most %d bytes", MaxFileBytes))
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, fail(report.CodeInvalidInput, fmt.Sprintf("%s cannot be read: %v", p, pathError(err)))
		}
		files = append(files, File{filepath.Base(p), data})
	}
	return files, checkFiles(files)
}

func pathError(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// WriteFiles writes a pulled schema into a folder that is empty or does not exist. Each file appears whole; the marker
// comes last, so that a pull that was cut off leaves a folder that proves nothing. A marker that cannot be written is
// no failure: all it ever does is to save planning a database that did not change.
func WriteFiles(dir, digest string, files []File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(report.CodeInvalidInput, fmt.Sprintf("the folder %s cannot be made: %v", dir, pathError(err)))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fail(report.CodeInvalidInput, fmt.Sprintf("the folder %s cannot be read: %v", dir, pathError(err)))
	}
	if len(entries) > 0 {
		return fail(report.CodeInvalidInput, fmt.Sprintf("the folder %s is not empty; name one that is, so that no other file becomes part of the schema", dir))
	}
	_ = os.Remove(markerPath(dir)) // an older one would speak of other files
	content := markerContent{digest, map[string]string{}}
	for _, file := range files {
		if err := WriteFile(filepath.Join(dir, file.Name), file.Data); err != nil {
			return err
		}
		content.Files[file.Name] = report.Digest(file.Data)
	}
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the artifact marker: %w", err)
	}
	_ = WriteFile(markerPath(dir), data)
	return nil
}

// WriteFile writes a file that appears whole or not at all, readable by everybody.
func WriteFile(path string, data []byte) (err error) {
	problem := func(err error) error {
		return fail(report.CodeInvalidInput, fmt.Sprintf("%s cannot be written: %v", path, pathError(err)))
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".ptah-*")
	if err != nil {
		return problem(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is the one to report
		}
	}()
	_, err = file.Write(data)
	if err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return problem(err)
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return problem(err)
	}
	return nil
}

// PulledDigest returns the digest of the artifact that a folder was pulled from, or "" where the folder was not made by
// a pull or is no longer what was pulled.
func PulledDigest(dir string, files []File) string {
	data, err := os.ReadFile(markerPath(dir))
	var content markerContent
	if err != nil || json.Unmarshal(data, &content) != nil || len(content.Files) != len(files) {
		return ""
	}
	changed := slices.ContainsFunc(files, func(f File) bool { return content.Files[f.Name] != report.Digest(f.Data) })
	if changed {
		return ""
	}
	return content.Digest
}
