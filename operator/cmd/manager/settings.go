package main

import (
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// namespaceFile is where a Pod finds its own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

var pinnedImage = regexp.MustCompile(`^[^@\s]+@sha256:[0-9a-f]{64}$`)

// settings are the flags of the manager.
type settings struct {
	executorImage         string
	runnerImage           string
	ptahVersion           string
	controllerImage       string
	controllerRevision    string
	coordinationNamespace string
	leaderElect           bool
	webhookPort           int
	certDir               string
	resultsPort           int
	resultsURL            string
	metricsAddress        string
	probeAddress          string

	requireDistinctApprover bool
}

func parse(arguments []string, output io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&s.executorImage, "executor-image", "", "executor image, pinned as name@sha256:digest (required)")
	flags.StringVar(&s.runnerImage, "runner-image", "", "runner image, pinned as name@sha256:digest (required)")
	flags.StringVar(&s.ptahVersion, "ptah-version", "", "version of ptah in the executor image, 1 to 128 bytes (required)")
	flags.StringVar(&s.controllerImage, "controller-image", "", "image of this manager, for records")
	flags.StringVar(&s.controllerRevision, "controller-revision", "", "source revision of this manager, for records")
	flags.StringVar(&s.coordinationNamespace, "coordination-namespace", "", "namespace of realm Leases and of the leader Lease (default: the Pod's own)")
	flags.BoolVar(&s.leaderElect, "leader-elect", true, "reconcile only while holding the leader Lease")
	flags.IntVar(&s.webhookPort, "webhook-port", 9443, "port of the admission webhooks")
	flags.StringVar(&s.certDir, "webhook-cert-dir", "/certs", "directory with tls.crt, tls.key and ca.crt")
	flags.IntVar(&s.resultsPort, "results-port", 9444, "port of the result receiver")
	flags.StringVar(&s.resultsURL, "results-url", "", "https URL of the result receiver as operation Pods see it (required)")
	flags.StringVar(&s.metricsAddress, "metrics-bind-address", ":8080", "address of the metrics endpoint, 0 for none")
	flags.StringVar(&s.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.BoolVar(&s.requireDistinctApprover, "require-distinct-approver", false, "refuse an approval by whoever wrote the schema's spec last")
	if err := flags.Parse(arguments); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %q; the manager takes flags only", flags.Arg(0))
	}
	return s, s.check()
}

func (s *settings) check() error {
	for _, image := range []struct{ name, value string }{{"--executor-image", s.executorImage}, {"--runner-image", s.runnerImage}} {
		if !pinnedImage.MatchString(image.value) || len(image.value) > 512 {
			return fmt.Errorf("%s is %q; give an image as name@sha256:digest, a tag can be moved", image.name, image.value)
		}
	}
	if s.ptahVersion == "" || len(s.ptahVersion) > 128 {
		return fmt.Errorf("--ptah-version must have 1 to 128 bytes")
	}
	address, err := url.Parse(s.resultsURL)
	if err != nil || address.Scheme != "https" || address.Host == "" || strings.Trim(address.Path, "/") != "" {
		return fmt.Errorf("--results-url is %q; give an https URL without a path", s.resultsURL)
	}
	if s.coordinationNamespace == "" {
		data, err := os.ReadFile(namespaceFile)
		if err != nil {
			return fmt.Errorf("--coordination-namespace is not set and the Pod's own namespace cannot be read: %w", err)
		}
		s.coordinationNamespace = strings.TrimSpace(string(data))
	}
	return nil
}
