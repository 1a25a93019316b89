// Package report holds the documents that ptah, the executor, writes and that everything else reads: the plan
// document, and one report per command. It is pure data: no database, no file, no clock. A reader ignores unknown
// fields of a report and refuses an unknown contract version, outcome or refusal code; the plan document alone is
// decoded strictly, because its bytes are what a person approves.
package report

// ContractVersion is the version of every report of this package. A reader refuses any other.
const ContractVersion = 1

// PlanFormatVersion is the version of the plan document. A reader refuses any other.
const PlanFormatVersion = 1

// MaxPlanBytes is the largest executable plan document, its trailing newline included: 8 MiB.
const MaxPlanBytes = 8 << 20

// Dialects as they appear in reports and plans.
const (
	DialectPostgreSQL = "postgresql"
	DialectMySQL      = "mysql"
)

// Outcome of a command.
type Outcome string

// Outcomes. Which of them a command can have is said at its report.
const (
	OutcomeChanges   Outcome = "changes"
	OutcomeNoChanges Outcome = "no-changes"
	OutcomeApplied   Outcome = "applied"
	// OutcomeFound is what a registry command says when it did what was asked.
	OutcomeFound   Outcome = "found"
	OutcomeDryRun  Outcome = "dry-run"
	OutcomeRefused Outcome = "refused"
	OutcomeFailed  Outcome = "failed"
	// OutcomeUnknown says that statements were sent and their effect is not established.
	OutcomeUnknown Outcome = "unknown"
)

// Code classifies a refusal or a failure. Codes are a closed vocabulary.
type Code string

// Codes. "Refused" codes say that nothing was executed.
const (
	CodeStalePlan       Code = "stale-plan"       // refused: the database is not in the state the plan was computed from
	CodeProtectedTable  Code = "protected-table"  // refused: the plan touches a table that is fenced
	CodeUnsupported     Code = "unsupported"      // refused: no complete plan exists; Categories says for what
	CodeInvalidSchema   Code = "invalid-schema"   // refused: the desired schema does not load
	CodeInvalidPlan     Code = "invalid-plan"     // refused: the plan document is malformed or has another digest
	CodeInvalidInput    Code = "invalid-input"    // refused: a flag, URL or file is not usable
	CodeTransactionMode Code = "transaction-mode" // refused: the plan cannot run under the transaction mode asked for
	CodeTooLarge        Code = "too-large"        // refused: the plan is larger than MaxPlanBytes
	CodeServerVersion   Code = "server-version"   // refused: the target's major version is not the one this image plans for
	CodeAuthentication  Code = "authentication"   // failed: the database or registry refused the credential
	CodeConnection      Code = "connection"       // failed: the database or registry could not be reached
	CodePermission      Code = "permission"       // failed: the role may not read or change what is needed
	CodeLockTimeout     Code = "lock-timeout"     // failed: a lock was not granted in time; nothing stayed
	CodeStatement       Code = "statement"        // failed: a statement was refused by the server
	CodeNondeterminism  Code = "nondeterminism"   // failed: two computations of one plan differ
	CodeNotFound        Code = "not-found"        // failed: the reference does not exist in the registry
	CodePolicy          Code = "policy"           // refused: the artifact does not satisfy the verification policy
	CodeInvalidPolicy   Code = "invalid-policy"   // refused: the verification policy is not usable
	CodeInvalidArtifact Code = "invalid-artifact" // refused: the artifact is malformed or of a wrong type
	CodeCanceled        Code = "canceled"         // failed: stopped by a signal or deadline before anything was sent
	CodeInternal        Code = "internal"         // failed: everything else
)

// Problem is the one cause of an outcome that is not a success. Message names no object, row or credential.
type Problem struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Categories are the drift categories concerned, sorted; no object names.
	Categories []string `json:"categories,omitempty"`
	// SQLState is the server's own code (SQLSTATE or errno) where there is one.
	SQLState string `json:"sqlState,omitempty"`
}

// Severity orders how much a difference or statement can hurt.
type Severity string

// Severities, ascending.
const (
	SeveritySafe        Severity = "safe"
	SeverityInfo        Severity = "info"
	SeverityWarning     Severity = "warning"
	SeverityError       Severity = "error"
	SeverityDestructive Severity = "destructive"
)

// PrivilegeChange names one way in which a statement changes authority.
type PrivilegeChange string

