package operation

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/identity"
)

func testConfig() Config {
	return Config{
		ExecutorImage: "executor@sha256:1", RunnerImage: "runner@sha256:2", PtahVersion: "1.0.0", ResultsURL: "https://results.example/",
		TrustPEM: func() (string, error) { return "PEM", nil },
		Manager:  ptahv1.ManagerRecord{ControllerImage: "manager", ControllerRevision: "r1", RunnerImage: "runner@sha256:2"},
	}
}

// fullOrder uses everything that an order can ask for.
func fullOrder(operation ptahv1.OperationType) Order {
	claim := ptahv1.ActiveOperationStatus{
		Type: operation, ID: "sha256:" + strings.Repeat("a", 64), InputFingerprint: "sha256:" + strings.Repeat("b", 64), Generation: 7,
		Attempt: 1, ExecutionBindingID: "v1-" + strings.Repeat("0", 32), TargetIdentityDigest: "sha256:" + strings.Repeat("c", 64),
		Target: ptahv1.DatabaseTargetBinding{Engine: ptahv1.EnginePostgreSQL, URLFrom: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db-secret"}, Key: "url"}},
		Source: &ptahv1.OCISourceBinding{
			RequestedReference: "oci://registry.example/orders:v1",
			RegistryAuthFrom:   &ptahv1.RegistryAuthSource{Name: "registry-secret", Mode: ptahv1.RegistryAuthEnvironment, UsernameKey: "username", PasswordKey: "password", TokenKey: "token", DockerConfigJSONKey: ".dockerconfigjson"},
			Transport:          &ptahv1.OCITransport{CAFrom: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}, Key: "ca.crt"}},
			VerificationPolicy: ptahv1.VerificationPolicyBinding{
				From: corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "policy"}, Key: "policy.yaml"},
				UID:  "u", Digest: "sha256:" + strings.Repeat("d", 64),
			},
		},
	}
	if operation == ptahv1.OperationApply {
		at := metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
		claim.DispatchNotAfter, claim.ExecutionNotAfter = &at, &at
	}
	claim.JobName = JobName("orders", "uid", &claim)
	order := Order{
		Subject: Subject{
			APIVersion: ptahv1.GroupVersion.String(), Kind: "PtahSchema", Namespace: "team-a", Name: "orders", UID: "uid",
			NameLabel: ptahv1.LabelSchema, Component: ptahv1.SchemaOperation,
			Execution: ptahv1.ExecutionSpec{
				ActiveDeadlineSeconds: 900, ConnectTimeout: metav1.Duration{Duration: 10 * time.Second},
				Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}},
				NodeSelector: map[string]string{"a": "1", "b": "2"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
				PodMetadata: &ptahv1.PodMetadata{
					Labels:      map[string]ptahv1.PodLabelValue{"team": "a", ptahv1.LabelManagedBy: "forged"},
					Annotations: map[string]ptahv1.PodAnnotationValue{"note": "x"},
				},
			},
		},
		Claim: claim,
		Policy: ptahv1.SchemaPolicy{
			TransactionMode: "file", DriftSeverity: "all", LockTimeout: metav1.Duration{Duration: 30 * time.Second},
			Exclude: []ptahv1.ExcludeSelector{"z", "a"}, ProtectedTables: []ptahv1.ProtectedTable{"t"},
		},
	}
	if operation == ptahv1.OperationApply {
		order.PlanFingerprint, order.PlanContentDigest = "sha256:fingerprint", "sha256:content"
	} else {
		order.HeldPlanDigest = "sha256:held"
		order.Proven = &ptahv1.ConvergedStatus{ArtifactDigest: "sha256:artifact", StateFingerprint: "sha256:state", TargetIdentityDigest: "sha256:target"}
	}
	return order
}

