package schemafaults

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

const (
	hangers      = 8               // requests to each replica, twice what it works on at once
	answerTime   = 3 * time.Second // within which a request that is refused is answered
	resultsPort  = "9444"
	identityName = "PTAH_RESULT_IDENTITY"
	resultMedia  = "application/vnd.ptah.run.result.v1+json"
)

// TestHungResultBlocksNobody lets one operation Pod begin its result again and again and never go on, at every replica.
func TestHungResultBlocksNobody(t *testing.T) {
	scenario(t, "hung-result-blocks-nobody", func(ctx context.Context, s *bench.Scenario) {
		one := begin(ctx, s, long, patient)
		managers, err := s.Bench.Managers(ctx)
		s.Fixture(err)
		request, err := hangingRequest(ctx, s.Bench, one.apply.Pod())
		s.Fixture(err)
		answers := map[string]int{}
		given := make(chan time.Time, len(managers))
		began := time.Now()
		for _, manager := range managers {
			address, err := forward(s, manager.Name)
			s.Fixture(err)
			for range hangers {
				answer, err := hang(s, address, request, given)
				s.Fixture(err)
				answers[answer]++
			}
		}
		s.Witness("answers to the requests that hang", answers)
		s.Need("each replica holds one of them and turns the others away", subject.ErrorUnless(answers[""] == len(managers) && answers["503"] == len(managers)*(hangers-1),
			fmt.Sprintf("%d replicas answered %v", len(managers), answers)))

		other := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		started := time.Now()
		other.Converge(ctx)
		s.Measure("unrelated convergence", other.Key.String(), started, time.Now())
		for range managers {
			select {
			case ended := <-given:
				s.Measure("hung result canceled", one.Key.String(), began, ended)
			case <-time.After(subject.Patience):
				s.Check("a result that hangs is given up", false, "a request that never ended was still held after %s", subject.Patience)
			}
		}

		one.hold.Release(ctx)
		one.Await(ctx, "proven convergence of the Apply whose Pod hung", bench.InSync)
		one.once(ctx, "the Apply whose Pod hung")
	})
}

// hangingRequest is the beginning of the result of an operation Pod, with the credential that only this Pod can have.
func hangingRequest(ctx context.Context, b *bench.Bench, pod *corev1.Pod) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{v1alpha1.ResultTokenAudience}, ExpirationSeconds: ptr.To(int64(600)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if err := b.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return "", fmt.Errorf("ask for the token of Pod %s: %w", pod.Name, err)
	}
	claimed, publication, err := identity(pod)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{
		"PUT /v1/results/" + publication + " HTTP/1.1", "Host: ptah-operator-results", "Authorization: Bearer " + token.Status.Token,
		"X-Ptah-Result-Identity: " + claimed, "X-Ptah-Result-Digest: sha256:" + strings.Repeat("0", 64),
		"Content-Type: " + resultMedia, "Content-Length: 4096", "", "{",
	}, "\r\n"), nil
}

// identity is what the Pod says of itself: what the manager wrote into it, completed by what the Pod alone knows.
func identity(pod *corev1.Pod) (header, publication string, err error) {
	var own podIdentity
	for _, container := range pod.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == identityName {
				err = json.Unmarshal([]byte(variable.Value), &own)
			}
		}
	}
	if err != nil {
		return "", "", fmt.Errorf("read %s of Pod %s: %w", identityName, pod.Name, err)
	}
	if own.UID == "" {
		return "", "", fmt.Errorf("read %s of Pod %s: it holds no identity", identityName, pod.Name)
	}
	own.JobUID, own.PodName, own.PodUID = pod.Labels["batch.kubernetes.io/controller-uid"], pod.Name, string(pod.UID)
	text, err := json.Marshal(own)
	if err != nil {
		return "", "", err
	}
	return base64.RawURLEncoding.EncodeToString(text), own.publication(), nil
}

// forward opens a way from this machine to the receiver of one replica, for as long as the test runs.
func forward(s *bench.Scenario, pod string) (string, error) {
	command := exec.Command(tenant.Program(s.Bench.Lab, "kubectl"), "--kubeconfig", s.Bench.Lab.Kubeconfig, "--namespace", bench.ReleaseNamespace,
		"port-forward", "--address", "127.0.0.1", "pod/"+pod, ":"+resultsPort)
	output, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("forward a port to Pod %s: %w", pod, err)
	}
	s.T.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("forward a port to Pod %s: %w", pod, err)
	}
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	if address == "" {
		return "", fmt.Errorf("forward a port to Pod %s: kubectl said %q", pod, line)
	}
	return address, nil
}

// hang sends the beginning of a request and leaves it there. It returns the status of an answer, "" where none came;
// then the time at which the receiver gives up is sent to given.
func hang(s *bench.Scenario, address, request string, given chan<- time.Time) (string, error) {
	// Whom it talks to is no question here: the address is that of a port forward.
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	if err != nil {
		return "", fmt.Errorf("connect to the receiver: %w", err)
	}
	s.T.Cleanup(func() { _ = connection.Close() }) // the receiver may have closed it
	if _, err := connection.Write([]byte(request)); err != nil {
		return "", fmt.Errorf("send the beginning of a result: %w", err)
	}
	answered := make(chan string, 1)
	go func() {
		defer close(answered)
		if response, err := http.ReadResponse(bufio.NewReader(connection), nil); err == nil {
			defer func() { _ = response.Body.Close() }()
			answered <- fmt.Sprint(response.StatusCode)
		}
	}()
	select {
	case answer := <-answered:
		return answer, nil
	case <-time.After(answerTime):
		go func() {
			<-answered
			given <- time.Now()
		}()
		return "", nil
	}
}
