package receiver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/receiver/delivery"
)

// Keys under which the API server says which Pod a token is bound to.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

const serviceAccountPrefix = "system:serviceaccount:"

// TokenReviewer asks the API server whose token this is.
type TokenReviewer interface {
	Review(ctx context.Context, token string, audiences []string) (*authenticationv1.TokenReviewStatus, error)
}

type clientReviewer struct{ client client.Client }

// NewTokenReviewer returns a TokenReviewer on a client whose scheme knows authentication.k8s.io/v1.
func NewTokenReviewer(c client.Client) TokenReviewer { return clientReviewer{client: c} }

// Review creates a TokenReview, which the API server answers and does not store.
func (r clientReviewer) Review(ctx context.Context, token string, audiences []string) (*authenticationv1.TokenReviewStatus, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	if err := r.client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	return &review.Status, nil
}

// credentials are what a request says about itself, well formed and not yet believed.
type credentials struct {
	token   string
	claimed identity.Identity
}

func readCredentials(header http.Header) (credentials, *refusal) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return credentials{}, refuse(http.StatusUnauthorized, "one Authorization header is required")
	}
	token, found := strings.CutPrefix(values[0], "Bearer ")
	if !found || !isToken(token) {
		return credentials{}, refuse(http.StatusUnauthorized, "the Authorization header holds no bearer token")
	}
	values = header.Values(delivery.IdentityHeader)
	if len(values) != 1 {
		return credentials{}, refuse(http.StatusUnauthorized, "one %s header is required", delivery.IdentityHeader)
	}
	claimed, err := delivery.Decode(values[0])
	if err != nil {
		return credentials{}, refuse(http.StatusUnauthorized, "the %s header is not usable: %v", delivery.IdentityHeader, err)
	}
	return credentials{token: token, claimed: claimed}, nil
}

// isToken accepts the alphabet of a signed ServiceAccount token alone: base64url and dots.
func isToken(token string) bool {
	if token == "" || len(token) > delivery.MaxTokenBytes {
		return false
	}
	for _, r := range token {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return false
		}
	}
	return true
}

// authenticate returns the name of the ServiceAccount whose token is bound to the claimed Pod.
func (s *Server) authenticate(ctx context.Context, given credentials) (string, *refusal) {
	status := s.reviews.find(given.token)
	if status == nil {
		var err error
		if status, err = s.reviewer.Review(ctx, given.token, []string{v1alpha1.ResultTokenAudience}); err != nil {
			s.logger.Error(err, "Token review failed")
			return "", refuse(http.StatusServiceUnavailable, "the token could not be reviewed; try again")
		}
	}
	if !status.Authenticated || status.Error != "" {
		return "", refuse(http.StatusUnauthorized, "the token is not valid")
	}
	if !slices.Contains(status.Audiences, v1alpha1.ResultTokenAudience) {
		return "", refuse(http.StatusUnauthorized, "the token is not for the audience %s", v1alpha1.ResultTokenAudience)
	}
	subject, found := strings.CutPrefix(status.User.Username, serviceAccountPrefix)
	namespace, account, separated := strings.Cut(subject, ":")
	if !found || !separated {
		return "", refuse(http.StatusUnauthorized, "the token does not belong to a ServiceAccount")
	}
	if namespace != given.claimed.Namespace {
		return "", refuse(http.StatusUnauthorized, "the token belongs to another namespace than the claimed identity")
	}
	if !onlyValue(status.User.Extra[extraPodName], given.claimed.PodName) || !onlyValue(status.User.Extra[extraPodUID], given.claimed.PodUID) {
		return "", refuse(http.StatusUnauthorized, "the token is not bound to the claimed Pod")
	}
	s.reviews.keep(given.token, status)
	return account, nil
}

func onlyValue(values authenticationv1.ExtraValue, want string) bool {
	return len(values) == 1 && values[0] == want
}