func mustBuild(t *testing.T, order Order) *batchv1.Job {
	t.Helper()
	job, err := Build(testConfig(), order)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestEqualOrdersGiveTheSameJobByteForByte(t *testing.T) {
	for _, operation := range []ptahv1.OperationType{ptahv1.OperationRefresh, ptahv1.OperationApply} {
		var first []byte
		for range 50 {
			data, err := json.Marshal(mustBuild(t, fullOrder(operation)))
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = data
			}
			if string(data) != string(first) {
				t.Fatalf("%s: two Jobs of one order differ", operation)
			}
		}
		// The control: another order is another Job.
		other := fullOrder(operation)
		other.Policy.TransactionMode = "all"
		data, err := json.Marshal(mustBuild(t, other))
		if err != nil || string(data) == string(first) {
			t.Errorf("%s: another order gives the same Job", operation)
		}
	}
}

func TestTheOrderIsNotChangedByBuilding(t *testing.T) {
	order, control := fullOrder(ptahv1.OperationRefresh), fullOrder(ptahv1.OperationRefresh)
	job := mustBuild(t, order)
	job.Spec.Template.Labels["x"] = "y"
	if !reflect.DeepEqual(order, control) {
		t.Error("building changed its order")
	}
}

func secretsOf(job *batchv1.Job, container *corev1.Container) []string {
	names := []string{}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			names = append(names, variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, mount := range container.VolumeMounts {
		for _, volume := range job.Spec.Template.Spec.Volumes {
			if volume.Name == mount.Name && volume.Secret != nil {
				names = append(names, volume.Secret.SecretName)
			}
		}
	}
	return names
}

func TestNoContainerHoldsBothCredentials(t *testing.T) {
	environment := fullOrder(ptahv1.OperationRefresh)
	docker := fullOrder(ptahv1.OperationRefresh)
	docker.Claim.Source.RegistryAuthFrom.Mode = ptahv1.RegistryAuthDockerConfigJSON
	for name, order := range map[string]Order{"environment": environment, "docker config": docker, "apply": fullOrder(ptahv1.OperationApply)} {
		job := mustBuild(t, order)
		pod := job.Spec.Template.Spec
		for _, container := range append(pod.InitContainers, pod.Containers...) {
			held := strings.Join(secretsOf(job, &container), " ")
			want := map[string]string{containerInstall: "", containerSource: "registry-secret", containerDatabase: "db-secret"}[container.Name]
			if want == "" && held != "" || want != "" && (!strings.Contains(held, want) || strings.Contains(strings.ReplaceAll(held, want, ""), "secret")) {
				t.Errorf("%s: container %s holds %q", name, container.Name, held)
			}
			for _, variable := range container.Env {
				if strings.Contains(variable.Value, "secret") {
					t.Errorf("%s: %s has a credential in %s", name, container.Name, variable.Name)
				}
			}
		}
	}
}

func TestAnApplyPodHasNoRegistryAccessAtAll(t *testing.T) {
	job := mustBuild(t, fullOrder(ptahv1.OperationApply))
	pod := job.Spec.Template.Spec
	if len(pod.InitContainers) != 1 || pod.InitContainers[0].Name != containerInstall {
		t.Errorf("init containers %d", len(pod.InitContainers))
	}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "registry-secret") || strings.Contains(string(data), "registry.example/orders") {
		t.Error("the Apply Job names the registry")
	}
	if job.Spec.Template.Annotations[annotationSafeToEvict] != "false" || job.Annotations[ptahv1.AnnotationPlan] != "sha256:fingerprint" {
		t.Errorf("annotations %v", job.Annotations)
	}
}

