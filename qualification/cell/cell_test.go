package cell

import (
	"bufio"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRunsRelease(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	pod := &corev1.Pod{}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{ImageID: "host:5000/ptah/manager@" + digest}}
	if err := runsRelease(pod, digest); err != nil {
		t.Errorf("the release's own image was refused: %v", err)
	}
	pod.Status.ContainerStatuses[0].ImageID = "host:5000/ptah/manager@sha256:" + strings.Repeat("b", 64)
	if runsRelease(pod, digest) == nil {
		t.Error("another image passed as the release's")
	}
}

func TestWholeLines(t *testing.T) {
	for name, c := range map[string]struct{ written, kept string }{
		"should keep whole lines":                        {"one\ntwo\n", "one\ntwo\n"},
		"should leave out a line that is being written":  {"one\ntw", "one\n"},
		"should keep nothing of a first unfinished line": {"on", ""},
		"should keep lines longer than a buffer":         {strings.Repeat("x", 70000) + "\ny", strings.Repeat("x", 70000) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(&wholeLines{source: bufio.NewReader(strings.NewReader(c.written))})
			if err != nil || string(got) != c.kept {
				t.Errorf("got %d bytes and %v, want %d bytes", len(got), err, len(c.kept))
			}
		})
	}
}
