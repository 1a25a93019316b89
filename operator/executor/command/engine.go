package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/journal"
	mysqltarget "ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// database is one database of one engine.
type database interface {
	// dialect and product are the engine's names in a report and for a person.
	dialect() string
	product() string
	identity() string
	// mode is the transaction mode for one that was asked for, or for none. It refuses what the engine cannot keep.
	mode(asked string) (report.TransactionMode, error)
	// observe reads the database. The reading is empty where it fails before.
	observe(ctx context.Context, f *databaseFlags, declared []rows.Declaration, getenv func(string) string) (reading, error)
	apply(ctx context.Context, request applyRequest, getenv func(string) string) (report.SchemaApply, error)
}

// reading is what a database held, with the ways to compare it.
type reading interface {
	version() string
	// fingerprint is that of the whole; rowsFingerprint that of the declared rows in it, or empty.
	fingerprint() string
	rowsFingerprint() string
	// seen are the findings of the reading itself, which no plan is about.
	seen() []report.Finding
	drift(ctx context.Context, request planRequest) (planResult, error)
	plan(ctx context.Context, request planRequest) (planResult, error)
}

// planRequest is what a comparison needs beside the reading.
type planRequest struct {
	files  []artifact.File // those of SQL
	rows   []rows.Declaration
	flags  *databaseFlags
	mode   report.TransactionMode
	getenv func(string) string
}

// planResult is what a comparison came to.
type planResult struct {
	findings []report.Finding
	differs  bool         // whether any finding is about the declared schema
	document *report.Plan // nil where nothing differs, and for drift
	bytes    []byte
	managed  []report.ManagedRows
}

// applyRequest is what an apply needs.
type applyRequest struct {
	data                        []byte
	expect                      string
	protected                   []string
	strict, dryRun              bool
	connectTimeout, lockTimeout time.Duration
	journal                     func(journal.Event) error
}

// schemes are those of the engines' URLs.
var schemes = []string{"postgres", "postgresql", "mysql"}

// database reads the database URL, whose scheme names the engine.
func (a *app) database(f *databaseFlags) (database, error) {
	text, err := a.url(f)
	if err != nil {
		return nil, err
	}
	if scheme, _, found := strings.Cut(text, "://"); found && !slices.Contains(schemes, scheme) {
		return nil, failure.New(report.CodeInvalidInput, "the database URL does not start with postgres://, postgresql:// or mysql://")
	}
	if mysqltarget.Scheme(text) {
		t, err := mysqltarget.Parse(text)
		if err != nil {
			return nil, failure.New(report.CodeInvalidInput, err.Error())
		}
		return mysqlDatabase{t}, nil
	}
	t, err := target.Parse(text)
	if err != nil {
		return nil, failure.New(report.CodeInvalidInput, err.Error())
	}
	return postgresqlDatabase{t}, nil
}

func (a *app) url(f *databaseFlags) (string, error) {
	if f.urlFile == "" {
		return a.Getenv("PTAH_DB_URL"), nil
	}
	const what = "the file with the database URL"
	info, err := os.Stat(f.urlFile)
	if err != nil {
		return "", unreadable(what, f.urlFile, err)
	}
	if info.Size() > maxURLFile {
		return "", failure.New(report.CodeInvalidInput, what+" is larger than 64 KiB")
	}
	data, err := os.ReadFile(f.urlFile)
	if err != nil {
		return "", unreadable(what, f.urlFile, err)
	}
	return string(data), nil
}

// unreadable says which file of the command line cannot be used, and why.
func unreadable(what, path string, err error) error {
	var place *fs.PathError
	if errors.As(err, &place) {
		err = place.Err // without the path, which stands there already
	}
	return failure.New(report.CodeInvalidInput, fmt.Sprintf("%s %s cannot be opened: %v", what, path, err))
}