// The restricted Pod Security Standard, and what the facts of this product add.
func TestEveryContainerIsRestricted(t *testing.T) {
	for _, operation := range []ptahv1.OperationType{ptahv1.OperationRefresh, ptahv1.OperationApply} {
		job := mustBuild(t, fullOrder(operation))
		pod := job.Spec.Template.Spec
		if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks || pod.HostNetwork || pod.HostPID || pod.HostIPC || pod.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("%s: pod %+v", operation, pod)
		}
		if s := pod.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.FSGroup != 65532 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: security %+v", operation, s)
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !reflect.DeepEqual(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) != 0 {
				t.Errorf("%s: container %s %+v", operation, c.Name, s)
			}
			if len(c.Command) == 0 || len(c.Args) != 0 || len(c.EnvFrom) != 0 {
				t.Errorf("%s: container %s is started in another way", operation, c.Name)
			}
			for _, mount := range c.VolumeMounts {
				if mount.Name == volumeRunner && mount.ReadOnly == (c.Name == containerInstall) {
					t.Errorf("%s: container %s mounts the runner with readOnly %v", operation, c.Name, mount.ReadOnly)
				}
			}
		}
		if *job.Spec.BackoffLimit != 0 || *job.Spec.Parallelism != 1 || *job.Spec.Completions != 1 || *job.Spec.PodReplacementPolicy != batchv1.Failed ||
			*job.Spec.ActiveDeadlineSeconds != 900 || *pod.ActiveDeadlineSeconds != 900 || job.Spec.TTLSecondsAfterFinished == nil {
			t.Errorf("%s: job %+v", operation, job.Spec)
		}
		if job.Spec.Template.Labels[ptahv1.LabelManagedBy] != ptahv1.ManagedByValue || job.Spec.Template.Labels["team"] != "a" {
			t.Errorf("%s: podMetadata can forge labels: %v", operation, job.Spec.Template.Labels)
		}
	}
}

func valueOf(c *corev1.Container, name string) (string, bool) {
	for _, variable := range c.Env {
		if variable.Name == name {
			return variable.Value, true
		}
	}
	return "", false
}

func TestTheRunnerIsToldWhatWasClaimed(t *testing.T) {
	refresh := mustBuild(t, fullOrder(ptahv1.OperationRefresh)).Spec.Template.Spec
	apply := mustBuild(t, fullOrder(ptahv1.OperationApply)).Spec.Template.Spec
	for _, test := range []struct {
		container *corev1.Container
		name      string
		want      string
	}{
		{&refresh.InitContainers[1], env.RequestedReference, "oci://registry.example/orders:v1"},
		{&refresh.InitContainers[1], env.ExpectedPolicyDigest, "sha256:" + strings.Repeat("d", 64)},
		{&refresh.InitContainers[1], env.OCICAFile, "/ptah/ca/ca.crt"},
		{&refresh.InitContainers[1], env.AuthMode, "Environment"},
		{&refresh.Containers[0], env.Exclude, `["a","z"]`},
		{&refresh.Containers[0], env.ProtectedTables, `["t"]`},
		{&refresh.Containers[0], env.ExpectedDialect, "postgresql"},
		{&refresh.Containers[0], env.ConnectTimeout, "10s"},
		{&refresh.Containers[0], env.LockTimeout, "30s"},
		{&refresh.Containers[0], env.HeldPlanDigest, "sha256:held"},
		{&refresh.Containers[0], env.ProvenArtifact, "sha256:artifact"},
		{&refresh.Containers[0], env.ResultEndpoint, "https://results.example"},
		{&refresh.Containers[0], env.TerminationGraceSecs, "30"},
		{&apply.Containers[0], env.ExpectedPlanDigest, "sha256:content"},
		{&apply.Containers[0], env.DispatchNotAfter, "2027-01-01T00:00:00Z"},
		{&apply.Containers[0], env.ExecutionNotAfter, "2027-01-01T00:00:00Z"},
		{&apply.Containers[0], env.ExpectedTargetIdentity, "sha256:" + strings.Repeat("c", 64)},
		{&apply.Containers[0], env.Operation, "Apply"},
	} {
		if got, _ := valueOf(test.container, test.name); got != test.want {
			t.Errorf("%s in %s is %q instead of %q", test.name, test.container.Name, got, test.want)
		}
	}
	for _, name := range []string{env.DispatchNotAfter, env.ExpectedPlanDigest} {
		if _, set := valueOf(&refresh.Containers[0], name); set {
			t.Errorf("a refresh has %s", name)
		}
	}
	for _, name := range []string{env.HeldPlanDigest, env.ProvenArtifact} {
		if _, set := valueOf(&apply.Containers[0], name); set {
			t.Errorf("an Apply has %s", name)
		}
	}
	text, _ := valueOf(&apply.Containers[0], env.ResultIdentity)
	var id identity.Identity
	if err := json.Unmarshal([]byte(text), &id); err != nil || id.UID != "uid" || id.Operation != "Apply" || id.Generation != 7 || id.JobUID != "" || id.PodUID != "" {
		t.Errorf("identity %+v, %v", id, err)
	}
}

