// Package schemaview says what is known of a PtahSchema, and what a person should do next. It reads the resource and
// nothing else, so that whoever may get PtahSchemas may run it, and it shows no SQL.
package schemaview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// ErrNothing says that there is no such schema.
var ErrNothing = errors.New("nothing to show")

// contractVersion is the version of the JSON document. A new field is compatible.
const contractVersion = 1

// View is what is known of a PtahSchema. Its JSON form is for programs.
type View struct {
	ContractVersion int    `json:"contractVersion"`
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	UID             string `json:"uid"`
	// Generation is of the spec, ObservedGeneration of what follows.
	Generation         int64  `json:"generation"`
	ObservedGeneration int64  `json:"observedGeneration"`
	Phase              string `json:"phase"`
	Ready              bool   `json:"ready"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	Next               Next   `json:"next"`

	Artifact   Artifact             `json:"artifact"`
	Target     Target               `json:"target"`
	Drift      *Drift               `json:"drift,omitempty"`
	Plan       *Plan                `json:"plan,omitempty"`
	Applied    *Applied             `json:"applied,omitempty"`
	Operation  *Operation           `json:"operation,omitempty"`
	Proof      *Proof               `json:"pendingProof,omitempty"`
	BusySince  *metav1.Time         `json:"targetBusySince,omitempty"`
	Schedule   Schedule             `json:"schedule"`
	Conditions []Condition          `json:"conditions"`
	schema     *v1alpha1.PtahSchema // for the text
}

// Next is what a person should do.
type Next struct {
	// Needed says whether anything waits for a person.
	Needed bool   `json:"needed"`
	Action string `json:"action"`
	// Command is what to type, where one command is meant.
	Command string `json:"command,omitempty"`
}

// Artifact is the desired schema as last resolved.
type Artifact struct {
	Reference    string       `json:"reference"`
	Digest       string       `json:"digest,omitempty"`
	ArtifactType string       `json:"artifactType,omitempty"`
	Verified     bool         `json:"verified"`
	ResolvedAt   *metav1.Time `json:"resolvedAt,omitempty"`
	VerifiedAt   *metav1.Time `json:"verifiedAt,omitempty"`
	PolicyDigest string       `json:"verificationPolicyDigest,omitempty"`
}

// Target is the database. It never holds a URL.
type Target struct {
	Engine             string       `json:"engine"`
	CoordinationKey    string       `json:"coordinationKey,omitempty"`
	Realm              string       `json:"realm,omitempty"`
	Secret             string       `json:"secret"`
	SecretKey          string       `json:"secretKey"`
	CoordinationDigest string       `json:"coordinationDigest,omitempty"`
	IdentityDigest     string       `json:"identityDigest,omitempty"`
	ServerVersion      string       `json:"serverVersion,omitempty"`
	ObservedAt         *metav1.Time `json:"observedAt,omitempty"`
}

// Drift counts the differences that were read last, by category.
type Drift struct {
	Status          string        `json:"status"` // of the condition DriftDetected
	HighestSeverity string        `json:"highestSeverity,omitempty"`
	Count           int32         `json:"count"`
	Categories      []DriftOfKind `json:"categories"`
	Truncated       bool          `json:"truncated"`
}

// DriftOfKind counts the differences of one category.
type DriftOfKind struct {
	Category string `json:"category"`
	Count    int32  `json:"count"`
	Severity string `json:"severity"`
}

// Plan is the current plan.
type Plan struct {
	Name             string      `json:"name"`
	UID              string      `json:"uid"`
	Fingerprint      string      `json:"fingerprint"`
	ContentDigest    string      `json:"contentDigest"`
	Size             int64       `json:"size"` // bytes
	Statements       int32       `json:"statements"`
	Destructive      bool        `json:"destructive"`
	PrivilegeChanges []string    `json:"privilegeChanges"`
	CreatedAt        metav1.Time `json:"createdAt"`
	// Attempted says that an Apply of this very plan ran before and did not lead to convergence.
	Attempted bool      `json:"attempted"`
	Approval  *Approval `json:"approval,omitempty"`
}

// Approval is the approval that was accepted for the current plan.
type Approval struct {
	Name       string      `json:"name"`
	Approver   string      `json:"approver"`
	ApprovedAt metav1.Time `json:"approvedAt"`
}

// Applied is the last Apply that was proven to have converged.
type Applied struct {
	Plan           string      `json:"plan"`
	ArtifactDigest string      `json:"artifactDigest"`
	CompletedAt    metav1.Time `json:"completedAt"`
}

// Operation is what is claimed or running.
type Operation struct {
	Type           string       `json:"type"`
	Job            string       `json:"job"`
	StartedAt      metav1.Time  `json:"startedAt"`
	Dispatched     bool         `json:"dispatched"`
	Proof          bool         `json:"proof"`
	RetryNotBefore *metav1.Time `json:"retryNotBefore,omitempty"`
}

// Proof is what is owed after an Apply.
type Proof struct {
	Outcome   string       `json:"outcome"`
	Plan      string       `json:"plan"`
	Job       string       `json:"job"`
	Pods      int32        `json:"pods"`
	Refusal   string       `json:"refusal,omitempty"`
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}

// Schedule is when the database was read and will be read.
type Schedule struct {
	Interval       string       `json:"interval"`
	LastAttempt    *metav1.Time `json:"lastAttempt,omitempty"`
	LastSuccess    *metav1.Time `json:"lastSuccess,omitempty"`
	Next           *metav1.Time `json:"next,omitempty"`
	FailedAttempts int32        `json:"failedAttempts"`
}

// Condition is a condition, and whether it is about the present generation.
type Condition struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Since   metav1.Time `json:"since"`
	Current bool        `json:"current"`
}

// Fetch reads a PtahSchema in one request. An error that wraps ErrNothing says that there is none.
func Fetch(ctx context.Context, reader client.Reader, namespace, name string, now time.Time) (*View, error) {
	schema := &v1alpha1.PtahSchema{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, schema)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: PtahSchema %q does not exist in namespace %q", ErrNothing, name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read PtahSchema %q in namespace %q: %w", name, namespace, err)
	}
	return Of(schema, now), nil
}

// JSON writes the view as one indented document.
func (v *View) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
