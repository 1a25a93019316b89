package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrPlanTooLarge says that a plan document is larger than MaxPlanBytes.
var ErrPlanTooLarge = fmt.Errorf("the plan document is larger than %d bytes; split the change into several", MaxPlanBytes)

// EncodePlan returns the one byte sequence that stands for a plan: a JSON document in the field order of Plan, without
// HTML escapes, with one trailing newline. It refuses a plan that DecodePlan would refuse, so that no plan can be
// written which cannot be read.
func EncodePlan(plan Plan) ([]byte, error) {
	if err := plan.validate(); err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	data, err := marshalPlan(plan)
	if err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	if len(data) > MaxPlanBytes {
		return nil, fmt.Errorf("encode plan: %w", ErrPlanTooLarge)
	}
	return data, nil
}

// DecodePlan reads a plan document strictly: at most MaxPlanBytes, no unknown or repeated field, nothing after the
// trailing newline, every value in its vocabulary, and exactly the bytes that EncodePlan would write. The last rule
// leaves one digest per plan: nobody can make two documents that mean the same and are approved separately.
func DecodePlan(data []byte) (*Plan, error) {
	if len(data) > MaxPlanBytes {
		return nil, fmt.Errorf("decode plan: %w", ErrPlanTooLarge)
	}
	statements := []Statement{}
	plan, err := ScanPlan(bytes.NewReader(data), bytes.NewReader(data), func(s *Statement) error {
		statements = append(statements, *s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	plan.Statements = statements
	return plan, nil
}

// Digest returns "sha256:" and the lowercase hexadecimal SHA-256 of data.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// DigestOf returns "sha256:" and the lowercase hexadecimal sum of a SHA-256 that was fed.
func DigestOf(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

// IsDigest says whether text is "sha256:" and 64 lowercase hexadecimal digits.
func IsDigest(text string) bool {
	rest, found := strings.CutPrefix(text, "sha256:")
	if !found || len(rest) != 2*sha256.Size {
		return false
	}
	return strings.Trim(rest, "0123456789abcdef") == ""
}

// Worse returns the higher of two severities. An unknown severity counts as the highest.
func Worse(a, b Severity) Severity {
	if severityRank(a) >= severityRank(b) {
		return a
	}
	return b
}

func severityRank(s Severity) int {
	switch s {
	case "":
		return -1
	case SeveritySafe:
		return 0
	case SeverityInfo:
		return 1
	case SeverityWarning:
		return 2
	case SeverityError:
		return 3
	}
	return 4
}

// Summarise sets Destructive and PrivilegeChanges from the statements.
func (p *Plan) Summarise() {
	p.Destructive, p.PrivilegeChanges = summary(p.Statements)
}

func summary(statements []Statement) (destructive bool, changes []PrivilegeChange) {
	changes = []PrivilegeChange{}
	for _, s := range statements {
		destructive = destructive || s.Severity == SeverityDestructive
		changes = append(changes, s.PrivilegeChanges...)
	}
	slices.Sort(changes)
	return destructive, slices.Compact(changes)
}

func marshalPlan(plan Plan) ([]byte, error) {
	// Empty lists are written as [], never as null: one plan, one text.
	if plan.Exclude == nil {
		plan.Exclude = []string{}
	}
	if plan.PrivilegeChanges == nil {
		plan.PrivilegeChanges = []PrivilegeChange{}
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plan); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func (p *Plan) validate() error {
	if err := p.validateHeader(); err != nil {
		return err
	}
	if len(p.Statements) == 0 {
		return errNoStatement
	}
	for i := range p.Statements {
		if err := p.Statements[i].validate(); err != nil {
			return fmt.Errorf("statements[%d]: %w", i, err)
		}
	}
	return p.validateSummary(summary(p.Statements))
}

var errNoStatement = errors.New("a plan holds at least one statement")

// validateHeader looks at everything but the statements and what follows from them.
func (p *Plan) validateHeader() error {
	switch {
	case p.FormatVersion != PlanFormatVersion:
		return fmt.Errorf("format version %d is not %d; use the executor that wrote the plan", p.FormatVersion, PlanFormatVersion)
	case p.Dialect != DialectPostgreSQL && p.Dialect != DialectMySQL:
		return fmt.Errorf("unknown dialect %q", p.Dialect)
	case p.ServerMajor == "" || len(p.ServerMajor) > 16:
		return errors.New("serverMajor is empty or longer than 16 bytes")
	case !IsDigest(p.FromFingerprint):
		return errors.New("fromFingerprint is not a sha256 digest")
	case !IsDigest(p.ToFingerprint):
		return errors.New("toFingerprint is not a sha256 digest")
	}
	switch p.TransactionMode {
	case TransactionAll, TransactionFile, TransactionNone:
	default:
		return fmt.Errorf("unknown transaction mode %q", p.TransactionMode)
	}
	for i, pattern := range p.Exclude {
		if pattern == "" || !utf8.ValidString(pattern) {
			return fmt.Errorf("exclude[%d] is empty or not UTF-8", i)
		}
	}
	return p.validateRows()
}

// validateSummary compares the header with what follows from the statements.
func (p *Plan) validateSummary(destructive bool, changes []PrivilegeChange) error {
	if p.Destructive != destructive {
		return errors.New("destructive does not agree with the statements")
	}
	if !slices.Equal(append([]PrivilegeChange{}, p.PrivilegeChanges...), changes) {
		return errors.New("privilegeChanges does not agree with the statements")
	}
	return nil
}

func (s *Statement) validate() error {
	switch {
	case strings.TrimSpace(s.SQL) == "":
		return errors.New("sql is empty")
	case !utf8.ValidString(s.SQL) || strings.ContainsRune(s.SQL, 0):
		return errors.New("sql is not UTF-8 text without NUL")
	case s.Kind == "" || !utf8.ValidString(s.Kind):
		return errors.New("kind is empty or not UTF-8")
	case !utf8.ValidString(s.Reason):
		return errors.New("reason is not UTF-8")
	case s.LockClass == "" || !utf8.ValidString(s.LockClass):
		return errors.New("lockClass is empty or not UTF-8")
	}
	if rank := severityRank(s.Severity); rank < 0 || rank == 4 && s.Severity != SeverityDestructive {
		return fmt.Errorf("unknown severity %q", s.Severity)
	}
	switch s.RewriteRisk {
	case RewriteNone, RewriteScan, RewriteTable, RewriteMaybe:
	default:
		return fmt.Errorf("unknown rewrite risk %q", s.RewriteRisk)
	}
	if !slices.IsSorted(s.PrivilegeChanges) {
		return errors.New("privilegeChanges is not sorted")
	}
	for i, change := range s.PrivilegeChanges {
		switch change {
		case PrivilegeGrant, PrivilegeRevoke, PrivilegeRoleMembership, PrivilegeRole, PrivilegeOwnership,
			PrivilegeRowSecurityPolicy, PrivilegeSecurityDefiner, PrivilegeDefiner, PrivilegeFunctionReplacement:
		default:
			return fmt.Errorf("unknown privilege change %q", change)
		}
		if i > 0 && s.PrivilegeChanges[i-1] == change {
			return fmt.Errorf("privilege change %q stands twice", change)
		}
	}
	return nil
}
