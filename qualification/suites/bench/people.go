package bench

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ManagerUser is who the API server authenticates the manager as.
const ManagerUser = "system:serviceaccount:" + ReleaseNamespace + ":" + ManagerDeployment

// ServiceAccountGroups are the groups of a ServiceAccount's token.
func ServiceAccountGroups(namespace string) []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}

// As returns a client that acts as somebody else.
func (b *Bench) As(user string, groups ...string) (client.Client, error) {
	config := rest.CopyConfig(b.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	somebody, err := client.New(config, client.Options{Scheme: b.Client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("act as %s: %w", user, err)
	}
	return somebody, nil
}

// May asks the API server whether somebody may do something.
func (b *Bench) May(ctx context.Context, user string, groups []string, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &what}}
	if err := b.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask what %s may do: %w", user, err)
	}
	return review.Status.Allowed, nil
}

// Grant binds a ClusterRole to a person in one namespace.
func (b *Bench) Grant(ctx context.Context, namespace, role, user string) error {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: role + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := b.Client.Create(ctx, binding); err != nil {
		return fmt.Errorf("give the role %s to %s in namespace %s: %w", role, user, namespace, err)
	}
	return nil
}