func TestAJobThatCannotBeBuiltSaysWhy(t *testing.T) {
	order := fullOrder(ptahv1.OperationRefresh)
	order.Claim.Target.Engine = "Oracle"
	if _, err := Build(testConfig(), order); err == nil || !strings.Contains(err.Error(), "Oracle") {
		t.Errorf("an unknown engine: %v", err)
	}
	config := testConfig()
	config.TrustPEM = func() (string, error) { return "", errNoTrust }
	if _, err := Build(config, fullOrder(ptahv1.OperationRefresh)); err == nil || !strings.Contains(err.Error(), "certificates") {
		t.Errorf("no certificates: %v", err)
	}
}

func TestJobNamesAreValidAndTellAttemptsApart(t *testing.T) {
	claim := fullOrder(ptahv1.OperationRefresh).Claim
	seen := map[string]bool{}
	for _, name := range []string{"orders", strings.Repeat("n", 63), "a.b.c", "trailing-dash-that-is-cut-exactly-at-the-en-d"} {
		got := JobName(name, "uid", &claim)
		if problems := validation.IsDNS1123Label(got); len(problems) > 0 || len(got) > 63 {
			t.Errorf("%q: %v", got, problems)
		}
		if !strings.HasPrefix(got, "ptah-refresh-") {
			t.Errorf("%q", got)
		}
	}
	for _, change := range []func(*ptahv1.ActiveOperationStatus){
		func(*ptahv1.ActiveOperationStatus) {},
		func(c *ptahv1.ActiveOperationStatus) { c.Attempt++ },
		func(c *ptahv1.ActiveOperationStatus) { c.ID = "sha256:other" },
		func(c *ptahv1.ActiveOperationStatus) { c.ExecutionBindingID = "v1-other" },
		func(c *ptahv1.ActiveOperationStatus) { c.InputFingerprint = "sha256:other" },
		func(c *ptahv1.ActiveOperationStatus) { c.Type = ptahv1.OperationApply },
	} {
		other := claim
		change(&other)
		name := JobName("orders", "uid", &other)
		if seen[name] {
			t.Errorf("%s stands for two attempts", name)
		}
		seen[name] = true
	}
	if JobName("orders", "uid", &claim) == JobName("orders", "uid-2", &claim) {
		t.Error("two resources share a Job name")
	}
}

func TestAJobIsTheClaimsOnlyWithEveryMark(t *testing.T) {
	order := fullOrder(ptahv1.OperationRefresh)
	if !IsFor(mustBuild(t, order), "uid", &order.Claim) {
		t.Fatal("the control is not recognised")
	}
	for name, change := range map[string]func(*batchv1.Job){
		"another owner":     func(j *batchv1.Job) { j.OwnerReferences[0].UID = "x" },
		"no owner":          func(j *batchv1.Job) { j.OwnerReferences = nil },
		"no controller":     func(j *batchv1.Job) { j.OwnerReferences[0].Controller = ptr.To(false) },
		"another operation": func(j *batchv1.Job) { j.Annotations[ptahv1.AnnotationOperationID] = "x" },
		"other inputs":      func(j *batchv1.Job) { j.Annotations[ptahv1.AnnotationInputs] = "x" },
		"another epoch":     func(j *batchv1.Job) { j.Annotations[ptahv1.AnnotationBinding] = "x" },
	} {
		job := mustBuild(t, order)
		change(job)
		if IsFor(job, "uid", &order.Claim) {
			t.Errorf("%s is taken for the claim's Job", name)
		}
	}
}
