package operation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// Paths inside operation containers.
const (
	binDir       = "/ptah/bin"
	workDir      = "/ptah/work"
	scratchDir   = "/ptah/scratch"
	policyDir    = "/ptah/policy"
	caDir        = "/ptah/ca"
	dockerDir    = "/ptah/docker"
	tokenDir     = "/ptah/token"
	runnerBinary = binDir + "/ptah-runner"
	policyFile   = policyDir + "/policy"
	caFile       = caDir + "/ca.crt"
	dockerFile   = dockerDir + "/config.json"
	tokenFile    = tokenDir + "/token"
)

const (
	containerInstall  = "install-runner"
	containerSource   = "source"
	containerDatabase = "database"

	volumeRunner  = "runner"
	volumeWork    = "work"
	volumeScratch = "scratch"
	volumePolicy  = "verification-policy"
	volumeCA      = "registry-ca"
	volumeDocker  = "registry-docker-config"
	volumeToken   = "results-token"

	userID               = int64(65532)
	tokenLifetimeSeconds = int64(3600)
	tokenMode            = int32(0o440)
	fileMode             = int32(0o444)
)

// podSpec writes out every field that the API server would default, so that what is stored is what was meant.
func podSpec(config Config, order Order) (corev1.PodSpec, error) {
	database, err := databaseContainer(config, order)
	if err != nil {
		return corev1.PodSpec{}, err
	}
	inits := []corev1.Container{installContainer(config)}
	if order.Claim.Source != nil && !mutates(order) {
		source, err := sourceContainer(config, order)
		if err != nil {
			return corev1.PodSpec{}, err
		}
		inits = append(inits, source)
	}
	execution := order.Subject.Execution
	serviceAccount := execution.ServiceAccountName
	if serviceAccount == "" {
		serviceAccount = "default"
	}
	return corev1.PodSpec{
		InitContainers:                inits,
		Containers:                    []corev1.Container{database},
		Volumes:                       volumes(order),
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To(GraceSeconds),
		ActiveDeadlineSeconds:         ptr.To(execution.ActiveDeadlineSeconds),
		DNSPolicy:                     corev1.DNSClusterFirst,
		SchedulerName:                 corev1.DefaultSchedulerName,
		ServiceAccountName:            serviceAccount,
		DeprecatedServiceAccount:      serviceAccount,
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		NodeSelector:                  execution.NodeSelector,
		Tolerations:                   execution.Tolerations,
		Affinity:                      execution.Affinity,
		RuntimeClassName:              execution.RuntimeClassName,
		PriorityClassName:             execution.PriorityClassName,
		ImagePullSecrets:              execution.ImagePullSecrets,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: ptr.To(userID), RunAsGroup: ptr.To(userID), FSGroup: ptr.To(userID),
			RunAsNonRoot:        ptr.To(true),
			FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}, nil
}

func container(name, image string, command ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Command: command,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			RunAsNonRoot:             ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func installContainer(config Config) corev1.Container {
	c := container(containerInstall, config.RunnerImage, "/ptah-runner", "install", runnerBinary)
	c.VolumeMounts = []corev1.VolumeMount{{Name: volumeRunner, MountPath: binDir}}
	return c
}

// sourceContainer holds the registry credential and no database credential.
func sourceContainer(config Config, order Order) (corev1.Container, error) {
	c := container(containerSource, config.ExecutorImage, runnerBinary, "source")
	common, err := commonEnv(config, order)
	if err != nil {
		return c, err
	}
	c.Env = slices.Concat(common, sourceEnv(order.Claim.Source))
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: volumeRunner, MountPath: binDir, ReadOnly: true},
		{Name: volumeWork, MountPath: workDir},
		{Name: volumeToken, MountPath: tokenDir, ReadOnly: true},
		{Name: volumePolicy, MountPath: policyDir, ReadOnly: true},
	}
	if hasCA(order.Claim.Source) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeCA, MountPath: caDir, ReadOnly: true})
	}
	if hasDockerConfig(order.Claim.Source) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeDocker, MountPath: dockerDir, ReadOnly: true})
	}
	return c, nil
}

// databaseContainer holds the database credential and no registry credential.
func databaseContainer(config Config, order Order) (corev1.Container, error) {
	c := container(containerDatabase, config.ExecutorImage, runnerBinary, "database")
	common, err := commonEnv(config, order)
	if err != nil {
		return c, err
	}
	specific, err := databaseEnv(order)
	if err != nil {
		return c, err
	}
	c.Env = slices.Concat(common, specific)
	c.Resources = order.Subject.Execution.Resources
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: volumeRunner, MountPath: binDir, ReadOnly: true},
		{Name: volumeWork, MountPath: workDir},
		{Name: volumeScratch, MountPath: scratchDir},
		{Name: volumeToken, MountPath: tokenDir, ReadOnly: true},
	}
	return c, nil
}

func volumes(order Order) []corev1.Volume {
	list := []corev1.Volume{
		emptyDir(volumeRunner, corev1.StorageMediumDefault, "64Mi"),
		emptyDir(volumeWork, corev1.StorageMediumMemory, "128Mi"),
		// Without a size a memory volume is bounded by the container's own memory limit or by half of the node.
		emptyDir(volumeScratch, corev1.StorageMediumMemory, ""),
		{Name: volumeToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr.To(tokenMode),
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: ptahv1.ResultTokenAudience, ExpirationSeconds: ptr.To(tokenLifetimeSeconds), Path: baseName(tokenFile),
			}}},
		}}},
	}
	source := order.Claim.Source
	if source == nil || mutates(order) {
		return list
	}
	list = append(list, configMapFile(volumePolicy, &source.VerificationPolicy.From, baseName(policyFile)))
	if hasCA(source) {
		list = append(list, configMapFile(volumeCA, source.Transport.CAFrom, baseName(caFile)))
	}
	if hasDockerConfig(source) {
		list = append(list, corev1.Volume{Name: volumeDocker, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: source.RegistryAuthFrom.Name, DefaultMode: ptr.To(tokenMode), Optional: ptr.To(false),
			Items: []corev1.KeyToPath{{Key: source.RegistryAuthFrom.DockerConfigJSONKey, Path: baseName(dockerFile)}},
		}}})
	}
	return list
}

func emptyDir(name string, medium corev1.StorageMedium, size string) corev1.Volume {
	source := &corev1.EmptyDirVolumeSource{Medium: medium}
	if size != "" {
		source.SizeLimit = ptr.To(resource.MustParse(size))
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}}
}

func configMapFile(volume string, selector *corev1.ConfigMapKeySelector, path string) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: selector.LocalObjectReference, DefaultMode: ptr.To(fileMode), Optional: ptr.To(false),
		Items: []corev1.KeyToPath{{Key: selector.Key, Path: path}},
	}}}
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func hasCA(source *ptahv1.OCISourceBinding) bool {
	return source.Transport != nil && source.Transport.CAFrom != nil
}

func hasDockerConfig(source *ptahv1.OCISourceBinding) bool {
	return source.RegistryAuthFrom != nil && source.RegistryAuthFrom.Mode == ptahv1.RegistryAuthDockerConfigJSON
}
