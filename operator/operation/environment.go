package operation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/realm"
)

// Keys of a registry credential Secret that its author cannot rename: what the credential may be used for.
const (
	grantRegistry  = "registry"
	grantPlainHTTP = "allowPlainHTTP"
	grantCADigest  = "caSHA256"
)

func plain(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

func secret(name, secretName, key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secretName}, Key: key, Optional: ptr.To(optional),
	}}}
}

func commonEnv(config Config, order Order) ([]corev1.EnvVar, error) {
	id, err := identityJSON(order)
	if err != nil {
		return nil, err
	}
	trust, err := config.TrustPEM()
	if err != nil {
		return nil, fmt.Errorf("certificates of the result receiver: %w", err)
	}
	return []corev1.EnvVar{
		plain(env.ProtocolVersion, strconv.Itoa(int(ptahv1.RunnerProtocolVersion))),
		plain(env.Operation, string(order.Claim.Type)),
		plain(env.OperationID, order.Claim.ID),
		plain(env.WorkDir, workDir),
		plain(env.TerminationGraceSecs, strconv.FormatInt(GraceSeconds, 10)),
		plain(env.ResultEndpoint, strings.TrimSuffix(config.ResultsURL, "/")),
		plain(env.ResultTokenFile, tokenFile),
		plain(env.ResultTrustPEM, trust),
		plain(env.ResultIdentity, id),
		field(env.PodName, "metadata.name"),
		field(env.PodUID, "metadata.uid"),
		field(env.JobUID, "metadata.labels['batch.kubernetes.io/controller-uid']"),
	}, nil
}

func sourceEnv(source *ptahv1.OCISourceBinding) []corev1.EnvVar {
	list := []corev1.EnvVar{
		plain(env.RequestedReference, source.RequestedReference),
		plain(env.VerificationPolicy, policyFile),
		plain(env.ExpectedPolicyDigest, source.VerificationPolicy.Digest),
	}
	if source.Transport != nil && source.Transport.PlainHTTP {
		list = append(list, plain(env.OCIPlainHTTP, "true"))
	}
	if hasCA(source) {
		list = append(list, plain(env.OCICAFile, caFile))
	}
	auth := source.RegistryAuthFrom
	if auth == nil {
		return append(list, plain(env.AuthMode, ""))
	}
	list = append(list,
		plain(env.AuthMode, string(auth.Mode)),
		secret(env.AuthRegistryGrant, auth.Name, grantRegistry, true),
		secret(env.AuthAllowPlainHTTP, auth.Name, grantPlainHTTP, true),
		secret(env.AuthCADigestGrant, auth.Name, grantCADigest, true),
	)
	if hasDockerConfig(source) {
		return append(list, plain(env.OCIDockerConfig, dockerFile))
	}
	return append(list,
		secret(env.OCIUsername, auth.Name, auth.UsernameKey, true),
		secret(env.OCIPassword, auth.Name, auth.PasswordKey, true),
		secret(env.OCIToken, auth.Name, auth.TokenKey, true),
	)
}

func databaseEnv(order Order) ([]corev1.EnvVar, error) {
	dialect, err := realm.CanonicalEngine(string(order.Claim.Target.Engine))
	if err != nil {
		return nil, err
	}
	exclude, err := jsonList(order.Policy.Exclude)
	if err != nil {
		return nil, err
	}
	protected, err := jsonList(order.Policy.ProtectedTables)
	if err != nil {
		return nil, err
	}
	url := order.Claim.Target.URLFrom
	list := []corev1.EnvVar{
		secret(env.DatabaseURL, url.Name, url.Key, false),
		plain(env.ExpectedDialect, dialect),
		plain(env.Exclude, exclude),
		plain(env.ProtectedTables, protected),
		plain(env.TransactionMode, order.Policy.TransactionMode),
		plain(env.DriftSeverity, order.Policy.DriftSeverity),
		plain(env.ConnectTimeout, order.Subject.Execution.ConnectTimeout.Duration.String()),
		plain(env.LockTimeout, order.Policy.LockTimeout.Duration.String()),
		plain("TMPDIR", scratchDir),
		plain("HOME", scratchDir),
	}
	if order.Claim.TargetIdentityDigest != "" {
		list = append(list, plain(env.ExpectedTargetIdentity, order.Claim.TargetIdentityDigest))
	}
	if mutates(order) {
		return append(list, applyEnv(order)...), nil
	}
	if order.HeldPlanDigest != "" {
		list = append(list, plain(env.HeldPlanDigest, order.HeldPlanDigest))
	}
	if order.Proven != nil {
		list = append(list,
			plain(env.ProvenArtifact, order.Proven.ArtifactDigest),
			plain(env.ProvenDumpDigest, order.Proven.StateFingerprint),
			plain(env.ProvenTargetIdentity, order.Proven.TargetIdentityDigest),
		)
	}
	return list, nil
}

func applyEnv(order Order) []corev1.EnvVar {
	list := []corev1.EnvVar{
		plain(env.ExpectedPlanDigest, order.PlanContentDigest),
	}
	if limit := order.Claim.DispatchNotAfter; limit != nil {
		list = append(list, plain(env.DispatchNotAfter, limit.UTC().Format(time.RFC3339)))
	}
	if limit := order.Claim.ExecutionNotAfter; limit != nil {
		list = append(list, plain(env.ExecutionNotAfter, limit.UTC().Format(time.RFC3339)))
	}
	return list
}

func jsonList[T ~string](values []T) (string, error) {
	sorted := slices.Clone(values)
	if sorted == nil {
		sorted = []T{}
	}
	slices.Sort(sorted)
	data, err := json.Marshal(sorted)
	if err != nil {
		return "", fmt.Errorf("JSON list: %w", err)
	}
	return string(data), nil
}