// Privilege changes. Each forces an approval, whatever the policy.
const (
	PrivilegeGrant               PrivilegeChange = "Grant"
	PrivilegeRevoke              PrivilegeChange = "Revoke"
	PrivilegeRoleMembership      PrivilegeChange = "RoleMembership"
	PrivilegeRole                PrivilegeChange = "Role"
	PrivilegeOwnership           PrivilegeChange = "Ownership"
	PrivilegeRowSecurityPolicy   PrivilegeChange = "RowSecurityPolicy"
	PrivilegeSecurityDefiner     PrivilegeChange = "SecurityDefiner"
	PrivilegeDefiner             PrivilegeChange = "Definer"
	PrivilegeFunctionReplacement PrivilegeChange = "FunctionReplacement"
)

// TransactionMode says how the statements of a plan are wrapped.
type TransactionMode string

// Transaction modes. A schema plan is one file, so "all" and "file" mean one transaction each.
const (
	TransactionAll  TransactionMode = "all"
	TransactionFile TransactionMode = "file"
	TransactionNone TransactionMode = "none"
)

// RewriteRisk says what a statement may do to stored rows.
type RewriteRisk string

// Rewrite risks.
const (
	RewriteNone  RewriteRisk = "none"  // catalog only
	RewriteScan  RewriteRisk = "scan"  // reads every row (validation)
	RewriteTable RewriteRisk = "table" // writes every row, or builds an index over them
	RewriteMaybe RewriteRisk = "maybe" // depends on the data or on the server's choice
)

// Statement is one statement of a plan, in the order of execution.
type Statement struct {
	// SQL is the exact text sent to the server, without a terminator.
	SQL string `json:"sql"`
	// Kind is the statement's own kind in words, such as "CREATE TABLE".
	Kind     string   `json:"kind"`
	Severity Severity `json:"severity"`
	// Reason says why the severity is what it is.
	Reason string `json:"reason,omitempty"`
	// LockClass is the strongest lock taken on an existing table, in the engine's own words, or "none".
	LockClass        string            `json:"lockClass"`
	RewriteRisk      RewriteRisk       `json:"rewriteRisk"`
	PrivilegeChanges []PrivilegeChange `json:"privilegeChanges,omitempty"`
}

// Plan is the executable plan document. Its bytes are deterministic: canonical field order, one JSON document,
// one trailing newline, no timestamp. The plan's content digest is the SHA-256 of those bytes.
type Plan struct {
	FormatVersion   int             `json:"formatVersion"`
	Dialect         string          `json:"dialect"`
	ServerMajor     string          `json:"serverMajor"`
	TransactionMode TransactionMode `json:"transactionMode"`
	// FromFingerprint is the digest of the target's normalised dump that the plan was computed from.
	FromFingerprint string `json:"fromFingerprint"`
	// ToFingerprint is the digest of the normalised dump that the plan leads to.
	ToFingerprint    string            `json:"toFingerprint"`
	Exclude          []string          `json:"exclude"`
	Destructive      bool              `json:"destructive"`
	PrivilegeChanges []PrivilegeChange `json:"privilegeChanges"`
	// ManagedRows are the rows that the plan answers for beside the schema, sorted by table. RowsFingerprint is the digest
	// of those rows as they were read; FromFingerprint covers it. Both are set together or not at all.
	ManagedRows     []ManagedRows `json:"managedRows,omitempty"`
	RowsFingerprint string        `json:"rowsFingerprint,omitempty"`
	Statements      []Statement   `json:"statements"`
}

// ManagedRows says which rows of a table are declared: every row (scope "table"), or those with the listed keys ("keys").
type ManagedRows struct {
	Schema  string   `json:"schema"`
	Table   string   `json:"table"`
	Scope   string   `json:"scope"`
	Key     []string `json:"key"`
	Columns []string `json:"columns"`
	// Keys are the values of the managed keys, as the server prints them. They stand in a plan only, never in a report.
	Keys [][]string `json:"keys,omitempty"`
}

// Finding counts the differences of one category. It never holds a name.
type Finding struct {
	Category string   `json:"category"`
	Count    int      `json:"count"`
	Severity Severity `json:"severity"`
}

// Drift is the report of "ptah schema drift". Outcome is changes, no-changes, refused or failed.
type Drift struct {
	ContractVersion int       `json:"contractVersion"`
	Outcome         Outcome   `json:"outcome"`
	Dialect         string    `json:"dialect"`
	ServerVersion   string    `json:"serverVersion,omitempty"`
	Fingerprint     string    `json:"fingerprint,omitempty"` // of the observed state
	TargetIdentity  string    `json:"targetIdentity,omitempty"`
	HighestSeverity Severity  `json:"highestSeverity,omitempty"`
	Findings        []Finding `json:"findings"`
	Problem         *Problem  `json:"problem,omitempty"`
}

