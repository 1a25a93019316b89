// Package env names the environment variables and paths by which the manager tells the runner what to do. No
// credential passes through the manager: credential variables are filled by the kubelet from Secrets.
package env

// Variables of every operation container.
const (
	ProtocolVersion = "PTAH_RUNNER_PROTOCOL_VERSION"
	Operation       = "PTAH_OPERATION" // Refresh or Apply
	OperationID     = "PTAH_OPERATION_ID"
	// WorkDir holds what containers of one Pod hand to the next: source/ (fetched files), source-result.json.
	WorkDir = "PTAH_WORK_DIR"

	// Delivery.
	ResultEndpoint  = "PTAH_RESULT_ENDPOINT"   // https://host of the receiver; the runner appends /v1/results/<publication> and /v1/plans/<publication>
	ResultTokenFile = "PTAH_RESULT_TOKEN_FILE" // projected ServiceAccount token, audience operator.ptah.run/results
	ResultTrustPEM  = "PTAH_RESULT_TRUST_PEM"  // certificates that sign the receiver's
	ResultIdentity  = "PTAH_RESULT_IDENTITY"   // JSON of receiver.Identity without the Pod's own fields
	PodName         = "PTAH_POD_NAME"          // downward API
	PodUID          = "PTAH_POD_UID"           // downward API
	JobUID          = "PTAH_JOB_UID"           // downward API, the Job controller's label
)

// Variables of the source container.
const (
	RequestedReference   = "PTAH_REQUESTED_REFERENCE"
	VerificationPolicy   = "PTAH_VERIFICATION_POLICY" // file
	ExpectedPolicyDigest = "PTAH_EXPECTED_POLICY_DIGEST"
	AuthMode             = "PTAH_OCI_AUTH_MODE"      // "", Environment or DockerConfigJSON
	AuthRegistryGrant    = "PTAH_OCI_REGISTRY_GRANT" // host[:port] that the credential is for, from the Secret
	AuthAllowPlainHTTP   = "PTAH_OCI_ALLOW_PLAIN_HTTP"
	AuthCADigestGrant    = "PTAH_OCI_CA_SHA256_GRANT"
	OCIUsername          = "PTAH_OCI_USERNAME"
	OCIPassword          = "PTAH_OCI_PASSWORD"
	OCIToken             = "PTAH_OCI_TOKEN"
	OCIDockerConfig      = "PTAH_OCI_DOCKER_CONFIG" // file
	OCICAFile            = "PTAH_OCI_CA_FILE"
	OCIPlainHTTP         = "PTAH_OCI_PLAIN_HTTP"
)

// Variables of the database container.
const (
	DatabaseURL            = "PTAH_DB_URL"
	ExpectedDialect        = "PTAH_EXPECTED_DIALECT"
	ExpectedTargetIdentity = "PTAH_EXPECTED_TARGET_IDENTITY_DIGEST" // Apply, and a refresh that proves one
	Exclude                = "PTAH_EXCLUDE"                         // JSON list
	ProtectedTables        = "PTAH_PROTECTED_TABLES"                // JSON list
	TransactionMode        = "PTAH_TRANSACTION_MODE"
	DriftSeverity          = "PTAH_DRIFT_SEVERITY"
	ConnectTimeout         = "PTAH_CONNECT_TIMEOUT"
	LockTimeout            = "PTAH_LOCK_TIMEOUT"
	HeldPlanDigest         = "PTAH_HELD_PLAN_DIGEST" // content digest of the plan the manager stores
	ProvenArtifact         = "PTAH_PROVEN_ARTIFACT"  // what the last proof of convergence established
	ProvenDumpDigest       = "PTAH_PROVEN_DUMP_DIGEST"
	ProvenTargetIdentity   = "PTAH_PROVEN_TARGET_IDENTITY"
	// Apply only.
	ExpectedPlanDigest   = "PTAH_EXPECTED_PLAN_DIGEST"
	DispatchNotAfter     = "PTAH_DISPATCH_NOT_AFTER"  // RFC 3339
	ExecutionNotAfter    = "PTAH_EXECUTION_NOT_AFTER" // RFC 3339
	TerminationGraceSecs = "PTAH_TERMINATION_GRACE_PERIOD_SECONDS"
)
