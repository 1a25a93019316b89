package runner

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// defaultGrace is the Pod's own default.
const defaultGrace = 30 * time.Second

// maxListItems bounds a list in the environment, maxListBytes its text.
const (
	maxListItems = 128
	maxListBytes = 64 << 10
)

// common is what every operation container is told.
type common struct {
	operation   string
	operationID string
	workDir     string
	grace       time.Duration
	graceGiven  bool
}

func (c common) sourceDir() string        { return filepath.Join(c.workDir, "source") }
func (c common) sourceResultPath() string { return filepath.Join(c.workDir, "source-result.json") }

// readCommon reads what a document cannot do without, then checks the protocol before anything else is looked at.
func readCommon(lookup func(string) (string, bool)) (common, *result.Error) {
	c := common{grace: defaultGrace}
	c.operation, _ = lookup(env.Operation)
	c.operationID, _ = lookup(env.OperationID)
	c.workDir, _ = lookup(env.WorkDir)
	if c.operation != result.OperationRefresh && c.operation != result.OperationApply {
		return c, configurationError("%s is %q; it must be Refresh or Apply", env.Operation, c.operation)
	}
	if c.operationID == "" || len(c.operationID) > 128 {
		return c, configurationError("%s is missing or too long", env.OperationID)
	}
	if spoken, _ := lookup(env.ProtocolVersion); spoken != strconv.Itoa(result.ProtocolVersion) {
		return c, newError(result.ErrorProtocolMismatch,
			"the manager speaks runner protocol %q and this runner speaks %d; install runner and manager of one release", spoken, result.ProtocolVersion)
	}
	if text, given := lookup(env.TerminationGraceSecs); given {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 3 || seconds > 300 {
			return c, configurationError("%s must be between 3 and 300", env.TerminationGraceSecs)
		}
		c.grace, c.graceGiven = time.Duration(seconds)*time.Second, true
	}
	return c, nil
}

// requirements collects the first problem of several variables, so that reading them stays one line each.
type requirements struct {
	lookup  func(string) (string, bool)
	problem *result.Error
}

func (r *requirements) fail(format string, arguments ...any) {
	if r.problem == nil {
		r.problem = configurationError(format, arguments...)
	}
}

func (r *requirements) text(name string) string {
	value, _ := r.lookup(name)
	if value == "" {
		r.fail("%s is missing", name)
	}
	return value
}

func (r *requirements) path(name string) string {
	value := r.text(name)
	if value != "" && !filepath.IsAbs(value) {
		r.fail("%s is not an absolute path", name)
	}
	return value
}

func (r *requirements) digest(name string) string {
	value := r.text(name)
	if value != "" && !report.IsDigest(value) {
		r.fail("%s is not a sha256 digest", name)
	}
	return value
}

func (r *requirements) optionalDigest(name string) string {
	if value, _ := r.lookup(name); value == "" {
		return ""
	}
	return r.digest(name)
}

func (r *requirements) duration(name string) string {
	value := r.text(name)
	if parsed, err := time.ParseDuration(value); value != "" && (err != nil || parsed <= 0) {
		r.fail("%s is not a positive duration", name)
	}
	return value
}

func (r *requirements) instant(name string) time.Time {
	value := r.text(name)
	parsed, err := time.Parse(time.RFC3339, value)
	if value != "" && err != nil {
		r.fail("%s is not an RFC 3339 time", name)
	}
	return parsed
}

func (r *requirements) oneOf(name string, allowed ...string) string {
	value := r.text(name)
	for _, candidate := range allowed {
		if value == candidate {
			return value
		}
	}
	r.fail("%s is %q, which is not known", name, value)
	return value
}

// list reads a JSON list; absent and empty mean none.
func (r *requirements) list(name string) []string {
	value, _ := r.lookup(name)
	if value == "" {
		return nil
	}
	var items []string
	if err := decodeList(value, &items); err != nil {
		r.fail("%s is not a JSON list of at most %d non-empty texts", name, maxListItems)
		return nil
	}
	return items
}

func decodeList(text string, items *[]string) error {
	if len(text) > maxListBytes {
		return errors.New("too long")
	}
	if err := json.Unmarshal([]byte(text), items); err != nil {
		return err
	}
	if len(*items) > maxListItems {
		return errors.New("too many")
	}
	for _, item := range *items {
		if item == "" {
			return errors.New("empty")
		}
	}
	return nil
}

// databaseSettings is what the database container is told, besides the URL that only ptah reads.
type databaseSettings struct {
	url             string
	dialect         string
	expectedTarget  string
	exclude         []string
	protected       []string
	transactionMode string
	connectTimeout  string
	lockTimeout     string
}

func readDatabaseSettings(r *requirements) databaseSettings {
	settings := databaseSettings{
		url:             r.text(env.DatabaseURL),
		dialect:         r.oneOf(env.ExpectedDialect, report.DialectPostgreSQL, report.DialectMySQL),
		expectedTarget:  r.optionalDigest(env.ExpectedTargetIdentity),
		exclude:         r.list(env.Exclude),
		protected:       r.list(env.ProtectedTables),
		transactionMode: r.oneOf(env.TransactionMode, string(report.TransactionAll), string(report.TransactionFile), string(report.TransactionNone)),
		connectTimeout:  r.duration(env.ConnectTimeout),
		lockTimeout:     r.duration(env.LockTimeout),
	}
	if settings.url != "" && isMySQL(settings.url) != (settings.dialect == report.DialectMySQL) {
		r.fail("the database URL starts with %s and spec.target.engine is for %s; correct the Secret that spec.target.urlFrom names, or the engine",
			map[bool]string{true: "mysql:", false: "something else than mysql:"}[isMySQL(settings.url)], settings.dialect)
	}
	return settings
}

// isMySQL says which engine ptah takes a URL for, by the only part of it that is no secret.
func isMySQL(url string) bool {
	scheme, _, _ := strings.Cut(url, ":")
	return strings.EqualFold(scheme, "mysql")
}

// connection are the flags that every command which opens the database takes.
func (d databaseSettings) connection() []string {
	return []string{"--format=json", "--connect-timeout=" + d.connectTimeout, "--lock-timeout=" + d.lockTimeout}
}

// scope are the flags that say what a plan may touch and how it runs.
func (d databaseSettings) scope() []string {
	flags := []string{"--transaction-mode=" + d.transactionMode}
	for _, selector := range d.exclude {
		flags = append(flags, "--exclude="+selector)
	}
	for _, table := range d.protected {
		flags = append(flags, "--protected-table="+table)
	}
	return flags
}