// SchemaPlan is the report of "ptah schema plan". Outcome is changes, no-changes, refused or failed. PlanDigest and
// PlanSize are set exactly for changes. The report carries the drift findings of the same reading.
type SchemaPlan struct {
	ContractVersion  int               `json:"contractVersion"`
	Outcome          Outcome           `json:"outcome"`
	Dialect          string            `json:"dialect"`
	ServerVersion    string            `json:"serverVersion,omitempty"`
	TargetIdentity   string            `json:"targetIdentity,omitempty"`
	FromFingerprint  string            `json:"fromFingerprint,omitempty"`
	ToFingerprint    string            `json:"toFingerprint,omitempty"`
	PlanDigest       string            `json:"planDigest,omitempty"`
	PlanSize         int64             `json:"planSize,omitempty"` // bytes
	Statements       int               `json:"statements,omitempty"`
	Destructive      bool              `json:"destructive,omitempty"`
	PrivilegeChanges []PrivilegeChange `json:"privilegeChanges,omitempty"`
	HighestSeverity  Severity          `json:"highestSeverity,omitempty"`
	// ManagedRows name the tables and columns whose rows are declared, without keys. RowsFingerprint is the digest of those
	// rows as they were read.
	ManagedRows     []ManagedRows `json:"managedRows,omitempty"`
	RowsFingerprint string        `json:"rowsFingerprint,omitempty"`
	Findings        []Finding     `json:"findings"`
	// Unchanged says that the target equals the last proven state, so that nothing was planned (step 7 of the design).
	Unchanged bool     `json:"unchanged,omitempty"`
	Problem   *Problem `json:"problem,omitempty"`
}

// SchemaApply is the report of "ptah schema apply". Outcome is applied, no-changes, dry-run, refused, failed or
// unknown. Only "applied" with the approved digest is a success.
type SchemaApply struct {
	ContractVersion int      `json:"contractVersion"`
	Outcome         Outcome  `json:"outcome"`
	Dialect         string   `json:"dialect"`
	TargetIdentity  string   `json:"targetIdentity,omitempty"`
	PlanDigest      string   `json:"planDigest,omitempty"`
	Statements      int      `json:"statements"` // in the plan
	Executed        int      `json:"executed"`   // committed
	MutationStarted bool     `json:"mutationStarted"`
	Problem         *Problem `json:"problem,omitempty"`
}

// Resolve is the report of "ptah oci resolve". Outcome is found, refused or failed.
type Resolve struct {
	ContractVersion int     `json:"contractVersion"`
	Outcome         Outcome `json:"outcome"`
	Reference       string  `json:"reference"`
	PinnedReference string  `json:"pinnedReference,omitempty"`
	Digest          string  `json:"digest,omitempty"`
	MediaType       string  `json:"mediaType,omitempty"`
	ArtifactType    string  `json:"artifactType,omitempty"`
	Size            int64   `json:"size,omitempty"` // bytes of the manifest and all layers
	// Annotations are those of the manifest.
	Annotations map[string]string `json:"annotations,omitempty"`
	Problem     *Problem          `json:"problem,omitempty"`
}

// VerifyFinding is one requirement of a policy that an artifact does not meet.
type VerifyFinding struct {
	Requirement string `json:"requirement"`
	Detail      string `json:"detail"`
}

// Verify is the report of "ptah oci verify". Outcome is found (the policy is satisfied), refused or failed.
type Verify struct {
	ContractVersion int             `json:"contractVersion"`
	Outcome         Outcome         `json:"outcome"`
	Reference       string          `json:"reference"`
	Digest          string          `json:"digest,omitempty"`
	ArtifactType    string          `json:"artifactType,omitempty"`
	PolicyDigest    string          `json:"policyDigest,omitempty"`
	Satisfied       []string        `json:"satisfied"`
	Findings        []VerifyFinding `json:"findings"`
	Problem         *Problem        `json:"problem,omitempty"`
}

// Pull is the report of "ptah schema pull". Outcome is found, refused or failed.
type Pull struct {
	ContractVersion int      `json:"contractVersion"`
	Outcome         Outcome  `json:"outcome"`
	Reference       string   `json:"reference"`
	Digest          string   `json:"digest,omitempty"`
	Files           int      `json:"files"`
	Bytes           int64    `json:"bytes"`
	Problem         *Problem `json:"problem,omitempty"`
}
